package kubenodes

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"drover"
	"drover/internal/kubetest"
)

// api is an API server that keeps nodes, pods and secrets in memory.
type api struct {
	t       *testing.T
	mu      sync.Mutex // held during each call
	before  func(r *http.Request)
	nodes   map[string]*node
	pods    map[string]*pod // by namespace/name
	secrets map[string]secret
	forbids string // a path for which the account has no rights, with its method
	refuses bool   // a disruption budget forbids all evictions
	down    bool
	empty   bool // every response is an empty object
	version int
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := func(v any) {
		if err := json.NewEncoder(w).Encode(v); err != nil {
			a.t.Error(err)
		}
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		a.t.Error(err)
	}
	if a.before != nil {
		a.before(r)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	path, rest := strings.TrimPrefix(r.URL.Path, "/api/v1/"), ""
	switch {
	case a.down || r.Header.Get("Authorization") != "Bearer secret":
		w.WriteHeader(http.StatusServiceUnavailable)
	case a.empty:
		answer(map[string]any{})
	case r.Method+" "+path == a.forbids:
		w.WriteHeader(http.StatusForbidden)
	case r.Method == "GET" && path == "nodes":
		all := list[node]{Kind: "NodeList"}
		for _, n := range a.nodes {
			all.Items = append(all.Items, *n)
		}
		answer(all)
	case r.Method == "PATCH" && strings.HasPrefix(path, "nodes/"):
		n := a.nodes[strings.TrimPrefix(path, "nodes/")]
		var change struct {
			Meta meta `json:"metadata"`
			Spec struct {
				Unschedulable *bool    `json:"unschedulable"`
				Taints        *[]taint `json:"taints"`
			} `json:"spec"`
		}
		if err := json.Unmarshal(body, &change); err != nil {
			a.t.Error(err)
		}
		if change.Meta.Version != n.Meta.Version {
			w.WriteHeader(http.StatusConflict)
			return
		}
		for key, value := range change.Meta.Labels {
			n.Meta.Labels[key] = value
		}
		for key, value := range change.Meta.Annotations {
			if n.Meta.Annotations[key] = value; value == "" { // null
				delete(n.Meta.Annotations, key)
			}
		}
		if change.Spec.Taints != nil {
			n.Spec.Taints = *change.Spec.Taints
		}
		if change.Spec.Unschedulable != nil {
			n.Spec.Unschedulable = *change.Spec.Unschedulable
		}
		a.version++
		n.Meta.Version = fmt.Sprint(a.version)
		answer(n)
	case r.Method == "DELETE" && strings.HasPrefix(path, "nodes/"):
		delete(a.nodes, strings.TrimPrefix(path, "nodes/"))
	case r.Method == "GET" && path == "pods":
		all, on := list[pod]{Kind: "PodList"}, strings.TrimPrefix(r.URL.Query().Get("fieldSelector"), "spec.nodeName=")
		for _, p := range a.pods {
			if p.Spec.Node == on {
				all.Items = append(all.Items, *p)
			}
		}
		answer(all)
	case strings.HasSuffix(path, "/eviction"):
		if a.refuses {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		parts := strings.Split(path, "/")
		delete(a.pods, parts[1]+"/"+parts[3])
	case strings.HasPrefix(path, "namespaces/kube-system/secrets"):
		rest = strings.TrimPrefix(strings.TrimPrefix(path, "namespaces/kube-system/secrets"), "/")
		switch r.Method {
		case "GET":
			all := list[secret]{Kind: "SecretList"}
			for _, s := range a.secrets {
				s.Stored = map[string][]byte{}
				for key, value := range s.Data {
					s.Stored[key] = []byte(value)
				}
				s.Data = nil
				all.Items = append(all.Items, s)
			}
			answer(all)
		case "POST":
			var s secret
			if err := json.Unmarshal(body, &s); err != nil {
				a.t.Error(err)
			}
			a.secrets[s.Meta.Name] = s
		case "DELETE":
			delete(a.secrets, rest)
		}
	default:
		a.t.Errorf("%s %s is not supported", r.Method, r.URL)
	}
}

// fleet is one group with instances. It records the reports about them.
type fleet struct {
	nodes []drover.GroupNode
	gone  []string
	mu    sync.Mutex
	told  []string // guarded by mu during a round
}

func (f *fleet) NodeGroups() (*drover.NodeGroups, <-chan struct{}) {
	return drover.NewNodeGroups([]drover.NodeGroup{{Name: "web", Nodes: f.nodes}}), nil
}

func (f *fleet) TellNode(_ context.Context, instance int64, word, why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told = append(f.told, strings.TrimRight(fmt.Sprintf("%d %s %s", instance, word, why), " "))
}

func (f *fleet) GoneNode(_ context.Context, group, id string) (bool, error) {
	return group == "web" && slices.Contains(f.gone, id), nil
}

func (f *fleet) JoinToken(name string) drover.Secret {
	return drover.NewSecret((name + "xxxxxx")[:6] + "." + "0123456789abcdef")
}

type world struct {
	*testing.T
	api   *api
	fleet *fleet
	k     *Keeper
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, api: &api{t: t, nodes: map[string]*node{}, pods: map[string]*pod{}, secrets: map[string]secret{}}, fleet: &fleet{}}
	server := httptest.NewServer(w.api)
	t.Cleanup(server.Close)
	config := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\nclusters: [{name: k, cluster: {server: %s}}]\nusers: [{name: u, user: {token: secret}}]\n", server.URL)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cluster, err := Open(config)
	if err != nil {
		t.Fatal(err)
	}
	look := func(string) Look {
		return Look{Labels: map[string]string{"tier": "batch"}, Taints: []string{drover.StartupTaint + "drover=:NoSchedule", "batch=yes:NoSchedule"}}
	}
	w.k = &Keeper{Fleet: w.fleet, Cluster: cluster, Name: "f", Look: look, JoinTimeout: time.Minute, Log: slog.New(slog.DiscardHandler)}
	return w
}

// join registers a node with the startup taint.
func (w *world) join(name, id string, ready bool) *node {
	n := &node{Meta: meta{Name: name, Version: "0", Labels: map[string]string{}, Annotations: map[string]string{}}}
	n.Spec.ProviderID, n.Spec.Taints = id, []taint{{Key: drover.StartupTaint + "drover", Effect: "NoSchedule"}}
	w.api.nodes[name] = n
	if ready {
		w.ready(n)
	}
	return n
}

func (w *world) ready(n *node) {
	n.Status.Conditions = append(n.Status.Conditions, condition{Type: "Ready", Status: "True"})
}

// pod puts a pod on a node. A ReplicaSet owns the pod unless change says otherwise.
func (w *world) pod(name, on string, change func(*pod)) {
	namespace, base, _ := strings.Cut(name, "/")
	p := &pod{Meta: meta{Name: base, Namespace: namespace, Owners: []owner{{"ReplicaSet"}}}}
	p.Spec.Node = on
	if change != nil {
		change(p)
	}
	w.api.pods[name] = p
}

func (w *world) round() error { return w.k.round(w.Context()) }

func (w *world) wantTold(want ...string) {
	w.Helper()
	if err := w.round(); err != nil {
		w.Error(err)
	}
	if slices.Sort(w.fleet.told); !slices.Equal(w.fleet.told, want) {
		w.Errorf("reported %q, want %q", w.fleet.told, want)
	}
	w.fleet.told = nil
}

// covers S6 S12
func TestWorkingNodesAreAdmitted(t *testing.T) {
	w := newWorld(t)
	w.fleet.nodes = []drover.GroupNode{{ID: "c:///1", Instance: 1, Name: "f-n-1", State: drover.NodeRunning, Zone: "z", Type: "big", GPUs: 2}}
	other := w.join("f-n-1", "c:///2", true)
	w.wantTold(`1 waits the node f-n-1 has the provider ID "c:///2", but must have "c:///1"`)
	n := w.join("one", "c:///1", false)
	n.Meta.Labels["topology.kubernetes.io/zone"] = "z1"
	w.wantTold("1 waits its node is not ready")
	w.ready(n)
	n.Status.Conditions = append(n.Status.Conditions, condition{Type: "NetworkUnavailable", Status: "True", Message: "no route yet"})
	w.wantTold("1 waits its node is not ready: no route yet")
	w.wantTold()
	n.Status.Conditions = n.Status.Conditions[:1]
	w.wantTold("1 joined")
	if want := []taint{{Key: "batch", Value: "yes", Effect: "NoSchedule"}}; !slices.Equal(n.Spec.Taints, want) {
		t.Errorf("its taints are %v, want %v", n.Spec.Taints, want)
	}
	if n.Meta.Labels["tier"] != "batch" || n.Meta.Labels[GroupLabel] != "web" || n.Meta.Labels[fleetLabel] != "f" {
		t.Errorf("its labels are %v", n.Meta.Labels)
	}
	if n.Meta.Labels["node.kubernetes.io/instance-type"] != "big" || n.Meta.Labels["topology.kubernetes.io/zone"] != "z1" {
		t.Errorf("its labels are %v, want the template's and the zone from its cloud's controller", n.Meta.Labels)
	}
	if n.Meta.Labels[drover.GPULabel] != drover.AnyGPU {
		t.Errorf("its labels are %v, want the label that makes the autoscaler wait for its GPUs", n.Meta.Labels)
	}
	if len(other.Spec.Taints) != 1 || len(other.Meta.Labels) != 0 {
		t.Errorf("a node with another provider id was changed: %+v", other)
	}
}

// covers S6
func TestOtherTaintsOfANodeStay(t *testing.T) {
	w := newWorld(t)
	w.fleet.nodes = []drover.GroupNode{{ID: "c:///1", Instance: 1, Name: "f-n-1", State: drover.NodeRunning}}
	look := w.k.Look("web")
	look.Taints = append(look.Taints, "batch=yes:NoExecute")
	w.k.Look = func(string) Look { return look }
	n := w.join("one", "c:///1", true)
	others := []taint{{Key: drover.StartupTaint + "storage", Effect: "NoSchedule"}, {Key: "batch", Value: "yes", Effect: "NoSchedule"}}
	n.Spec.Taints = append(n.Spec.Taints, others...)
	w.wantTold("1 joined")
	if want := append(others, taint{Key: "batch", Value: "yes", Effect: "NoExecute"}); !slices.Equal(n.Spec.Taints, want) {
		t.Errorf("its taints are %v, want %v: another component's startup taint, and both effects", n.Spec.Taints, want)
	}
}

func TestANodeThatRegistersAgainIsAdmittedAgain(t *testing.T) {
	w := newWorld(t)
	w.fleet.nodes = []drover.GroupNode{{ID: "c:///1", Instance: 1, Name: "f-n-1", State: drover.NodeRunning, Joined: true}}
	w.wantTold("1 waits the cluster has no node for it")
	n := w.join("one", "c:///1", false)
	w.wantTold("1 waits its node is not ready")
	w.ready(n)
	w.wantTold("1 waits")
	if has(n.Spec.Taints, drover.StartupTaint+"drover") || n.Meta.Labels[GroupLabel] != "web" {
		t.Errorf("its taints are %v, and its labels %v", n.Spec.Taints, n.Meta.Labels)
	}
	was := n.Meta.Version
	w.wantTold()
	if n.Meta.Version != was {
		t.Error("it was changed once more")
	}
}

func TestOfTwoNodesWithAProviderIDTheWorkingOneCounts(t *testing.T) {
	w := newWorld(t)
	w.fleet.nodes = []drover.GroupNode{{ID: "c:///1", Instance: 1, Name: "f-n-1", State: drover.NodeRunning}}
	for i := range 10 { // the order in which they are listed is random
		w.join(fmt.Sprintf("old-%d", i), "c:///1", false)
	}
	n := w.join("new", "c:///1", true)
	w.wantTold("1 joined")
	if has(n.Spec.Taints, drover.StartupTaint+"drover") {
		t.Errorf("its taints are %v", n.Spec.Taints)
	}
}

func TestWhatTheAccountMayNotDoIsReported(t *testing.T) {
	for forbids, want := range map[string]string{
		"GET namespaces/kube-system/secrets": "1 waits its node may have no token to join with: ",
		"PATCH nodes/one":                    "1 waits Drover cannot label and taint its node: ",
	} {
		w := newWorld(t)
		w.fleet.nodes = []drover.GroupNode{{ID: "c:///1", Instance: 1, Name: "f-n-1", State: drover.NodeRunning}}
		if w.api.forbids = forbids; strings.HasPrefix(forbids, "PATCH") {
			w.join("one", "c:///1", true)
		}
		for range 2 { // tokens are given while nodes are looked after, so the first round does not know
			if err := w.round(); err == nil {
				t.Errorf("without the right to %s, the round succeeded", forbids)
			}
		}
		if len(w.fleet.told) != 1 || !strings.HasPrefix(w.fleet.told[0], want) {
			t.Errorf("reported %q, want %q", w.fleet.told, want)
		}
	}
}

// covers S8
func TestAbsentNodesAreReported(t *testing.T) {
	w := newWorld(t)
	w.fleet.nodes = []drover.GroupNode{
		{ID: "c:///1", Instance: 1, Name: "f-n-1", State: drover.NodeRunning, Overdue: drover.TimeOf(time.Now().Add(-time.Second))},
		{ID: "c:///2", Instance: 2, Name: "f-n-2", State: drover.NodeRunning, Overdue: drover.TimeOf(time.Now().Add(time.Hour))},
	}
	w.wantTold("1 absent")
	w.join("one", "c:///1", false)
	w.wantTold("1 absent")
	w.api.down = true
	for _, want := range [][]string{{"1 waits its node's state is not known: GET /api/v1/nodes: 503 Service Unavailable", "2 waits its node's state is not known: GET /api/v1/nodes: 503 Service Unavailable"}, nil} {
		if err := w.round(); err == nil || !slices.Equal(w.fleet.told, want) {
			t.Errorf("about a cluster that does not answer, reported %q (%v), want %q", w.fleet.told, err, want)
		}
		w.fleet.told = nil
	}
}

func TestTheTimeToJoinStopsWhileTheClusterDoesNotAnswer(t *testing.T) {
	w := newWorld(t)
	w.fleet.nodes = []drover.GroupNode{{ID: "c:///1", Instance: 1, Name: "f-n-1", State: drover.NodeRunning, Overdue: drover.TimeOf(time.Now().Add(time.Minute))}}
	w.wantTold()
	w.api.down, w.k.last = true, w.k.last.Add(-time.Hour) // an hour passes
	w.fleet.nodes[0].Overdue = drover.TimeOf(time.Now().Add(-time.Minute))
	if err := w.round(); err == nil {
		t.Error("the cluster answered")
	}
	w.api.down, w.fleet.told = false, nil
	w.wantTold("1 waits")
	w.k.seen[1].lost = time.Second
	w.wantTold("1 absent")
}

func TestInstancesHaveATokenUntilTheirNodesJoin(t *testing.T) {
	w := newWorld(t)
	w.fleet.nodes = []drover.GroupNode{{ID: "c:///1", Instance: 1, Name: "aaaaaa", State: drover.NodeCreating}, {ID: "c:///2", Instance: 2, Name: "bbbbbb", State: drover.NodeRunning, Joined: true}}
	w.wantTold("2 waits the cluster has no node for it")
	s := w.api.secrets["bootstrap-token-aaaaaa"]
	if len(w.api.secrets) != 1 || s.Data["token-secret"] != "0123456789abcdef" || s.Data["expiration"] == "" || s.Type != "bootstrap.kubernetes.io/token" {
		t.Errorf("the tokens are %+v", w.api.secrets)
	}
	s.Data["expiration"] = "2001-01-01T00:00:00Z" // before a controller restarted
	w.wantTold()
	if renewed := w.api.secrets["bootstrap-token-aaaaaa"]; renewed.Data["expiration"] < "2002" || renewed.Data["token-secret"] != s.Data["token-secret"] {
		t.Errorf("an expired token was not renewed: %+v", renewed)
	}
	w.fleet.nodes[0].Joined = true
	w.wantTold("1 waits the cluster has no node for it")
	if len(w.api.secrets) != 0 {
		t.Errorf("the tokens are %+v", w.api.secrets)
	}
}

// covers S13
func TestLeavingNodesAreDrained(t *testing.T) {
	leaving := func(w *world) *node {
		w.fleet.nodes = []drover.GroupNode{{ID: "c:///1", Instance: 1, Name: "f-n-1", State: drover.NodeDeleting, Joined: true, Leaving: &drover.Reason{Text: "old"}}}
		return w.join("one", "c:///1", true)
	}
	t.Run("the node is cordoned, and its movable pods are evicted", func(t *testing.T) {
		w := newWorld(t)
		n := leaving(w)
		w.pod("default/a", "one", nil)
		w.pod("default/d", "one", func(p *pod) { p.Meta.Owners[0].Kind = "DaemonSet" })
		w.pod("kube-system/dns", "one", nil)
		w.pod("default/elsewhere", "two", nil)
		w.wantTold("1 waits its node is being drained; pods left: 2")
		if !n.Spec.Unschedulable || len(w.api.pods) != 2 {
			t.Errorf("cordoned %t, with %d pods", n.Spec.Unschedulable, len(w.api.pods))
		}
		w.wantTold("1 emptied")
	})
	t.Run("an eviction that fails counts beside one that a disruption budget refuses", func(t *testing.T) {
		w := newWorld(t)
		leaving(w)
		w.pod("default/a", "one", nil)
		w.pod("default/b", "one", nil)
		w.api.refuses = true
		w.api.forbids = "POST namespaces/default/pods/b/eviction"
		if err := w.round(); err == nil || !strings.Contains(err.Error(), "pod default/b cannot be evicted") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a slow call, for a token or a pod, delays neither another node nor another pod", func(t *testing.T) {
		w := newWorld(t)
		leaving(w)
		w.fleet.nodes = append(w.fleet.nodes, drover.GroupNode{ID: "c:///2", Instance: 2, Name: "f-n-2", State: drover.NodeDeleting, Joined: true, Taken: true, Leaving: &drover.Reason{Text: "reclaimed"}})
		w.join("two", "c:///2", true)
		w.pod("default/a", "one", nil)
		w.pod("default/b", "one", nil)
		w.pod("default/c", "two", nil)
		var evictions sync.WaitGroup
		evictions.Add(3)
		all := make(chan struct{})
		go func() { evictions.Wait(); close(all) }()
		w.api.before = func(r *http.Request) {
			switch {
			case strings.HasSuffix(r.URL.Path, "/eviction"):
				evictions.Done()
			case !strings.HasSuffix(r.URL.Path, "/secrets"):
				return
			}
			select {
			case <-all:
			case <-r.Context().Done():
				t.Errorf("%s was answered before the others were asked", r.URL.Path)
			}
		}
		w.wantTold("1 waits its node is being drained; pods left: 2", "2 waits its node is being drained; pods left: 1")
	})
	t.Run("a node that is kept after all waits for nothing, and is uncordoned", func(t *testing.T) {
		w := newWorld(t)
		n := leaving(w)
		n.Spec.Taints = nil
		w.pod("default/a", "one", nil)
		w.api.refuses = true
		w.wantTold("1 waits its node cannot be drained: pod default/a cannot be evicted: POST /api/v1/namespaces/default/pods/a/eviction: 429 Too Many Requests")
		w.fleet.nodes[0].State, w.fleet.nodes[0].Leaving = drover.NodeRunning, nil
		w.fleet.nodes[0].Held = true
		w.wantTold("1 waits")
		if !n.Spec.Unschedulable {
			t.Error("a node that an operator holds was uncordoned")
		}
		w.fleet.nodes[0].Held = false
		w.wantTold()
		if n.Spec.Unschedulable || len(n.Meta.Annotations) > 0 {
			t.Errorf("cordoned %t, annotations %v", n.Spec.Unschedulable, n.Meta.Annotations)
		}
	})
	t.Run("a node that somebody else cordoned stays cordoned", func(t *testing.T) {
		w := newWorld(t)
		n := leaving(w)
		n.Spec.Taints, n.Spec.Unschedulable = nil, true
		w.pod("default/a", "one", nil)
		w.wantTold("1 waits its node is being drained; pods left: 1")
		w.fleet.nodes[0].State, w.fleet.nodes[0].Leaving = drover.NodeRunning, nil
		w.wantTold("1 waits")
		if !n.Spec.Unschedulable {
			t.Error("it was uncordoned")
		}
	})
	t.Run("evictions wait for a disruption budget", func(t *testing.T) {
		w := newWorld(t)
		leaving(w)
		w.pod("default/a", "one", nil)
		w.api.refuses = true
		w.wantTold("1 waits its node cannot be drained: pod default/a cannot be evicted: POST /api/v1/namespaces/default/pods/a/eviction: 429 Too Many Requests")
		w.wantTold()
		w.api.refuses = false
		w.wantTold("1 waits its node is being drained; pods left: 1")
		w.wantTold("1 emptied")
	})
	for name, c := range map[string]struct {
		pod    string
		change func(*pod)
		allow  Drain
	}{
		"a bare pod":               {"default/a", func(p *pod) { p.Meta.Owners = nil }, Drain{BarePods: true}},
		"a pod with local storage": {"default/a", func(p *pod) { p.Spec.Volumes = []map[string]any{{"emptyDir": map[string]any{}}} }, Drain{LocalStorage: true}},
		"a bare kube-system pod":   {"kube-system/a", func(p *pod) { p.Meta.Owners = nil }, Drain{SystemPods: true}},
	} {
		t.Run(name+" prevents the drain, unless it is allowed", func(t *testing.T) {
			w := newWorld(t)
			n := leaving(w)
			w.pod(c.pod, "one", c.change)
			if err := w.round(); err == nil || n.Spec.Unschedulable || len(w.api.pods) != 1 {
				t.Errorf("cordoned %t, with %d pods: %v", n.Spec.Unschedulable, len(w.api.pods), err)
			}
			if len(w.fleet.told) != 1 || !strings.HasPrefix(w.fleet.told[0], "1 waits its node cannot be drained: "+c.pod) {
				t.Errorf("reported %q", w.fleet.told)
			}
			w.fleet.told, w.k.Drain = nil, c.allow
			w.wantTold("1 waits its node is being drained; pods left: 1")
			w.wantTold("1 emptied")
		})
	}
	t.Run("an empty response does not mean that the node is gone", func(t *testing.T) {
		w := newWorld(t)
		leaving(w)
		w.api.empty = true
		if err := w.round(); drover.KindOf(err) != drover.KindTransient || slices.Contains(w.fleet.told, "1 emptied") {
			t.Errorf("reported %q: %v", w.fleet.told, err)
		}
	})
	t.Run("pods that do not end after their eviction are reported", func(t *testing.T) {
		w := newWorld(t)
		leaving(w)
		w.pod("default/a", "one", func(p *pod) { p.Meta.Deleted = "2026-01-02T03:04:05Z" })
		w.wantTold("1 waits its node is being drained; pods left: 1, all of them terminating, such as default/a")
	})
	t.Run("a node that is not ready does not wait for pods that should have terminated", func(t *testing.T) {
		w := newWorld(t)
		leaving(w).Status.Conditions[0].Status = "Unknown"
		w.pod("default/a", "one", func(p *pod) { p.Meta.Deleted = "2026-01-02T03:04:05Z" })
		w.pod("default/b", "one", func(p *pod) { p.Meta.Deleted = "9999-01-02T03:04:05Z" })
		w.wantTold("1 waits its node is being drained; pods left: 1, all of them terminating, such as default/b")
		delete(w.api.pods, "default/b")
		w.wantTold("1 emptied")
	})
	t.Run("an interrupted node is tainted and loses all its pods", func(t *testing.T) {
		w := newWorld(t)
		n := leaving(w)
		w.fleet.nodes[0].Taken = true
		w.pod("default/a", "one", func(p *pod) { p.Meta.Owners = nil })
		w.wantTold("1 waits its node is being drained; pods left: 1")
		if !slices.Contains(n.Spec.Taints, taint{Key: interruptedTaint, Effect: "NoSchedule"}) || !n.Spec.Unschedulable || len(w.api.pods) != 0 {
			t.Errorf("taints %v, cordoned %t, with %d pods", n.Spec.Taints, n.Spec.Unschedulable, len(w.api.pods))
		}
	})
	t.Run("after the timeout the remaining pods are left alone", func(t *testing.T) {
		w := newWorld(t)
		leaving(w)
		w.pod("default/a", "one", nil)
		w.api.refuses = true
		w.k.Drain.Timeout = time.Hour
		refused := "1 waits its node cannot be drained: pod default/a cannot be evicted: POST /api/v1/namespaces/default/pods/a/eviction: 429 Too Many Requests"
		w.wantTold(refused)
		w.k.seen[1].began = time.Now().Add(-2 * time.Hour)
		why := w.fleet.nodes[0].Leaving
		w.fleet.nodes[0].Leaving = nil // an operator holds it for a while
		w.wantTold("1 waits")
		w.fleet.nodes[0].Leaving = why
		w.wantTold(refused)
		w.k.seen[1].began = time.Now().Add(-2 * time.Hour)
		w.wantTold("1 emptied")
	})
	t.Run("the timeout does not begin again with the controller", func(t *testing.T) {
		w := newWorld(t)
		leaving(w).Meta.Annotations = map[string]string{cordonedNote: "true"}
		w.pod("default/a", "one", nil)
		w.api.refuses = true
		w.k.Drain.Timeout = time.Hour
		w.fleet.nodes[0].Leaving.Since = drover.TimeOf(time.Now().Add(-2 * time.Hour))
		w.wantTold("1 emptied")
	})
	t.Run("pods are evicted even if no controller ran until the timeout", func(t *testing.T) {
		w := newWorld(t)
		leaving(w)
		w.pod("default/a", "one", nil)
		w.k.Drain.Timeout = time.Hour
		w.fleet.nodes[0].Leaving.Since = drover.TimeOf(time.Now().Add(-2 * time.Hour))
		w.wantTold("1 waits its node is being drained; pods left: 1")
		w.wantTold("1 emptied")
	})
	t.Run("an instance without a Node object counts as emptied", func(t *testing.T) {
		w := newWorld(t)
		leaving(w)
		delete(w.api.nodes, "one")
		w.wantTold("1 emptied")
	})
}

// A pod may keep a node for days, and a round follows every two seconds.
func TestAProblemThatLastsIsNotLoggedInEveryRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		k := &Keeper{Log: slog.New(slog.NewTextHandler(&log, nil))}
		logged := func(err error, want int) {
			t.Helper()
			if k.report(err); strings.Count(log.String(), "\n") != want {
				t.Errorf("logged %q, want %d lines", log.String(), want)
			}
		}
		logged(errors.New("one"), 1)
		time.Sleep(pace)
		logged(errors.New("one"), 1)
		logged(errors.New("two"), 2)
		time.Sleep(reminder)
		logged(errors.New("two"), 3)
		logged(nil, 3)
		logged(errors.New("two"), 4)
		logged(drover.Errorf(drover.KindUnreachable, "read tcp 10.0.0.2:40001->10.0.0.1:6443: connection reset by peer"), 5)
		logged(drover.Errorf(drover.KindUnreachable, "read tcp 10.0.0.2:40002->10.0.0.1:6443: connection reset by peer"), 5)
	})
}

// covers S7
func TestNodesOfGoneInstancesAreRemoved(t *testing.T) {
	w := newWorld(t)
	for name, id := range map[string]string{"gone": "c:///1", "unknown": "c:///2", "foreign": "c:///3", "plane": ""} {
		n := w.join(name, id, true)
		if name != "foreign" && name != "plane" {
			n.Meta.Labels[fleetLabel], n.Meta.Labels[GroupLabel] = "f", "web"
		}
	}
	w.api.nodes["plane"].Meta.Labels[fleetLabel], w.api.nodes["plane"].Meta.Labels[GroupLabel] = "f", "web"
	w.fleet.gone = []string{"c:///1", "c:///3", ""} // an instance that its cloud never named is gone, too
	w.wantTold()
	for name, want := range map[string]bool{"gone": false, "unknown": true, "foreign": true, "plane": true} {
		if _, there := w.api.nodes[name]; there != want {
			t.Errorf("node %s exists: %t, want %t", name, there, want)
		}
	}
}

// connect makes the keeper use a kubeconfig in a folder.
func (w *world) connect(dir, cluster, user string) {
	w.Helper()
	path := filepath.Join(dir, "kubeconfig")
	text := fmt.Sprintf("current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\nclusters: [{name: k, cluster: {%s}}]\nusers: [{name: u, user: {%s}}]\n", cluster, user)
	err := os.WriteFile(path, []byte(text), 0o600)
	if err == nil {
		w.k.Cluster, err = Open(path)
	}
	if err != nil {
		w.Fatal(err)
	}
}

func TestATokenFileIsReadAgain(t *testing.T) {
	w := newWorld(t)
	dir := t.TempDir()
	write := func(token string) {
		if err := os.WriteFile(filepath.Join(dir, "token"), []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("expired\n")
	w.connect(dir, "server: "+w.k.Cluster.server, "tokenFile: token")
	if err := w.round(); err == nil {
		t.Error("the expired token was accepted")
	}
	write("secret\n")
	if err := w.round(); err != nil {
		t.Errorf("the new token is not in use: %v", err)
	}
}

func TestAClientCertificateIsReadAgain(t *testing.T) {
	w := newWorld(t)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.TLS.PeerCertificates[0].Subject.CommonName == "expired" {
			rw.WriteHeader(http.StatusUnauthorized) // the connection stays
			return
		}
		w.api.ServeHTTP(rw, r)
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.StartTLS()
	defer server.Close()
	dir, authority := t.TempDir(), kubetest.NewAuthority(t)
	use := func(name string) {
		cert, key := authority.Issue(name)
		if err := errors.Join(os.Rename(cert, filepath.Join(dir, "client.crt")), os.Rename(key, filepath.Join(dir, "client.key"))); err != nil {
			t.Fatal(err)
		}
	}
	use("expired")
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	w.connect(dir, fmt.Sprintf("server: '%s', certificate-authority-data: %s", server.URL, ca), "token: secret, client-certificate: client.crt, client-key: client.key")
	if err := w.round(); err == nil {
		t.Error("the expired certificate was accepted")
	}
	use("new")
	if err := w.round(); err != nil {
		t.Errorf("the new certificate is not in use: %v", err)
	}
}

func TestAClusterIsReachedThroughTheProxyAndUnderTheNameThatItsKubeconfigNames(t *testing.T) {
	w := newWorld(t)
	proxy := httptest.NewServer(w.api) // a client sends it whole URLs
	defer proxy.Close()
	w.connect(t.TempDir(), "server: 'http://nowhere.invalid', tls-server-name: inside, proxy-url: '"+proxy.URL+"'", "token: secret")
	w.wantTold()
	if name := w.k.Cluster.http.Transport.(*http.Transport).TLSClientConfig.ServerName; name != "inside" {
		t.Errorf("the server's certificate must name %q", name)
	}
}

func TestUnusableKubeconfigsAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	for text, want := range map[string]string{
		"current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\nclusters: [{name: k, cluster: {server: x}}]\nusers: [{name: u, user: {exec: {command: aws}}}]": "credential plugin",
		"current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\nclusters: [{name: k, cluster: {server: x, proxy-url: ':'}}]":                                   "proxy-url",
		"current-context: none": "no server", "{": "reading the kubeconfig",
		"current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\nclusters: [{name: k, cluster: {server: x, certificate-authority-data: '!'}}]": "illegal base64",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
