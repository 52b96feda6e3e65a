//go:build e2e || kubernetes

package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	grpcstatus "google.golang.org/grpc/status"

	"drover"
	"drover/internal/externalgrpc/protos"
	"drover/internal/kubetest"
)

// groupPlace serves two node groups of a cluster in memory, whose autoscaler asks for what its pods need. Each node has 8 processors.
type groupPlace struct {
	*daemonPlace
	cluster    *kubetest.Cluster
	api        *kubetest.API
	provider   protos.CloudProviderClient
	autoscaler *kubetest.Autoscaler
	stop       func()
	grpc       string
}

// joinScript is what an instance does at its first boot: its kubelet registers. One instance for which there is a folder named "never" does not.
const joinScript = `#!/bin/sh
rmdir '%[1]s/never' 2>/dev/null && exit
exec kubelet -server '%[2]s' -token '{token}' -name '{name}' -provider-id {node_id} -labels '{labels}' -taints '{taints}' -cpu 8
`

// newGroupPlace starts the daemon and the autoscaler, with faults of the cloud and more keys of kubernetes.
func newGroupPlace(t *testing.T, faults, more string) *groupPlace {
	t.Helper()
	p := &groupPlace{daemonPlace: &daemonPlace{place: newPlace(t), address: freeAddress(t)}, cluster: kubetest.NewCluster(t), grpc: freeAddress(t)}
	p.api = p.cluster.API()
	a := kubetest.NewAuthority(t)
	cert, key := a.Issue("server")
	p.write("join.sh", fmt.Sprintf(joinScript, p.dir, p.api.URL))
	p.write("drover.yaml", fmt.Sprintf(`version: 1
fleet: lab
listen: %s
clouds:
  here:
    driver: local
    faults: %s
    zones: [a, b]
    list_interval: 1s
    types: [{name: big, vcpus: 8, memory: 32Gi, disk: 100Gi, price: 0.36}]
instances: {probe_interval: 200ms, probe_timeout: 1s, boot_timeout: 30s, shutdown_timeout: 1s}
pools:
  one: {zones: [a], login: none, kubernetes: {max: 10, labels: {tier: batch}, join: join.sh}}
  two: {zones: [b], login: none, kubernetes: {max: 10, join: join.sh}}
kubernetes:
  listen: %s
  tls: {cert: %s, key: %s, client_ca: %s}
  kubeconfig: %s
%s`, p.address, faults, p.grpc, cert, key, a.File, p.cluster.Kubeconfig(p.dir), more))
	t.Cleanup(p.end)
	p.serve()
	conn, err := grpc.NewClient(p.grpc, grpc.WithTransportCredentials(credentials.NewTLS(a.Client(a))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	p.provider = protos.NewCloudProviderClient(conn)
	p.autoscale()
	return p
}

// autoscale starts an autoscaler, which knows nothing.
func (p *groupPlace) autoscale() {
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

// bound is how many pods have a node.
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

// target is a group's target, and how many nodes it lists. It waits for a controller that was just restarted.
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

func (p *groupPlace) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// agrees waits until target, instances and nodes agree in both groups, with so many nodes in all, and no token is left of those that have joined.
func (p *groupPlace) agrees(nodes int) {
	p.t.Helper()
	eventually(p.t, time.Minute, fmt.Sprintf("targets, instances and nodes are %d", nodes), func() bool {
		one, listedOne := p.target("one")
		two, listedTwo := p.target("two")
		return one+two == nodes && listedOne+listedTwo == nodes && len(p.instances()) == nodes && len(p.nodes()) == nodes && len(p.cluster.Tokens()) == 0
	})
}

// grows has 50 pods come that need 7 nodes, and waits until each has a node.
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

// wantPromised checks that the nodes of a group are what its template promised.
func (p *groupPlace) wantPromised(group string) {
	p.t.Helper()
	promised, err := p.autoscaler.Template(p.t.Context(), group)
	p.must(err)
	for _, n := range p.nodes() {
		of, err := p.provider.NodeGroupForNode(p.t.Context(), &protos.NodeGroupForNodeRequest{Node: &protos.ExternalGrpcNode{ProviderID: n.Spec.ProviderID}})
		p.must(err)
		if of.NodeGroup.Id != group {
			continue
		}
		for key, value := range promised.Metadata.Labels {
			if key != "kubernetes.io/hostname" && n.Meta.Labels[key] != value {
				p.t.Errorf("node %s has label %s=%q, and %q was promised", n.Meta.Name, key, n.Meta.Labels[key], value)
			}
		}
		if len(n.Spec.Taints) != len(promised.Spec.Taints) {
			p.t.Errorf("node %s has taints %v, and %v were promised", n.Meta.Name, n.Spec.Taints, promised.Spec.Taints)
		}
	}
}

// covers S1 S2 S3 S5 S6 S7 S11 S12
func TestAClusterGrowsAndShrinks(t *testing.T) {
	p := newGroupPlace(t, "{}", "")
	foreign := kubetest.Node{Meta: kubetest.Meta{Name: "control-plane", Labels: map[string]string{"drover/group": "one"}}, Spec: kubetest.NodeSpec{ProviderID: "drover://lab/control-plane"},
		Status: kubetest.NodeStatus{Conditions: []kubetest.Condition{{Type: "Ready", Status: "True"}}}}
	p.must(p.api.Do(t.Context(), "POST", "/api/v1/nodes", foreign, nil))
	p.grows()
	if n := len(p.nodes()); n != 1+7 {
		t.Errorf("50 pods have %d nodes, and 7 hold them", n-1)
	}
	for _, group := range []string{"one", "two"} {
		_, err := p.provider.NodeGroupDeleteNodes(t.Context(), &protos.NodeGroupDeleteNodesRequest{Id: group, Nodes: []*protos.ExternalGrpcNode{
			{ProviderID: foreign.Spec.ProviderID, Name: p.nodes()[1].Meta.Name, Labels: foreign.Meta.Labels},
		}})
		if grpcstatus.Code(err) != codes.NotFound {
			t.Errorf("the node of nobody is deleted from %s: %v", group, err)
		}
	}
	p.wantPromised("one")
	for _, n := range p.nodes() {
		if slices.ContainsFunc(n.Spec.Taints, func(t kubetest.Taint) bool { return strings.HasPrefix(t.Key, drover.StartupTaint) }) {
			t.Errorf("node %s has taints %v", n.Meta.Name, n.Spec.Taints)
		}
	}
	p.must(p.api.Delete(t.Context(), "work"))
	eventually(t, time.Minute, "the foreign node alone is left", func() bool { return len(p.nodes()) == 1 && len(p.instances()) == 0 })
	if left := p.nodes()[0]; left.Meta.Name != "control-plane" {
		t.Errorf("%s is left", left.Meta.Name)
	}
	p.must(p.api.Do(t.Context(), "DELETE", "/api/v1/nodes/control-plane", nil, nil))
	p.agrees(0)
	calls, slowest := p.autoscaler.Calls()
	t.Logf("calls: %v; the slowest took %v", calls, slowest)
	if slowest > 3*time.Second {
		t.Errorf("a call took %v, and the autoscaler waits 5 s", slowest)
	}
}

// covers S4 S11
func TestAClusterGrowsAlthoughOneZoneHasNoCapacity(t *testing.T) {
	p := newGroupPlace(t, "{capacity: [{zone: a}]}", "")
	began := time.Now()
	p.grows()
	t.Logf("50 pods have nodes after %v", time.Since(began).Round(time.Millisecond))
	if target, _ := p.target("one"); target != 0 {
		t.Errorf("the group without capacity has a target of %d", target)
	}
	if target, _ := p.target("two"); target != 7 {
		t.Errorf("the other group has a target of %d, want 7", target)
	}
	p.agrees(7)
	p.shrinks()
}

// covers S4 S11
func TestAClusterGrowsAsFarAsAQuotaLets(t *testing.T) {
	p := newGroupPlace(t, "{quota: 3}", "")
	p.must(p.api.Create(t.Context(), kubetest.Replicas("work", 50, "1")))
	eventually(t, time.Minute, "three nodes hold 24 pods", func() bool { return p.bound() == 24 })
	p.agrees(3)
	p.shrinks()
}

// covers S4 S8
func TestAnInstanceThatNeverJoinsIsReplaced(t *testing.T) {
	p := newGroupPlace(t, "{}", "  join_timeout: 4s\n")
	p.must(os.Mkdir(filepath.Join(p.dir, "never"), 0o755))
	p.grows()
	p.agrees(7)
	if one, _ := p.target("one"); one == 7 {
		t.Error("every instance joined")
	}
	p.shrinks()
}

// covers S2 S11
func TestAControllerIsKilledWhileAGroupGrows(t *testing.T) {
	p := newGroupPlace(t, "{}", "")
	for round := range 3 {
		p.must(p.api.Create(t.Context(), kubetest.Replicas("work", 50, "1")))
		eventually(t, 20*time.Second, "more nodes are asked for", func() bool {
			calls, _ := p.autoscaler.Calls()
			return calls["IncreaseSize"] > 0
		})
		moment := time.After(time.Duration(round) * 5 * time.Millisecond) // another one each time: before, while and after it is decided
		<-moment
		p.restart()
		eventually(t, time.Minute, "50 pods have nodes", func() bool { return p.bound() == 50 })
		eventually(t, time.Minute, "no more nodes than pods need", func() bool { return len(p.nodes()) == 7 })
		p.agrees(7)
		p.shrinks()
		p.stop()
		p.autoscale()
	}
}

// covers S2 S3
func TestCallsThatComeTwice(t *testing.T) {
	p := newGroupPlace(t, "{}", "")
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
		t.Errorf("after a deletion of what is gone the target is %d, want 2", target)
	}
	p.autoscale()
	p.agrees(0)
}
