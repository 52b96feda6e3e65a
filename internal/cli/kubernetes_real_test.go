//go:build kubernetes

package cli

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"drover"
	"drover/internal/kubetest"
)

// realCluster is a control plane of real programs, as testdata/kubernetes/build.sh builds them, whose kubelets kwok plays.
type realCluster struct {
	t         *testing.T
	dir       string
	authority *kubetest.Authority
	api       *kubetest.API
}

// ownerToken is that of the cluster's owner.
const ownerToken = "owner"

func newRealCluster(t *testing.T) *realCluster {
	t.Helper()
	bin := os.Getenv("KUBERNETES_BIN")
	if bin == "" || os.Getenv("CLUSTER_AUTOSCALER") == "" {
		t.Skip("CLUSTER_AUTOSCALER names no cluster-autoscaler, or KUBERNETES_BIN no control plane: make e2e-kubernetes")
	}
	c := &realCluster{t: t, dir: t.TempDir(), authority: kubetest.NewAuthority(t)}
	cert, key := c.authority.Issue("apiserver")
	server, etcd, peers := freeAddress(t), freeAddress(t), freeAddress(t)
	_, port, _ := strings.Cut(server, ":")
	c.write("tokens.csv", ownerToken+",owner,owner,system:masters\n")
	c.api = &kubetest.API{URL: "https://" + server, Token: ownerToken, HTTP: &http.Client{Transport: &http.Transport{TLSClientConfig: c.authority.Client(nil)}}}
	kubeconfig := c.kubeconfig("owner.kubeconfig")
	c.start(filepath.Join(bin, "etcd"), "--data-dir", filepath.Join(c.dir, "etcd"), "--listen-client-urls", "http://"+etcd, "--advertise-client-urls", "http://"+etcd,
		"--listen-peer-urls", "http://"+peers, "--initial-advertise-peer-urls", "http://"+peers, "--initial-cluster", "default=http://"+peers)
	c.start(filepath.Join(bin, "kube-apiserver"), "--etcd-servers", "http://"+etcd, "--bind-address", "127.0.0.1", "--secure-port", port, "--tls-cert-file", cert, "--tls-private-key-file", key,
		"--token-auth-file", filepath.Join(c.dir, "tokens.csv"), "--enable-bootstrap-token-auth", "--endpoint-reconciler-type=none", "--disable-admission-plugins=ServiceAccount",
		"--service-account-issuer", "https://"+server, "--service-account-key-file", key, "--service-account-signing-key-file", key)
	eventually(t, time.Minute, "the API server is ready", func() bool { return c.api.Do(t.Context(), "GET", "/api/v1/nodes", nil, nil) == nil })
	for _, name := range []string{"kube-controller-manager", "kube-scheduler"} {
		c.start(filepath.Join(bin, name), "--kubeconfig", kubeconfig, "--leader-elect=false", "--secure-port=0")
	}
	c.start(filepath.Join(bin, "kwok"), "--kubeconfig", kubeconfig, "--config", filepath.Join(bin, "..", "stages.yaml"), "--manage-all-nodes=false",
		"--manage-nodes-with-annotation-selector", kubetest.KwokAnnotation+"=fake")
	return c
}

func (c *realCluster) write(name, text string) string {
	path := filepath.Join(c.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
	return path
}

func (c *realCluster) kubeconfig(name string) string {
	return c.write(name, fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"+
		"clusters: [{name: c, cluster: {server: %s, certificate-authority: %s}}]\nusers: [{name: u, user: {token: %s}}]\n", c.api.URL, c.authority.File, ownerToken))
}

// start runs a program until the test ends. Its output is shown if the test has failed.
func (c *realCluster) start(program string, args ...string) {
	c.t.Helper()
	var out safeBuffer
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.dir, &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if c.t.Failed() {
			c.t.Logf("%s:\n%s", filepath.Base(program), out.tail())
		}
	})
}

// realPlace serves a node group of a real cluster with its real autoscaler.
type realPlace struct{ *groupPlace }

func newRealPlace(t *testing.T) *realPlace {
	t.Helper()
	c := newRealCluster(t)
	p := &realPlace{&groupPlace{daemonPlace: &daemonPlace{place: newPlace(t), address: freeAddress(t)}, api: c.api, grpc: freeAddress(t)}}
	cert, key := c.authority.Issue("server")
	p.write("join.sh", fmt.Sprintf("#!/bin/sh\nexec kubelet -kwok -server '%s' -ca '%s' -token '{token}' -name '{name}' -provider-id {node_id} -labels '{labels}' -taints '{taints}' -cpu 8\n", c.api.URL, c.authority.File))
	p.write("drover.yaml", fmt.Sprintf(`version: 1
fleet: lab
listen: %s
clouds: {here: {driver: local, zones: [a], list_interval: 1s, types: [{name: big, vcpus: 8, memory: 32Gi, disk: 100Gi, price: 0.36}]}}
pools: {one: {zones: [a], login: none, kubernetes: {max: 10, join: join.sh}}}
kubernetes: {listen: "%s", tls: {cert: %s, key: %s, client_ca: %s}, kubeconfig: %s}
`, p.address, p.grpc, cert, key, c.authority.File, c.kubeconfig("drover.kubeconfig")))
	t.Cleanup(p.end)
	p.serve()
	clientCert, clientKey := c.authority.Issue("autoscaler")
	cloud := c.write("cloud-config", fmt.Sprintf("address: %s\nkey: %s\ncert: %s\ncacert: %s\n", p.grpc, clientKey, clientCert, c.authority.File))
	c.start(os.Getenv("CLUSTER_AUTOSCALER"), "--cloud-provider=externalgrpc", "--cloud-config="+cloud, "--kubeconfig="+c.kubeconfig("autoscaler.kubeconfig"), "--leader-elect=false",
		"--scale-down-unneeded-time=10s", "--scale-down-delay-after-add=0s", "--unremovable-node-recheck-timeout=10s")
	return p
}

// step waits for something and notes how long it took.
func (p *realPlace) step(times map[string][]time.Duration, name string, since time.Time, holds func() bool) {
	p.t.Helper()
	eventually(p.t, 2*time.Minute, name, holds)
	times[name] = append(times[name], time.Since(since).Round(100*time.Millisecond))
}

func TestARealClusterGrowsAndShrinks(t *testing.T) {
	p := newRealPlace(t)
	times := map[string][]time.Duration{}
	for range 3 {
		began := time.Now()
		p.must(p.api.Create(t.Context(), kubetest.Replicas("work", 50, "1")))
		p.step(times, "the group is increased", began, func() bool { return len(p.instances()) > 0 })
		p.step(times, "its nodes have lost their startup taint", began, func() bool {
			nodes := p.nodes()
			return len(nodes) >= 7 && !slices.ContainsFunc(nodes, func(n kubetest.Node) bool {
				return !n.Ready() || slices.ContainsFunc(n.Spec.Taints, func(t kubetest.Taint) bool { return strings.HasPrefix(t.Key, drover.StartupTaint) })
			})
		})
		p.step(times, "all pods have nodes", began, func() bool { return p.bound() == 50 })
		began = time.Now()
		p.must(p.api.Delete(t.Context(), "work"))
		p.step(times, "the first node goes", began, func() bool { return len(p.nodes()) < 7 })
		p.step(times, "instances and nodes are gone", began, func() bool { return len(p.nodes()) == 0 && len(p.instances()) == 0 })
	}
	for name, all := range times {
		slices.Sort(all)
		t.Logf("%s: %v", name, all)
	}
}
