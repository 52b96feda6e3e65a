package cli

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"text/template"
	"time"

	"github.com/spf13/cobra"

	"drover"
	"drover/internal/config"
)

// autoscalerImage is the autoscaler that the end-to-end tests ran with.
const autoscalerImage = "registry.k8s.io/autoscaling/cluster-autoscaler:v1.36.1"

// provisionGrace is how much longer the autoscaler waits for a node than Drover.
const provisionGrace = 5 * time.Minute

//go:embed kubernetes.yaml
var kubernetesManifests string

var manifestsTemplate = template.Must(template.New("kubernetes.yaml").Parse(kubernetesManifests))

func (a *app) kubernetesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "kubernetes",
		Short:   "Print what a Kubernetes cluster needs to use Drover's node groups",
		Example: "  drover kubernetes manifests -c drover.yaml --cert client.crt --key client.key --ca ca.crt | kubectl apply -f -",
	}
	cmd.AddCommand(a.kubernetesManifests())
	return cmd
}

// manifestFlags are the flags of `drover kubernetes manifests`.
type manifestFlags struct{ address, cert, key, ca, image string }

func (a *app) kubernetesManifests() *cobra.Command {
	var f manifestFlags
	cmd := unformatted("it prints YAML for kubectl", &cobra.Command{
		Use:   "manifests",
		Short: "Print the manifests for cluster-autoscaler and for Drover's access to the cluster",
		Long: `Print manifests for kubectl apply: the deployment of cluster-autoscaler with the flags that Drover
needs, the secret with which the autoscaler connects to this controller, and the roles of the
autoscaler and of Drover. The command first checks that the controller and the autoscaler would
accept each other's certificates.`,
		Example: "  drover kubernetes manifests -c drover.yaml --address drover.example.org:8086 --cert client.crt --key client.key --ca ca.crt | kubectl apply -f -",
		Args:    wantArgs(0, 0, ""),
		RunE:    func(*cobra.Command, []string) error { return a.printManifests(f) },
	})
	cmd.Flags().StringVar(&f.address, "address", "", "`HOST:PORT` at which the cluster reaches the controller; default: kubernetes.listen")
	cmd.Flags().StringVar(&f.cert, "cert", "", "`file` with the autoscaler's client certificate")
	cmd.Flags().StringVar(&f.key, "key", "", "`file` with the certificate's private key")
	cmd.Flags().StringVar(&f.ca, "ca", "", "`file` with the CA that issued the controller's certificate")
	cmd.Flags().StringVar(&f.image, "image", autoscalerImage, "`image` of cluster-autoscaler, 1.35 or later")
	require(cmd, "cert", "key", "ca")
	return cmd
}

func (a *app) printManifests(f manifestFlags) error {
	c, err := a.loadConfig(a.config, "")
	if err != nil {
		return err
	}
	if c == nil || len(c.Groups()) == 0 {
		return drover.Errorf(drover.KindInvalid, "no pool in the configuration is a node group").WithHint("use -c FILE with a configuration that has a kubernetes section")
	}
	f.address = cmp.Or(f.address, string(c.Kubernetes.Listen))
	if err := f.check(c.Kubernetes.TLS); err != nil {
		return err
	}
	values := map[string]string{
		"Fleet": c.Fleet, "Address": f.address, "Image": f.image, "Provision": (c.Kubernetes.JoinTimeout + provisionGrace).String(),
	}
	for name, file := range map[string]string{"Cert": f.cert, "Key": f.key, "CA": f.ca} {
		data, err := os.ReadFile(file)
		if err != nil {
			return drover.Errorf(drover.KindInvalid, "reading --%s: %v", map[string]string{"Cert": "cert", "Key": "key", "CA": "ca"}[name], err)
		}
		values[name] = base64.StdEncoding.EncodeToString(data)
	}
	return manifestsTemplate.Execute(a.out, values)
}

// check rejects certificates with which the two sides would reject each other.
func (f manifestFlags) check(server config.MutualTLS) error {
	host, _, err := net.SplitHostPort(f.address)
	if err != nil {
		return drover.Errorf(drover.KindInvalid, "--address: %v", err).WithHint("write HOST:PORT")
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return drover.Errorf(drover.KindInvalid, "the controller listens on %s, which is not an address that a cluster can reach", f.address).WithHint("give the controller's address: --address HOST:PORT")
	}
	if _, err := tls.LoadX509KeyPair(f.cert, f.key); err != nil {
		return drover.Errorf(drover.KindInvalid, "--cert and --key: %v", err)
	}
	if err := verify(f.cert, string(server.ClientCA), x509.VerifyOptions{KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		return drover.Errorf(drover.KindInvalid, "the controller would reject %s: %v", f.cert, err).WithHint("sign it with the CA in kubernetes.tls.client_ca")
	}
	if err := verify(string(server.Cert), f.ca, x509.VerifyOptions{DNSName: host}); err != nil {
		return drover.Errorf(drover.KindInvalid, "the autoscaler would reject the controller at %s: %v", f.address, err).WithHint("the certificate in kubernetes.tls.cert must be valid for %s, and --ca must be the CA that issued it", host)
	}
	return nil
}

// verify checks a certificate file against its authority's certificate.
func verify(file, authority string, o x509.VerifyOptions) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	trusted, err := os.ReadFile(authority)
	if err != nil {
		return err
	}
	o.Roots, o.Intermediates = x509.NewCertPool(), x509.NewCertPool()
	if !o.Roots.AppendCertsFromPEM(trusted) {
		return fmt.Errorf("%s contains no certificate", authority)
	}
	o.Intermediates.AppendCertsFromPEM(text)
	block, _ := pem.Decode(text)
	if block == nil {
		return fmt.Errorf("%s contains no certificate", file)
	}
	first, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	_, err = first.Verify(o)
	return err
}
