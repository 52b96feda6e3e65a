package externalgrpc

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"drover"
	"drover/internal/externalgrpc/protos"
	"drover/internal/kubetest"
)

// Answers that look right but mislead the autoscaler: each of these has cost somebody a cluster.

// covers S1 S2 S3 S4 S5 S12
func TestTraps(t *testing.T) {
	t.Run("a successful GetOptions would make the autoscaler count booting nodes as lost", func(t *testing.T) {
		_, err := asked(t, twoGroups(), false).NodeGroupGetOptions(within(t), &protos.NodeGroupAutoscalingOptionsRequest{Id: "a"})
		wantCode(t, err, codes.Unimplemented)
	})
	t.Run("an empty template would crash the autoscaler", func(t *testing.T) {
		f := twoGroups()
		c, ctx := asked(t, f, false), within(t)
		for _, g := range f.groups {
			got, err := c.NodeGroupTemplateNodeInfo(ctx, &protos.NodeGroupTemplateNodeInfoRequest{Id: g.Name})
			if err == nil && len(got.NodeBytes) == 0 {
				t.Errorf("the template of %s is empty", g.Name)
			}
		}
	})
	t.Run("without a template, an empty group would never grow", func(t *testing.T) {
		f := twoGroups()
		f.groups[1].Offer = f.groups[0].Offer // b has no nodes
		f.show()
		got, err := asked(t, f, false).NodeGroupTemplateNodeInfo(within(t), &protos.NodeGroupTemplateNodeInfoRequest{Id: "b"})
		n := &protos.Node{}
		if err != nil || proto.Unmarshal(got.NodeBytes, n) != nil || n.Status.Allocatable["cpu"].GetString_() == "" {
			t.Errorf("the template is %v (%v)", n, err)
		}
	})
	t.Run("an increase without a timely decision changes nothing, since the autoscaler counts it as failed", func(t *testing.T) {
		f := &undecided{fleet: twoGroups()}
		a := kubetest.NewAuthority(t)
		c := served(t, New(f, look, false), a, credentials.NewTLS(a.Client(a)))
		_, err := c.NodeGroupIncreaseSize(within(t), &protos.NodeGroupIncreaseSizeRequest{Id: "a", Delta: 1})
		wantCode(t, err, codes.Unavailable)
		if g := f.shown.Group("a"); g.Target != 4 {
			t.Errorf("the target is %d, want it unchanged", g.Target)
		}
	})
	t.Run("a stock-out must be listed as a failed instance, or the autoscaler tries no other group for 15 minutes", func(t *testing.T) {
		got, err := asked(t, twoGroups(), false).NodeGroupNodes(within(t), &protos.NodeGroupNodesRequest{Id: "a"})
		if err != nil || !slices.ContainsFunc(got.Instances, func(in *protos.Instance) bool {
			e := in.Status.GetErrorInfo()
			return in.Status.InstanceState == protos.InstanceStatus_instanceCreating && e.GetErrorCode() != "" && e.GetInstanceErrorClass() == outOfResources
		}) {
			t.Errorf("got %v, %v", got, err)
		}
	})
	t.Run("a placeholder for an instance without a node is found and deleted by its provider id", func(t *testing.T) {
		f := twoGroups()
		c, ctx := asked(t, f, false), within(t)
		fake := &protos.ExternalGrpcNode{Name: "drover-asked://f/a/f-n-2", ProviderID: "drover-asked://f/a/f-n-2", Annotations: map[string]string{"k8s.io/cluster-autoscaler/fake-node-reason": "unregistered"}}
		got, err := c.NodeGroupForNode(ctx, &protos.NodeGroupForNodeRequest{Node: fake})
		if err != nil || got.NodeGroup.Id != "a" {
			t.Errorf("the placeholder is in %v (%v)", got, err)
		}
		_, err = c.NodeGroupDeleteNodes(ctx, &protos.NodeGroupDeleteNodesRequest{Id: "a", Nodes: []*protos.ExternalGrpcNode{fake}})
		wantCode(t, err, codes.OK)
	})
	t.Run("an instance's id equals its node's provider id byte for byte, or the autoscaler would see an unregistered instance and an unknown node", func(t *testing.T) {
		f := twoGroups()
		c, ctx := asked(t, f, false), within(t)
		got, err := c.NodeGroupNodes(ctx, &protos.NodeGroupNodesRequest{Id: "a"})
		if err != nil {
			t.Fatal(err)
		}
		for i, in := range got.Instances {
			of, err := c.NodeGroupForNode(ctx, &protos.NodeGroupForNodeRequest{Node: &protos.ExternalGrpcNode{ProviderID: in.Id}})
			if err != nil || of.NodeGroup.Id != "a" || in.Id != f.groups[0].Nodes[i].ID {
				t.Errorf("%s is in %v (%v)", in.Id, of, err)
			}
		}
	})
	t.Run("a joined node that leaves is in no group, or the autoscaler would count it towards the target and request a node too many", func(t *testing.T) {
		f := twoGroups()
		f.groups[0].Nodes[0].State = drover.NodeDeleting
		f.show()
		got, err := asked(t, f, false).NodeGroupForNode(within(t), &protos.NodeGroupForNodeRequest{Node: node("c:///1")})
		if err != nil || got.NodeGroup.Id != "" {
			t.Errorf("the node is in %v (%v)", got, err)
		}
	})
	t.Run("a node that leaves while the fleet closes is in its group, or the autoscaler would miss it", func(t *testing.T) {
		f := twoGroups()
		f.groups[0].Nodes[0].Leaving = &drover.Reason{Text: "the fleet is closing"}
		f.show()
		got, err := asked(t, f, false).NodeGroupForNode(within(t), &protos.NodeGroupForNodeRequest{Node: node("c:///1")})
		if err != nil || got.NodeGroup.Id != "a" {
			t.Errorf("the node is in %v (%v)", got, err)
		}
	})
	t.Run("a deletion lowers the target before it is answered, or the autoscaler would request the node again", func(t *testing.T) {
		c, ctx := asked(t, twoGroups(), false), within(t)
		_, err := c.NodeGroupDeleteNodes(ctx, &protos.NodeGroupDeleteNodesRequest{Id: "a", Nodes: []*protos.ExternalGrpcNode{node("c:///1")}})
		wantCode(t, err, codes.OK)
		if got, err := c.NodeGroupTargetSize(ctx, &protos.NodeGroupTargetSizeRequest{Id: "a"}); err != nil || got.TargetSize != 3 {
			t.Errorf("the target is %v (%v), want 3", got, err)
		}
	})
	t.Run("concurrent deletions of one node each all succeed", func(t *testing.T) {
		f := &undecided{fleet: twoGroups(), decides: true}
		a := kubetest.NewAuthority(t)
		c, ctx := served(t, New(f, look, false), a, credentials.NewTLS(a.Client(a))), within(t)
		var all sync.WaitGroup
		for _, id := range []string{"c:///1", "drover-asked://f/a/f-n-2", "drover-asked://f/a/failure-1", "c:///4"} {
			all.Go(func() {
				_, err := c.NodeGroupDeleteNodes(ctx, &protos.NodeGroupDeleteNodesRequest{Id: "a", Nodes: []*protos.ExternalGrpcNode{node(id)}})
				wantCode(t, err, codes.OK)
			})
		}
		all.Wait()
		if g := f.shown.Group("a"); g.Target != 0 {
			t.Errorf("the target is %d, want 0", g.Target)
		}
	})
	t.Run("reads are answered while no decision is possible", func(t *testing.T) {
		f := &undecided{fleet: twoGroups()}
		a := kubetest.NewAuthority(t)
		c := served(t, New(f, look, false), a, credentials.NewTLS(a.Client(a)))
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		for range 50 {
			for _, ask := range []func() error{
				func() error { _, err := c.Refresh(ctx, &protos.RefreshRequest{}); return err },
				func() error { _, err := c.NodeGroups(ctx, &protos.NodeGroupsRequest{}); return err },
				func() error {
					_, err := c.NodeGroupForNode(ctx, &protos.NodeGroupForNodeRequest{Node: node("c:///1")})
					return err
				},
				func() error { _, err := c.NodeGroupNodes(ctx, &protos.NodeGroupNodesRequest{Id: "a"}); return err },
			} {
				wantCode(t, ask(), codes.OK)
			}
		}
	})
	t.Run("GetOptions returns the autoscaler's options unchanged, and none for none", func(t *testing.T) {
		c, ctx := asked(t, twoGroups(), true), within(t)
		own := &protos.NodeGroupAutoscalingOptions{
			ScaleDownUtilizationThreshold: 0.5, ScaleDownGpuUtilizationThreshold: 0.7, ScaleDownUnneededDuration: durationpb.New(time.Minute),
			ScaleDownUnreadyDuration: durationpb.New(time.Hour), MaxNodeProvisionDuration: durationpb.New(15 * time.Minute), ZeroOrMaxNodeScaling: true, IgnoreDaemonSetsUtilization: true,
		}
		got, err := c.NodeGroupGetOptions(ctx, &protos.NodeGroupAutoscalingOptionsRequest{Id: "a", Defaults: own})
		if err != nil || !proto.Equal(got.NodeGroupAutoscalingOptions, own) {
			t.Errorf("got %v, %v", got, err)
		}
		got, err = c.NodeGroupGetOptions(ctx, &protos.NodeGroupAutoscalingOptionsRequest{Id: "a"})
		if err != nil || got.NodeGroupAutoscalingOptions != nil {
			t.Errorf("got %v, %v", got, err)
		}
	})
}

// undecided is a fleet that decides on requests one at a time, or on none in time.
type undecided struct {
	*fleet
	mu      sync.Mutex
	decides bool
}

func (u *undecided) IncreaseGroup(context.Context, string, int) error {
	return drover.Errorf(drover.KindTransient, "no decision came in time, so nothing was done")
}

func (u *undecided) DeleteNodes(ctx context.Context, group string, ids []string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.decides {
		return drover.Errorf(drover.KindTransient, "no decision came in time, so nothing was done")
	}
	return u.fleet.DeleteNodes(ctx, group, ids)
}
