package externalgrpc

import (
	"context"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"drover"
	"drover/internal/externalgrpc/protos"
	"drover/internal/kubetest"
)

// empty returns empty responses at once.
type empty struct {
	protos.UnimplementedCloudProviderServer
}

func (empty) NodeGroups(context.Context, *protos.NodeGroupsRequest) (*protos.NodeGroupsResponse, error) {
	return &protos.NodeGroupsResponse{}, nil
}

func (empty) NodeGroupForNode(context.Context, *protos.NodeGroupForNodeRequest) (*protos.NodeGroupForNodeResponse, error) {
	return &protos.NodeGroupForNodeResponse{}, nil
}

func (empty) Refresh(context.Context, *protos.RefreshRequest) (*protos.RefreshResponse, error) {
	return &protos.RefreshResponse{}, nil
}

func (empty) NodeGroupTargetSize(context.Context, *protos.NodeGroupTargetSizeRequest) (*protos.NodeGroupTargetSizeResponse, error) {
	return &protos.NodeGroupTargetSizeResponse{}, nil
}

func (empty) NodeGroupNodes(context.Context, *protos.NodeGroupNodesRequest) (*protos.NodeGroupNodesResponse, error) {
	return &protos.NodeGroupNodesResponse{}, nil
}

func (empty) NodeGroupTemplateNodeInfo(context.Context, *protos.NodeGroupTemplateNodeInfoRequest) (*protos.NodeGroupTemplateNodeInfoResponse, error) {
	return &protos.NodeGroupTemplateNodeInfoResponse{}, nil
}

func (empty) NodeGroupGetOptions(context.Context, *protos.NodeGroupAutoscalingOptionsRequest) (*protos.NodeGroupAutoscalingOptionsResponse, error) {
	return nil, status.Error(codes.Unimplemented, "")
}

// loop makes the calls of one autoscaler loop over 1,000 nodes in 20 groups.
func loop(b *testing.B, c protos.CloudProviderClient, f *fleet) {
	ctx := b.Context()
	check := func(err error) {
		if err != nil && status.Code(err) != codes.Unimplemented {
			b.Fatal(err)
		}
	}
	_, err := c.Refresh(ctx, &protos.RefreshRequest{})
	check(err)
	_, err = c.NodeGroups(ctx, &protos.NodeGroupsRequest{})
	check(err)
	for _, g := range f.groups {
		_, err = c.NodeGroupTargetSize(ctx, &protos.NodeGroupTargetSizeRequest{Id: g.Name})
		check(err)
		_, err = c.NodeGroupNodes(ctx, &protos.NodeGroupNodesRequest{Id: g.Name})
		check(err)
		_, err = c.NodeGroupTemplateNodeInfo(ctx, &protos.NodeGroupTemplateNodeInfoRequest{Id: g.Name})
		check(err)
		for _, n := range g.Nodes {
			_, err = c.NodeGroupForNode(ctx, &protos.NodeGroupForNodeRequest{Node: &protos.ExternalGrpcNode{ProviderID: n.ID}})
			check(err)
			for range 4 {
				_, err = c.NodeGroupGetOptions(ctx, &protos.NodeGroupAutoscalingOptionsRequest{Id: g.Name})
				check(err)
			}
		}
	}
}

// BenchmarkLoop compares one loop's calls with the same calls to handlers that do nothing.
func BenchmarkLoop(b *testing.B) {
	f, offer := &fleet{}, twoGroups().groups[0].Offer
	for g := range 20 {
		group := drover.NodeGroup{Name: fmt.Sprintf("group-%d", g), Max: 100, Target: 50, Zone: "z", Offer: offer}
		for n := range 50 {
			group.Nodes = append(group.Nodes, drover.GroupNode{ID: fmt.Sprintf("c:///%d-%d", g, n), State: drover.NodeRunning, Instance: int64(g*50 + n + 1)})
		}
		f.groups = append(f.groups, group)
	}
	f.show()
	a := kubetest.NewAuthority(b)
	ours, nothing := served(b, New(f, look, false), a, credentials.NewTLS(a.Client(a))), served(b, empty{}, a, credentials.NewTLS(a.Client(a)))
	var took, least time.Duration
	for b.Loop() { // alternating, so that both have the same load on this host
		took += timed(func() { loop(b, ours, f) })
		least += timed(func() { loop(b, nothing, f) })
	}
	b.ReportMetric(took.Seconds()*1000/float64(b.N), "ms/loop")
	b.ReportMetric(least.Seconds()*1000/float64(b.N), "ms/empty-loop")
	b.ReportMetric(took.Seconds()/least.Seconds(), "times-empty")
}

func timed(do func()) time.Duration {
	began := time.Now()
	do()
	return time.Since(began)
}
