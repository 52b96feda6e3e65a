package kubenodes

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"drover"
)

// Cluster is an API server that is reached as a kubeconfig file specifies.
type Cluster struct {
	server string
	token  func() (string, error) // nil: none
	http   *http.Client
	free   chan struct{} // has room while another call may begin
}

// kubeconfig has the fields of the file that Open reads.
type kubeconfig struct {
	Current  string `yaml:"current-context"`
	Contexts []struct {
		Name    string `yaml:"name"`
		Context struct {
			Cluster string `yaml:"cluster"`
			User    string `yaml:"user"`
		} `yaml:"context"`
	} `yaml:"contexts"`
	Clusters []struct {
		Name    string        `yaml:"name"`
		Cluster clusterConfig `yaml:"cluster"`
	} `yaml:"clusters"`
	Users []struct {
		Name string     `yaml:"name"`
		User userConfig `yaml:"user"`
	} `yaml:"users"`
}

type clusterConfig struct {
	Server     string `yaml:"server"`
	ServerName string `yaml:"tls-server-name"`
	Proxy      string `yaml:"proxy-url"`
	CA         string `yaml:"certificate-authority"`
	CAData     string `yaml:"certificate-authority-data"`
}

type userConfig struct {
	Token     string `yaml:"token"`
	TokenFile string `yaml:"tokenFile"`
	Cert      string `yaml:"client-certificate"`
	CertData  string `yaml:"client-certificate-data"`
	Key       string `yaml:"client-key"`
	KeyData   string `yaml:"client-key-data"`
	Exec      any    `yaml:"exec"`
	Provider  any    `yaml:"auth-provider"`
}

// current returns the cluster and the user of the current context; the zero ones if there are none.
func (k kubeconfig) current() (c clusterConfig, u userConfig) {
	for _, context := range k.Contexts {
		if context.Name != k.Current {
			continue
		}
		for _, one := range k.Clusters {
			if one.Name == context.Context.Cluster {
				c = one.Cluster
			}
		}
		for _, one := range k.Users {
			if one.Name == context.Context.User {
				u = one.User
			}
		}
	}
	return c, u
}

// callTimeout limits each call, and callsMost how many are under way at once.
const (
	callTimeout = 10 * time.Second
	callsMost   = 32
)

// Open reads a kubeconfig file with a token or a client certificate; programs that fetch credentials are not supported.
func Open(path string) (*Cluster, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, drover.Errorf(drover.KindInvalid, "reading the kubeconfig: %v", err)
	}
	var file kubeconfig
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, drover.Errorf(drover.KindInvalid, "reading the kubeconfig %s: %v", path, err)
	}
	cluster, user := file.current()
	switch {
	case cluster.Server == "":
		return nil, drover.Errorf(drover.KindInvalid, "the kubeconfig %s has no server for its current context", path)
	case user.Exec != nil || user.Provider != nil:
		return nil, drover.Errorf(drover.KindInvalid, "the kubeconfig %s uses a credential plugin, which Drover does not run", path).WithHint("use the token of a service account: drover kubernetes manifests creates one")
	}
	dir := filepath.Dir(path)
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: cluster.ServerName}
	if err := trust(config, dir, cluster.CA, cluster.CAData); err != nil {
		return nil, err
	}
	if err := identify(config, dir, user); err != nil {
		return nil, err
	}
	transport := &http.Transport{TLSClientConfig: config, MaxIdleConnsPerHost: callsMost}
	if cluster.Proxy != "" {
		proxy, err := url.Parse(cluster.Proxy)
		if err != nil {
			return nil, drover.Errorf(drover.KindInvalid, "the kubeconfig's proxy-url: %v", err)
		}
		transport.Proxy = http.ProxyURL(proxy)
	}
	c := &Cluster{server: strings.TrimSuffix(cluster.Server, "/"), http: &http.Client{Timeout: callTimeout, Transport: transport}, free: make(chan struct{}, callsMost)}
	switch {
	case user.TokenFile != "":
		c.token = func() (string, error) { // it is replaced before it expires
			token, err := content(dir, user.TokenFile, "")
			return strings.TrimSpace(string(token)), err
		}
		if _, err := c.token(); err != nil {
			return nil, err
		}
	case user.Token != "":
		c.token = func() (string, error) { return user.Token, nil }
	}
	return c, nil
}

// content returns the contents of a file, or the data given in its place.
func content(dir, file, data string) ([]byte, error) {
	if data != "" {
		decoded, err := base64.StdEncoding.DecodeString(data)
		if err != nil {
			return nil, drover.Errorf(drover.KindInvalid, "reading the kubeconfig: %v", err)
		}
		return decoded, nil
	}
	if file == "" {
		return nil, nil
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, drover.Errorf(drover.KindInvalid, "reading a file that the kubeconfig names: %v", err)
	}
	return text, nil
}

func trust(config *tls.Config, dir, file, data string) error {
	pem, err := content(dir, file, data)
	if err != nil || pem == nil {
		return err
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(pem) {
		return drover.Errorf(drover.KindInvalid, "the kubeconfig's certificate-authority-data contains no certificate")
	}
	return nil
}

// identify presents the user's client certificate. Each connection reads it anew, since it is replaced before it expires.
func identify(config *tls.Config, dir string, u userConfig) error {
	if u.Cert == "" && u.CertData == "" {
		return nil
	}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		cert, err := content(dir, u.Cert, u.CertData)
		if err != nil {
			return nil, err
		}
		key, err := content(dir, u.Key, u.KeyData)
		if err != nil {
			return nil, err
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, drover.Errorf(drover.KindInvalid, "the kubeconfig's client certificate: %v", err)
		}
		return &pair, nil
	}
	_, err := config.GetClientCertificate(nil)
	return err
}

// maxAnswer limits the size of an answer. It is far larger than a list of 5,000 nodes or pods.
const maxAnswer = 256 << 20

// call makes one call to the API server, and decodes the answer into out unless that is nil.
func (c *Cluster) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.server+path, body)
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	if method == "PATCH" {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	if c.token != nil {
		token, err := c.token()
		if err != nil {
			return err
		}
		r.Header.Set("Authorization", "Bearer "+token)
	}
	select {
	case c.free <- struct{}{}:
		defer func() { <-c.free }()
	case <-ctx.Done():
		return ctx.Err()
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return drover.Errorf(drover.KindUnreachable, "querying the cluster: %v", err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return drover.Errorf(drover.KindUnreachable, "reading the cluster's response: %v", err)
	}
	if answer.StatusCode == http.StatusUnauthorized {
		c.http.CloseIdleConnections() // each keeps the certificate that it began with
	}
	if answer.StatusCode >= 300 {
		var why struct {
			Message string `json:"message"`
		}
		// Without such a message, the status alone is reported.
		_ = json.Unmarshal(text, &why)
		return drover.Errorf(kinds[answer.StatusCode], "%s %s: %s", method, path, cmp.Or(why.Message, answer.Status))
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("reading the response to %s %s: %w", method, path, err)
	}
	return nil
}

// objects reads a list. A response without one, perhaps a proxy's, is an error and not an empty list.
func objects[T any](ctx context.Context, c *Cluster, path string) ([]T, error) {
	var all list[T]
	err := c.call(ctx, "GET", path, nil, &all)
	if err == nil && !strings.HasSuffix(all.Kind, "List") {
		err = drover.Errorf(drover.KindTransient, "GET %s: the response contains no list", path)
	}
	return all.Items, err
}

// kinds maps HTTP statuses to kinds of error. Other statuses have none.
var kinds = map[int]drover.ErrorKind{404: drover.KindNotFound, 409: drover.KindConflict, 429: drover.KindRateLimit}
