//go:build kubernetes

package cli

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"drover"
	"drover/internal/kubetest"
)

// realCluster is a control plane of real programs, built by testdata/kubernetes/build.sh, with kubelets that kwok
// simulates.
type realCluster struct {
	t         *testing.T
	dir       string
	authority *kubetest.Authority
	api       *kubetest.API
}

// accounts are the users who log in with a token of the same name: the cluster's owner, and the service accounts in the
// output of drover kubernetes manifests.
const accounts = `owner,owner,1,system:masters
drover,system:serviceaccount:kube-system:drover,2,system:serviceaccounts
cluster-autoscaler,system:serviceaccount:kube-system:cluster-autoscaler,3,system:serviceaccounts
`

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
	c.write("tokens.csv", accounts)
	c.api = &kubetest.API{URL: "https://" + server, Token: "owner", HTTP: &http.Client{Transport: &http.Transport{TLSClientConfig: c.authority.Client(nil)}}}
	kubeconfig := c.kubeconfig("owner")
	c.start(filepath.Join(bin, "etcd"), "--data-dir", filepath.Join(c.dir, "etcd"), "--listen-client-urls", "http://"+etcd, "--advertise-client-urls", "http://"+etcd,
		"--listen-peer-urls", "http://"+peers, "--initial-advertise-peer-urls", "http://"+peers, "--initial-cluster", "default=http://"+peers)
	c.start(filepath.Join(bin, "kube-apiserver"), "--etcd-servers", "http://"+etcd, "--bind-address", "127.0.0.1", "--secure-port", port, "--tls-cert-file", cert, "--tls-private-key-file", key,
		"--token-auth-file", filepath.Join(c.dir, "tokens.csv"), "--enable-bootstrap-token-auth", "--authorization-mode=RBAC", "--endpoint-reconciler-type=none", "--disable-admission-plugins=ServiceAccount",
		"--service-account-issuer", "https://"+server, "--service-account-key-file", key, "--service-account-signing-key-file", key)
	// It answers before it is ready, but lacks its built-in roles then.
	eventually(t, time.Minute, "the API server is ready", func() bool { return c.api.Do(t.Context(), "GET", "/readyz", nil, nil) == nil })
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

// kubeconfig returns a file with which an account reaches the cluster.
func (c *realCluster) kubeconfig(account string) string {
	return c.write(account+".kubeconfig", fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"+
		"clusters: [{name: c, cluster: {server: %s, certificate-authority: %s}}]\nusers: [{name: u, user: {token: %s}}]\n", c.api.URL, c.authority.File, account))
}

// resources are the paths of objects by kind, without the deployment: the test starts the autoscaler itself.
var resources = map[string]string{
	"ServiceAccount": "/api/v1/namespaces/kube-system/serviceaccounts", "Secret": "/api/v1/namespaces/kube-system/secrets",
	"ClusterRole": rbac + "clusterroles", "ClusterRoleBinding": rbac + "clusterrolebindings",
	"Role": rbac + "namespaces/kube-system/roles", "RoleBinding": rbac + "namespaces/kube-system/rolebindings",
}

const rbac = "/apis/rbac.authorization.k8s.io/v1/"

// apply creates the objects of manifests, and returns the autoscaler's command line and its files.
func (c *realCluster) apply(manifests string) (command []string, files map[string]string) {
	c.t.Helper()
	files = map[string]string{}
	for text := range strings.SplitSeq(manifests, "\n---\n") {
		var m manifest
		body, err := yaml.YAMLToJSON([]byte(text))
		if err = errors.Join(err, yaml.Unmarshal([]byte(text), &m)); err != nil {
			c.t.Fatalf("%v in\n%s", err, text)
		}
		if m.Kind == "Deployment" {
			command = m.Spec.Template.Spec.Containers[0].Command
			continue
		}
		eventually(c.t, 20*time.Second, m.Kind+" "+m.Meta.Name+" is created", func() bool {
			err = c.api.Do(c.t.Context(), "POST", resources[m.Kind], json.RawMessage(body), nil)
			return err == nil || kubetest.IsStatus(err, http.StatusConflict)
		})
		maps.Copy(files, m.Text)
		for name, data := range m.Data {
			decoded, err := base64.StdEncoding.DecodeString(data)
			if err != nil {
				c.t.Fatal(err)
			}
			files[name] = string(decoded)
		}
	}
	return command, files
}

// start runs a program until it is stopped or the test ends. Its output is shown if the test has failed.
func (c *realCluster) start(program string, args ...string) (out *safeBuffer, stop func()) {
	c.t.Helper()
	out = &safeBuffer{}
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.dir, out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	c.t.Cleanup(func() {
		stop()
		if c.t.Failed() {
			c.t.Logf("%s:\n%s", filepath.Base(program), out.tail())
		}
	})
	return out, stop
}

// realPlace serves node groups of a real cluster with its real autoscaler, each with the roles printed for it.
type realPlace struct {
	*groupPlace
	cluster *realCluster
	logs    []*safeBuffer // of the autoscalers
}

func newRealPlace(t *testing.T, faults, more string, flags ...string) *realPlace {
	t.Helper()
	c := newRealCluster(t)
	p := &realPlace{groupPlace: &groupPlace{daemonPlace: &daemonPlace{place: newPlace(t), address: freeAddress(t)}, api: c.api, grpc: freeAddress(t)}, cluster: c}
	// For a real kubelet, kubeadm's roles allow this.
	p.must(c.api.Do(t.Context(), "POST", resources["ClusterRoleBinding"], map[string]any{
		"metadata": kubetest.Meta{Name: "kubelets"}, "roleRef": map[string]string{"kind": "ClusterRole", "name": "system:node"},
		"subjects": []map[string]string{{"kind": "Group", "name": "system:bootstrappers"}},
	}, nil))
	p.openGroups(c.authority, groupSetup{c.kubeconfig("drover"), fmt.Sprintf("-kwok -server '%s' -ca '%s'", c.api.URL, c.authority.File), 0, faults, more})
	cert, key := c.authority.Issue("autoscaler")
	command, files := c.apply(p.drover("kubernetes", "manifests", "--cert", cert, "--key", key, "--ca", c.authority.File))
	for name, text := range files {
		c.write(name, strings.ReplaceAll(text, "/etc/drover", c.dir))
	}
	args := []string{"--kubeconfig=" + c.kubeconfig("cluster-autoscaler"), "--scale-down-unneeded-time=10s", "--scale-down-delay-after-add=0s", "--unremovable-node-recheck-timeout=10s", "--v=4"}
	for _, flag := range command[1:] {
		args = append(args, strings.ReplaceAll(flag, "/etc/drover", c.dir))
	}
	args = append(args, flags...)
	p.autoscale = func() {
		log, stop := c.start(os.Getenv("CLUSTER_AUTOSCALER"), args...)
		p.logs, p.stop = append(p.logs, log), stop
	}
	p.autoscale()
	p.spare = p.budget
	return p
}

// budget creates a disruption budget that forbids all evictions, or removes it.
func (p *realPlace) budget(forbids bool) {
	const budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
	if !forbids {
		p.must(p.api.Do(p.t.Context(), "DELETE", budgets+"/work", nil, nil))
		return
	}
	p.must(p.api.Do(p.t.Context(), "POST", budgets, map[string]any{
		"metadata": kubetest.Meta{Name: "work"}, "spec": map[string]any{"maxUnavailable": 0, "selector": kubetest.Selector{MatchLabels: map[string]string{"app": "work"}}},
	}, nil))
}

// complaint matches a warning or an error in the autoscaler's log, or a failed call. Names of nodes and pods are left
// out.
var (
	complaint = regexp.MustCompile(`(?m)^([WEF]\d{4} \S+ +\d+ |I\d{4} \S+ +\d+ externalgrpc\S+ Error )(.*)$`)
	names     = regexp.MustCompile(`\S*(lab-|work-|drover://|drover-asked://)\S*`)
)

// complaints counts the autoscalers' complaints.
func (p *realPlace) complaints() map[string]int {
	all := map[string]int{}
	for _, log := range p.logs {
		for _, m := range complaint.FindAllStringSubmatch(log.String(), -1) {
			all[names.ReplaceAllString(m[2], "NAME")]++
		}
	}
	return all
}

// wantNoComplaints logs the autoscalers' complaints. None may be about missing rights, a failed call, or a cluster that
// is not ready, except those given.
func (p *realPlace) wantNoComplaints(but ...string) {
	p.t.Helper()
	for text, n := range p.complaints() {
		p.t.Logf("the autoscaler complained %d times: %s", n, text)
		bad := strings.Contains(text, "forbidden") || strings.Contains(text, "gRPC call") || strings.Contains(text, "not ready for autoscaling")
		if bad && !slices.ContainsFunc(but, func(s string) bool { return strings.Contains(text, s) }) {
			p.t.Errorf("that complaint is unexpected")
		}
	}
}

// step waits for something and records how long it took.
func (p *realPlace) step(times map[string][]time.Duration, name string, since time.Time, holds func() bool) {
	p.t.Helper()
	for pace := time.NewTicker(50 * time.Millisecond); !holds(); <-pace.C {
		if time.Since(since) > 5*time.Minute {
			p.t.Fatalf("after %v, still not true: %s", time.Since(since), name)
		}
	}
	times[name] = append(times[name], time.Since(since).Round(100*time.Millisecond))
}

// targets returns the sum of both groups' targets.
func (p *realPlace) targets() int {
	one, _ := p.target("one")
	two, _ := p.target("two")
	return one + two
}

// tainted returns how many nodes have a taint with a prefix.
func (p *realPlace) tainted(key string) (n int) {
	for _, node := range p.nodes() {
		if slices.ContainsFunc(node.Spec.Taints, func(t kubetest.Taint) bool { return strings.HasPrefix(t.Key, key) }) {
			n++
		}
	}
	return n
}

// running returns how many pods are running.
func (p *realPlace) running() (n int) {
	p.t.Helper()
	pods, err := p.api.Pods(p.t.Context())
	p.must(err)
	for _, pod := range pods {
		if pod.Status.Phase == "Running" {
			n++
		}
	}
	return n
}

// TestARealClusterTimes measures how fast a real cluster grows and shrinks, with the autoscaler's own scan interval.
func TestARealClusterTimes(t *testing.T) {
	p := newRealPlace(t, "{}", "")
	times := map[string][]time.Duration{}
	for range 3 {
		began := time.Now()
		p.must(p.api.Create(t.Context(), kubetest.Replicas("work", 50, "1")))
		p.step(times, "created: IncreaseSize", began, func() bool { return p.targets() > 0 })
		p.step(times, "created: 7 nodes have joined", began, func() bool { return len(p.nodes()) >= 7 && p.tainted(drover.StartupTaint) == 0 })
		p.step(times, "created: all pods run", began, func() bool { return p.running() == 50 })
		began = time.Now()
		p.must(p.api.Delete(t.Context(), "work"))
		p.step(times, "deleted: the first taint", began, func() bool { return p.tainted("ToBeDeleted") > 0 })
		p.step(times, "deleted: DeleteNodes", began, func() bool { return p.targets() < 7 })
		p.step(times, "deleted: no nodes", began, func() bool { return len(p.nodes()) == 0 })
		p.agrees(0)
	}
	for _, name := range slices.Sorted(maps.Keys(times)) {
		t.Logf("%s: %v", name, slices.Sorted(slices.Values(times[name])))
	}
	p.wantNoComplaints()
}

func TestARealCluster(t *testing.T) {
	for _, story := range groupStories {
		t.Run(story.name, func(t *testing.T) {
			p := newRealPlace(t, story.faults, story.more, "--scan-interval=1s")
			story.tell(p.groupPlace)
			p.wantNoComplaints("code = Unavailable") // from a killed daemon
		})
	}
}
