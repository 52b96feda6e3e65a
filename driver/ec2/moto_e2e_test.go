//go:build e2e

package ec2

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"drover"
	"drover/driver"
	"drover/driver/drivertest"
)

// moto starts moto_server, a third-party imitation of AWS, and returns its address.
func moto(t *testing.T) *url.URL {
	t.Helper()
	program, err := exec.LookPath("moto_server")
	if err != nil {
		t.Skip("moto_server is not installed: pip install 'moto[server]'")
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	drivertest.Must(t, err)
	address := free.Addr().String()
	free.Close()
	host, port, _ := net.SplitHostPort(address)
	cmd := exec.Command(program, "-H", host, "-p", port)
	cmd.Env = append(os.Environ(), "MOTO_EC2_ENABLE_INSTANCE_TYPE_VALIDATION=true", "MOTO_ENABLE_KEYPAIR_VALIDATION=true")
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	drivertest.Must(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
			return &url.URL{Scheme: "http", Host: address}
		}
		if time.Now().After(deadline) {
			t.Fatalf("moto_server does not answer: %v", err)
		}
	}
}

// tokened is a proxy in front of moto that adds what moto lacks: a repeated client token gets the first answer again.
type tokened struct {
	moto http.Handler

	mu      sync.Mutex
	answers map[string]*httptest.ResponseRecorder // guarded by mu
}

func (p *tokened) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	form, _ := url.ParseQuery(string(body))
	if form.Get("Action") != "CreateFleet" {
		p.moto.ServeHTTP(w, r)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	answer := p.answers[form.Get("ClientToken")]
	if answer == nil {
		answer = httptest.NewRecorder()
		p.moto.ServeHTTP(answer, r)
		p.answers[form.Get("ClientToken")] = answer
	}
	w.WriteHeader(answer.Code)
	w.Write(answer.Body.Bytes())
}

// TestConformanceOfMoto runs the suite against moto.
func TestConformanceOfMoto(t *testing.T) {
	server := httptest.NewServer(&tokened{moto: httputil.NewSingleHostReverseProxy(moto(t)), answers: map[string]*httptest.ResponseRecorder{}})
	t.Cleanup(server.Close)
	folder := t.TempDir()
	keys := fmt.Sprintf("endpoint: '%s', list_types: false, types: [{name: m5.large, vcpus: 2, memory: 8Gi, price: 0.096}, {name: m5.xlarge, vcpus: 4, memory: 16Gi, price: 0.192}]", server.URL)
	isolate(t)
	openFleet := func(ctx context.Context, fleet string) (*cloud, error) {
		c, err := open(ctx, options(t, fleet, keys, folder), nil)
		if err != nil {
			return nil, err
		}
		return c.(*cloud), nil
	}
	drivertest.Run(t, drivertest.Harness{
		Open: func(ctx context.Context, fleet string) (driver.Cloud, error) {
			return openFleet(ctx, fleet)
		},
		Images: map[drover.Arch]string{"": "amazon/amzn2-ami-hvm-2*"},
		Fleet:  "check", Patience: 30 * time.Second, NoLogin: true,
	})
	t.Run("every instance type is understood", func(t *testing.T) {
		c, err := openFleet(t.Context(), "check")
		drivertest.Must(t, err)
		all, err := listAll[instanceType](t.Context(), c.api, "DescribeInstanceTypes", "instanceTypeSet>item", params{"MaxResults": 100})
		drivertest.Must(t, err)
		if len(all) < 100 {
			t.Errorf("%d types", len(all))
		}
		for _, i := range all {
			name := i.Name
			got, ok := typeOf(i)
			if name == "m5.large" && (got.Resources != drover.Resources{CPU: 2000, Memory: 8 * drover.GiB, Arch: "amd64"} || len(got.Markets) != 2) {
				t.Errorf("%+v", got)
			}
			if old := strings.HasPrefix(name, "mac") || strings.HasPrefix(name, "t1.") || strings.HasPrefix(name, "m1.") || strings.HasPrefix(name, "c1."); !ok && !old {
				t.Errorf("%s is not understood: %v", name, i.Arches)
			}
			if group := quotaGroup(name, drover.OnDemand); !strings.HasPrefix(group, "L-") && !strings.HasPrefix(name, "mac") {
				t.Errorf("%s counts under %s", name, group)
			}
		}
	})
}
