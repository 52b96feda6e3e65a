//go:build e2e || kubernetes

package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"drover"
	"drover/internal/externalgrpc/protos"
	"drover/internal/kubetest"
)

// groupPlace serves two node groups of a cluster, whose autoscaler requests what its pods need. Each node has 8
// processors. The cluster is in memory or real.
type groupPlace struct {
	*daemonPlace
	api        *kubetest.API
	provider   protos.CloudProviderClient
	autoscaler *kubetest.Autoscaler // nil: a real one
	grpc       string
	autoscale  func()          // starts an autoscaler without state
	stop       func()          // stops it
	spare      func(pods bool) // makes a disruption budget forbid all evictions, or removes it
}

// joinScript registers an instance's kubelet at first boot. If there is a folder named "never", one instance removes
// that folder instead, and never registers.
const joinScript = `#!/bin/sh
rmdir '%[1]s/never' 2>/dev/null && exit
exec kubelet %[2]s -token '{token}' -name '{name}' -provider-id {node_id} -labels '{labels}' -taints '{taints}' -cpu 8 -gpus %[3]d
`

// groupSetup is what differs between groupPlaces.
type groupSetup struct {
	kubeconfig string
	kubelet    string // flags with which a kubelet finds its cluster
	gpus       int    // per node
	faults     string // of the cloud
	more       string // keys of kubernetes
}

// openGroups writes the configuration and starts the daemon.
func (p *groupPlace) openGroups(a *kubetest.Authority, s groupSetup) {
	p.t.Helper()
	cert, key := a.Issue("server")
	p.write("join.sh", fmt.Sprintf(joinScript, p.dir, s.kubelet, s.gpus))
	p.write("drover.yaml", fmt.Sprintf(`version: 1
fleet: lab
listen: %s
clouds:
  here:
    driver: local
    faults: %s
    zones: [a, b]
    list_interval: 1s
    types: [{name: big, vcpus: 8, memory: 32Gi, disk: 100Gi, gpus: %d, price: 0.36}]
instances: {probe_interval: 200ms, probe_timeout: 1s, boot_timeout: 30s, shutdown_timeout: 1s}
pools:
  one: {zones: [a], login: none, kubernetes: {max: 10, labels: {tier: batch}, join: join.sh}}
  two: {zones: [b], login: none, kubernetes: {max: 10, labels: {tier: batch}, join: join.sh}}
kubernetes:
  listen: %s
  tls: {cert: %s, key: %s, client_ca: %s}
  kubeconfig: %s
%s`, p.address, s.faults, s.gpus, p.grpc, cert, key, a.File, s.kubeconfig, s.more))
	p.t.Cleanup(p.end)
	p.serve()
	conn, err := grpc.NewClient(p.grpc, grpc.WithTransportCredentials(credentials.NewTLS(a.Client(a))))
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { conn.Close() })
	p.provider = protos.NewCloudProviderClient(conn)
}

// newGroupPlace returns a place with a cluster in memory.
func newGroupPlace(t *testing.T, faults, more string) *groupPlace {
	t.Helper()
	cluster := kubetest.NewCluster(t)
	p := &groupPlace{daemonPlace: &daemonPlace{place: newPlace(t), address: freeAddress(t)}, api: cluster.API(), grpc: freeAddress(t)}
	p.openGroups(kubetest.NewAuthority(t), groupSetup{cluster.Kubeconfig(p.dir), "-server " + p.api.URL, 2, faults, more})
	p.autoscale, p.spare = p.autoscaleInMemory, cluster.RefuseEvictions
	p.autoscale()
	return p
}

func (p *groupPlace) autoscaleInMemory() {
	p.autoscaler = &kubetest.Autoscaler{
		Provider: p.provider, API: p.api, Log: p.t.Logf, Scan: 100 * time.Millisecond, NewPods: 500 * time.Millisecond, Unneeded: time.Second,
		DeleteDelay: 200 * time.Millisecond, Provision: time.Minute, Backoff: time.Minute,
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.autoscaler.Run(ctx)
	}()
	p.stop = func() { cancel(); <-ended }
	p.t.Cleanup(p.stop)
}

func (p *groupPlace) nodes() []kubetest.Node {
	p.t.Helper()
	nodes, err := p.api.Nodes(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	return nodes
}

// bound returns how many pods have a node.
func (p *groupPlace) bound() (n int) {
	p.t.Helper()
	pods, err := p.api.Pods(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	for _, pod := range pods {
		if pod.Spec.Node != "" {
			n++
		}
	}
	return n
}

// target returns a group's target, and how many nodes it lists. It waits for a controller that was just restarted.
func (p *groupPlace) target(group string) (target, listed int) {
	p.t.Helper()
	size, err := p.provider.NodeGroupTargetSize(p.t.Context(), &protos.NodeGroupTargetSizeRequest{Id: group}, grpc.WaitForReady(true))
	if err != nil {
		p.t.Fatal(err)
	}
	nodes, err := p.provider.NodeGroupNodes(p.t.Context(), &protos.NodeGroupNodesRequest{Id: group}, grpc.WaitForReady(true))
	if err != nil {
		p.t.Fatal(err)
	}
	return int(size.TargetSize), len(nodes.Instances)
}

// tokens returns how many bootstrap tokens exist.
func (p *groupPlace) tokens() int {
	p.t.Helper()
	var all kubetest.List[kubetest.Secret]
	p.must(p.api.Do(p.t.Context(), "GET", "/api/v1/namespaces/kube-system/secrets?labelSelector=drover/fleet=lab", nil, &all))
	return len(all.Items)
}

func (p *groupPlace) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// agrees waits until target, instances and nodes agree in both groups, with this many nodes in total, and no token of a
// joined node is left.
func (p *groupPlace) agrees(nodes int) {
	p.t.Helper()
	p.agreesWithin(nodes, nodes)
}

// agreesWithin is agrees with a range of nodes.
func (p *groupPlace) agreesWithin(least, most int) {
	p.t.Helper()
	eventually(p.t, time.Minute, fmt.Sprintf("targets, instances and nodes agree, from %d to %d", least, most), func() bool {
		one, listedOne := p.target("one")
		two, listedTwo := p.target("two")
		nodes := one + two
		return nodes >= least && nodes <= most && listedOne+listedTwo == nodes && len(p.instances()) == nodes && len(p.nodes()) == nodes && p.tokens() == 0
	})
}

// grows creates 50 pods that need 7 nodes, and waits until each has a node.
func (p *groupPlace) grows() {
	p.t.Helper()
	p.must(p.api.Create(p.t.Context(), kubetest.Replicas("work", 50, "1")))
	eventually(p.t, time.Minute, "50 pods have nodes", func() bool { return p.bound() == 50 })
}

// shrinks deletes the pods and waits until nothing is left.
func (p *groupPlace) shrinks() {
	p.t.Helper()
	p.must(p.api.Delete(p.t.Context(), "work"))
	p.agrees(0)
	if left, _ := filepath.Glob(p.instancePath("*")); len(left) > 0 {
		p.t.Errorf("instances are left: %q", left)
	}
}

// wantPromised checks that a group's nodes match its template.
func (p *groupPlace) wantPromised(group string) {
	p.t.Helper()
	answer, err := p.provider.NodeGroupTemplateNodeInfo(p.t.Context(), &protos.NodeGroupTemplateNodeInfoRequest{Id: group})
	p.must(err)
	promised := &protos.Node{}
	p.must(proto.Unmarshal(answer.NodeBytes, promised))
	for _, n := range p.nodes() {
		of, err := p.provider.NodeGroupForNode(p.t.Context(), &protos.NodeGroupForNodeRequest{Node: &protos.ExternalGrpcNode{ProviderID: n.Spec.ProviderID}})
		p.must(err)
		if of.NodeGroup.Id != group {
			continue
		}
		for key, value := range promised.Metadata.Labels {
			if key != "kubernetes.io/hostname" && n.Meta.Labels[key] != value {
				p.t.Errorf("node %s has label %s=%q, but %q was promised", n.Meta.Name, key, n.Meta.Labels[key], value)
			}
		}
		for resource, amount := range promised.Status.Allocatable {
			if has := kubetest.Quantity(n.Status.Allocatable[resource]); has < kubetest.Quantity(amount.GetString_()) {
				p.t.Errorf("node %s has %s=%v, but %s was promised", n.Meta.Name, resource, has, amount.GetString_())
			}
		}
		if len(n.Spec.Taints) != len(promised.Spec.Taints) {
			p.t.Errorf("node %s has taints %v, but %v were promised", n.Meta.Name, n.Spec.Taints, promised.Spec.Taints)
		}
	}
}

// groupStory is a test that runs on a cluster in memory and on a real one.
type groupStory struct {
	name         string
	faults, more string // as in groupSetup
	tell         func(p *groupPlace)
}

var groupStories = []groupStory{
	{"a group grows and shrinks", "{}", "", tellGrowth},
	{"one zone has no capacity", "{capacity: [{zone: a}]}", "", tellNoCapacity},
	{"a quota allows three instances", "{quota: 3}", "", tellQuota},
	{"an instance never joins", "{}", "  join_timeout: 10s\n", tellNeverJoined},
	{"the controller is killed while a group grows", "{}", "", tellKilled},
	{"calls are repeated", "{}", "", tellTwice},
	{"the cloud interrupts an instance", "{}", "", tellInterrupted},
	{"nodes are replaced when a disruption budget allows", "{}", "", tellReplaced},
	{"the groups are removed from the configuration", "{}", "", tellRemoved},
}

// covers S1 S2 S3 S4 S5 S6 S7 S8 S11 S12 S13
func TestNodeGroups(t *testing.T) {
	for _, story := range groupStories {
		t.Run(story.name, func(t *testing.T) {
			p := newGroupPlace(t, story.faults, story.more)
			story.tell(p)
			calls, slowest := p.autoscaler.Calls()
			t.Logf("calls: %v; the slowest took %v", calls, slowest)
			if slowest > 3*time.Second {
				t.Errorf("a call took %v, but the autoscaler waits only 5 s", slowest)
			}
		})
	}
}

func tellGrowth(p *groupPlace) {
	t := p.t
	foreign := kubetest.Node{Meta: kubetest.Meta{Name: "control-plane", Labels: map[string]string{"drover/group": "one"}}, Spec: kubetest.NodeSpec{ProviderID: "drover://lab/control-plane"},
		Status: kubetest.NodeStatus{Conditions: []kubetest.Condition{{Type: "Ready", Status: "True"}}}}
	p.must(p.api.Do(t.Context(), "POST", "/api/v1/nodes", foreign, nil))
	p.grows()
	if n := len(p.nodes()); n != 1+7 {
		t.Errorf("50 pods have %d nodes, but need only 7", n-1)
	}
	for _, group := range []string{"one", "two"} {
		_, err := p.provider.NodeGroupDeleteNodes(t.Context(), &protos.NodeGroupDeleteNodesRequest{Id: group, Nodes: []*protos.ExternalGrpcNode{
			{ProviderID: foreign.Spec.ProviderID, Name: p.nodes()[1].Meta.Name, Labels: foreign.Meta.Labels},
		}})
		if grpcstatus.Code(err) != codes.NotFound {
			t.Errorf("group %s deleted a node outside every group: %v", group, err)
		}
	}
	p.wantPromised("one")
	for _, n := range p.nodes() {
		if slices.ContainsFunc(n.Spec.Taints, func(t kubetest.Taint) bool { return strings.HasPrefix(t.Key, drover.StartupTaint) }) {
			t.Errorf("node %s has taints %v", n.Meta.Name, n.Spec.Taints)
		}
	}
	p.must(p.api.Delete(t.Context(), "work"))
	eventually(t, time.Minute, "only the foreign node is left", func() bool { return len(p.nodes()) == 1 && len(p.instances()) == 0 })
	if left := p.nodes()[0]; left.Meta.Name != "control-plane" {
		t.Errorf("%s is left", left.Meta.Name)
	}
	p.must(p.api.Do(t.Context(), "DELETE", "/api/v1/nodes/control-plane", nil, nil))
	p.agrees(0)
}

func tellNoCapacity(p *groupPlace) {
	began := time.Now()
	p.grows()
	p.t.Logf("50 pods have nodes after %v", time.Since(began).Round(time.Millisecond))
	if target, _ := p.target("one"); target != 0 {
		p.t.Errorf("the group without capacity has a target of %d", target)
	}
	if target, _ := p.target("two"); target != 7 {
		p.t.Errorf("the other group has a target of %d, want 7", target)
	}
	p.agrees(7)
	p.shrinks()
}

func tellQuota(p *groupPlace) {
	p.must(p.api.Create(p.t.Context(), kubetest.Replicas("work", 50, "1")))
	eventually(p.t, time.Minute, "three nodes hold 24 pods", func() bool { return p.bound() == 24 })
	p.agrees(3)
	p.shrinks()
}

func tellNeverJoined(p *groupPlace) {
	never := filepath.Join(p.dir, "never")
	p.must(os.Mkdir(never, 0o755))
	p.grows()
	p.agrees(7)
	if _, err := os.Stat(never); err == nil {
		p.t.Error("every instance joined")
	}
	p.shrinks()
}

func tellKilled(p *groupPlace) {
	t, lost := p.t, 0
	if p.autoscaler == nil {
		// If a real autoscaler gets no reply, it requests as many nodes from the other group, even if the target was raised,
		// and keeps them if half of their processors are in use. It requests at most 4 of the 7 nodes from one group.
		lost = 4
	}
	for round := range 3 {
		p.must(p.api.Create(t.Context(), kubetest.Replicas("work", 50, "1")))
		eventually(t, time.Minute, "more nodes are requested", func() bool {
			one, _ := p.target("one")
			two, _ := p.target("two")
			return one+two > 0
		})
		moment := time.After(time.Duration(round) * 5 * time.Millisecond) // a different one each time: before, during and after the decision
		<-moment
		p.restart()
		eventually(t, time.Minute, "50 pods have nodes", func() bool { return p.bound() == 50 })
		p.agreesWithin(7, 7+lost)
		p.shrinks()
		p.stop()
		p.autoscale()
	}
}

func tellTwice(p *groupPlace) {
	t := p.t
	p.stop()
	increase := &protos.NodeGroupIncreaseSizeRequest{Id: "one", Delta: 2}
	for range 2 {
		_, err := p.provider.NodeGroupIncreaseSize(t.Context(), increase)
		p.must(err)
	}
	p.agrees(4)
	var nodes []*protos.ExternalGrpcNode
	for _, n := range p.nodes()[:2] {
		nodes = append(nodes, &protos.ExternalGrpcNode{ProviderID: n.Spec.ProviderID, Name: n.Meta.Name})
	}
	failed := make(chan error, 4)
	for range cap(failed) {
		go func() {
			_, err := p.provider.NodeGroupDeleteNodes(t.Context(), &protos.NodeGroupDeleteNodesRequest{Id: "one", Nodes: nodes})
			failed <- err
		}()
	}
	for range cap(failed) {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	if target, _ := p.target("one"); target != 2 {
		t.Errorf("the target is %d, want 2", target)
	}
	p.agrees(2)
	_, err := p.provider.NodeGroupDeleteNodes(t.Context(), &protos.NodeGroupDeleteNodesRequest{Id: "one", Nodes: nodes})
	p.must(err)
	if target, _ := p.target("one"); target != 2 {
		t.Errorf("after deleting nodes that are gone, the target is %d, want 2", target)
	}
	p.autoscale()
	p.agrees(0)
}

func tellInterrupted(p *groupPlace) {
	p.grows()
	p.agrees(7)
	taken := p.nodes()[0].Meta.Name
	p.must(os.WriteFile(filepath.Join(p.instancePath(taken), "notices"), []byte(`{"cause":"spot"}`), 0o600))
	eventually(p.t, time.Minute, "its pods have moved, and it is gone", func() bool {
		gone := !slices.ContainsFunc(p.nodes(), func(n kubetest.Node) bool { return n.Meta.Name == taken })
		return gone && p.bound() == 50
	})
	p.agrees(7)
	p.shrinks()
}

// Only Drover changes the nodes here: the autoscaler is stopped.
func tellReplaced(p *groupPlace) {
	t := p.t
	p.must(p.api.Create(t.Context(), kubetest.Replicas("work", 10, "1")))
	eventually(t, time.Minute, "10 pods have nodes", func() bool { return p.bound() == 10 })
	p.agrees(2)
	p.stop()
	old := map[string]bool{}
	for _, n := range p.nodes() {
		old[n.Meta.Name] = true
	}
	// onOld counts the pods on old nodes, and fresh the usable new nodes.
	count := func() (onOld, fresh int) {
		pods, err := p.api.Pods(t.Context())
		p.must(err)
		for _, pod := range pods {
			if old[pod.Spec.Node] {
				onOld++
			}
		}
		for _, n := range p.nodes() {
			if !old[n.Meta.Name] && n.Open() {
				fresh++
			}
		}
		return onOld, fresh
	}
	p.spare(true)
	script, err := os.ReadFile(filepath.Join(p.dir, "join.sh"))
	p.must(err)
	p.write("join.sh", string(script)+"# another template\n")
	p.process.signal(syscall.SIGHUP)
	eventually(t, time.Minute, "two new nodes are usable", func() bool { _, fresh := count(); return fresh == 2 })
	if onOld, _ := count(); onOld != 10 {
		t.Errorf("%d pods were evicted, but a disruption budget forbids it", 10-onOld)
	}
	p.spare(false)
	eventually(t, time.Minute, "the pods are on the new nodes", func() bool { onOld, _ := count(); return onOld == 0 && p.bound() == 10 })
	p.agrees(2)
	p.autoscale()
	p.shrinks()
}

func tellRemoved(p *groupPlace) {
	p.grows()
	p.agrees(7)
	p.stop()
	p.spare(true)
	text, err := os.ReadFile(filepath.Join(p.dir, "drover.yaml"))
	p.must(err)
	before, after, _ := strings.Cut(string(text), "pools:\n")
	p.write("drover.yaml", before+after[strings.Index(after, "kubernetes:\n"):])
	p.restart()
	eventually(p.t, time.Minute, "the nodes are cordoned", func() bool {
		return !slices.ContainsFunc(p.nodes(), func(n kubetest.Node) bool { return !n.Spec.Unschedulable })
	})
	if n := p.bound(); n != 50 {
		p.t.Errorf("%d pods were evicted, but a disruption budget forbids it", 50-n)
	}
	p.spare(false)
	eventually(p.t, time.Minute, "the nodes are drained and gone", func() bool { return len(p.instances()) == 0 && len(p.nodes()) == 0 })
}
