package externalgrpc

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"drover"
	"drover/internal/externalgrpc/protos"
	"drover/internal/kubetest"
)

// fleet holds node groups in memory and carries out requests.
type fleet struct {
	groups []drover.NodeGroup
	shown  *drover.NodeGroups
	asked  []string
}

func (f *fleet) show() { f.shown = drover.NewNodeGroups(f.groups) }

func (f *fleet) NodeGroups() (*drover.NodeGroups, <-chan struct{}) { return f.shown, nil }

func (f *fleet) IncreaseGroup(_ context.Context, group string, delta int) error {
	f.asked = append(f.asked, fmt.Sprintf("%s %+d", group, delta))
	g := f.shown.Group(group)
	if g == nil || g.Target+delta > g.Max {
		return drover.Errorf(drover.KindInvalid, "beyond max").WithHint("raise it")
	}
	g.Target += delta
	return nil
}

func (f *fleet) DecreaseGroup(ctx context.Context, group string, delta int) error {
	return f.IncreaseGroup(ctx, group, delta)
}

func (f *fleet) DeleteNodes(_ context.Context, group string, ids []string) error {
	for _, id := range ids {
		if g, _ := f.shown.Find(id); g == nil || g.Name != group {
			return drover.Errorf(drover.KindNotFound, "node %q is not in group %s", id, group)
		}
	}
	f.asked = append(f.asked, group+" without "+strings.Join(ids, " "))
	f.shown.Group(group).Target -= len(ids)
	return nil
}

// twoGroups returns group a, with a running node, one being created, one that could not be rented and one that never
// joined, and group b, with no nodes and no offering.
func twoGroups() *fleet {
	offer := &drover.Offering{Cloud: "c", Zone: "z1", Price: 2e9, Type: drover.InstanceType{Name: "large", ProviderType: "big", Resources: drover.Resources{CPU: 8000, Memory: 32 * drover.GiB, Disk: 100 * drover.GiB, GPUs: 2, Arch: "amd64"}}}
	lacks := &drover.NodeFailure{Number: 1, Code: "capacity", Exhausted: true, Reason: drover.Reason{Text: "no big ones"}}
	late := &drover.NodeFailure{Number: 2, Code: drover.ReasonNeverJoined, Reason: drover.Reason{Text: "its node did not join"}}
	f := &fleet{groups: []drover.NodeGroup{
		{Name: "a", Min: 1, Max: 5, Target: 4, Zone: "z1", Offer: offer, Reason: &drover.Reason{Text: "one could not be had"}, Nodes: []drover.GroupNode{
			{ID: "c:///1", Asked: "drover-asked://f/a/f-n-1", State: drover.NodeRunning, Instance: 1, Joined: true},
			{ID: "drover-asked://f/a/f-n-2", Asked: "drover-asked://f/a/f-n-2", State: drover.NodeCreating, Instance: 2},
			{ID: "drover-asked://f/a/failure-1", Asked: "drover-asked://f/a/failure-1", State: drover.NodeCreating, Failure: lacks},
			{ID: "c:///4", Asked: "drover-asked://f/a/f-n-4", State: drover.NodeCreating, Instance: 4, Failure: late},
		}},
		{Name: "b", Max: 3, Zone: "z2"},
		{Name: "old", Gone: true, Nodes: []drover.GroupNode{{ID: "c:///9", State: drover.NodeDeleting, Instance: 9}}},
	}}
	f.show()
	return f
}

func look(string) Look {
	return Look{
		Labels: map[string]string{"drover/group": "a", "tier": "batch"}, Taints: []string{"batch=yes:NoSchedule"},
		Reserved: drover.Resources{CPU: 500, Memory: 2 * drover.GiB, Disk: 10 * drover.GiB},
	}
}

func files(a *kubetest.Authority) Files {
	cert, key := a.Issue("server")
	return Files{Cert: cert, Key: key, ClientCA: a.File}
}

// served serves on a free port and returns a client.
func served(t testing.TB, s protos.CloudProviderServer, a *kubetest.Authority, with credentials.TransportCredentials) protos.CloudProviderClient {
	return protos.NewCloudProviderClient(dialed(t, s, a, with))
}

// dialed serves on a free port and returns a connection to it.
func dialed(t testing.TB, s protos.CloudProviderServer, a *kubetest.Authority, with credentials.TransportCredentials) *grpc.ClientConn {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	config, err := files(a).config()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, l, config, s) }()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(with))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return conn
}

// asked serves a fleet and returns a client with a valid certificate.
func asked(t testing.TB, f *fleet, options bool) protos.CloudProviderClient {
	a := kubetest.NewAuthority(t)
	return served(t, New(f, look, options), a, credentials.NewTLS(a.Client(a)))
}

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func wantCode(t *testing.T, err error, want codes.Code) {
	t.Helper()
	if got := status.Code(err); got != want {
		t.Errorf("the answer is %v (%v), want %v", got, err, want)
	}
}

func node(id string) *protos.ExternalGrpcNode {
	return &protos.ExternalGrpcNode{ProviderID: id, Name: "f-n-1", Labels: map[string]string{"drover/group": "a"}}
}

// covers S1
func TestGroups(t *testing.T) {
	c, ctx := asked(t, twoGroups(), false), within(t)
	t.Run("configured groups are listed with their state", func(t *testing.T) {
		got, err := c.NodeGroups(ctx, &protos.NodeGroupsRequest{})
		if err != nil || len(got.NodeGroups) != 2 {
			t.Fatalf("got %v, %v", got, err)
		}
		want := "a: min 1, max 5, target 4; 1 creating, 1 running, 0 deleting, 2 failed; one could not be had"
		if a := got.NodeGroups[0]; a.Id != "a" || a.MinSize != 1 || a.MaxSize != 5 || a.Debug != want {
			t.Errorf("got %v, want %q", a, want)
		}
	})
	t.Run("Refresh and Cleanup never fail, since the autoscaler's loop would fail too", func(t *testing.T) {
		_, err := c.Refresh(ctx, &protos.RefreshRequest{})
		wantCode(t, err, codes.OK)
		_, err = c.Cleanup(ctx, &protos.CleanupRequest{})
		wantCode(t, err, codes.OK)
	})
	t.Run("a group that is not configured has no size and no nodes", func(t *testing.T) {
		_, err := c.NodeGroupTargetSize(ctx, &protos.NodeGroupTargetSizeRequest{Id: "old"})
		wantCode(t, err, codes.NotFound)
		_, err = c.NodeGroupNodes(ctx, &protos.NodeGroupNodesRequest{Id: "c"})
		wantCode(t, err, codes.NotFound)
	})
}

// covers S12 S7
func TestOnlyTheProviderIDIdentifiesANode(t *testing.T) {
	f := twoGroups()
	c, ctx := asked(t, f, false), within(t)
	for id, want := range map[string]string{
		"c:///1": "a", "drover-asked://f/a/f-n-1": "a", "drover-asked://f/a/failure-1": "a",
		"c:///2": "", "": "", "C:///1": "", "c:///1 ": "", "c:///9": "", "kind://control-plane": "",
	} {
		got, err := c.NodeGroupForNode(ctx, &protos.NodeGroupForNodeRequest{Node: node(id)})
		if err != nil || got.NodeGroup.Id != want {
			t.Errorf("node %q, with the name and label of a node of a, is in %v (%v), want %q", id, got, err, want)
		}
	}
	t.Run("a request with an unknown node deletes nothing", func(t *testing.T) {
		for _, group := range []string{"a", "b", "old", ""} {
			_, err := c.NodeGroupDeleteNodes(ctx, &protos.NodeGroupDeleteNodesRequest{Id: group, Nodes: []*protos.ExternalGrpcNode{node("c:///1"), node("kind://control-plane")}})
			wantCode(t, err, codes.NotFound)
		}
		if len(f.asked) > 0 {
			t.Errorf("requested %v", f.asked)
		}
	})
}

// covers S2 S3 S11
func TestSizes(t *testing.T) {
	f := twoGroups()
	c, ctx := asked(t, f, false), within(t)
	size := func(want int32) {
		t.Helper()
		got, err := c.NodeGroupTargetSize(ctx, &protos.NodeGroupTargetSizeRequest{Id: "a"})
		if err != nil || got.TargetSize != want {
			t.Errorf("the target is %v (%v), want %d", got, err, want)
		}
	}
	size(4)
	_, err := c.NodeGroupIncreaseSize(ctx, &protos.NodeGroupIncreaseSizeRequest{Id: "a", Delta: 1})
	wantCode(t, err, codes.OK)
	size(5)
	_, err = c.NodeGroupIncreaseSize(ctx, &protos.NodeGroupIncreaseSizeRequest{Id: "a", Delta: 1})
	wantCode(t, err, codes.InvalidArgument)
	if got := status.Convert(err).Message(); got != "beyond max; raise it" {
		t.Errorf("the error is %q, want it with its hint", got)
	}
	size(5)
	_, err = c.NodeGroupDecreaseTargetSize(ctx, &protos.NodeGroupDecreaseTargetSizeRequest{Id: "a", Delta: -1})
	wantCode(t, err, codes.OK)
	size(4)
	_, err = c.NodeGroupDeleteNodes(ctx, &protos.NodeGroupDeleteNodesRequest{Id: "a", Nodes: []*protos.ExternalGrpcNode{
		{Name: "drover-asked://f/a/failure-1", ProviderID: "drover-asked://f/a/failure-1"}, {Name: "any", ProviderID: "c:///4"},
	}})
	wantCode(t, err, codes.OK)
	size(2)
	if want := []string{"a +1", "a +1", "a -1", "a without drover-asked://f/a/failure-1 c:///4"}; !slices.Equal(f.asked, want) {
		t.Errorf("requested %v, want %v", f.asked, want)
	}
}

// covers S4
func TestFailedNodesAreListedWithTheirErrorClass(t *testing.T) {
	c, ctx := asked(t, twoGroups(), false), within(t)
	got, err := c.NodeGroupNodes(ctx, &protos.NodeGroupNodesRequest{Id: "a"})
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, n := range got.Instances {
		text := n.Id + " " + n.Status.InstanceState.String()
		if e := n.Status.ErrorInfo; e != nil {
			text += fmt.Sprintf(" %s %d %s", e.ErrorCode, e.InstanceErrorClass, e.ErrorMessage)
		}
		list = append(list, text)
	}
	want := []string{
		"c:///1 instanceRunning", "drover-asked://f/a/f-n-2 instanceCreating",
		"drover-asked://f/a/failure-1 instanceCreating capacity 1 no big ones", "c:///4 instanceCreating never_joined 99 its node did not join",
	}
	if !slices.Equal(list, want) {
		t.Errorf("got %q, want %q", list, want)
	}
}

// covers S5
func TestTemplate(t *testing.T) {
	c, ctx := asked(t, twoGroups(), false), within(t)
	t.Run("a template has the instance's unreserved resources, labels, taints and zone", func(t *testing.T) {
		got, err := c.NodeGroupTemplateNodeInfo(ctx, &protos.NodeGroupTemplateNodeInfoRequest{Id: "a"})
		if err != nil {
			t.Fatal(err)
		}
		n := &protos.Node{}
		if err := proto.Unmarshal(got.NodeBytes, n); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string][2]string{"cpu": {"8000m", "7500m"}, "memory": {"34359738368", "32212254720"}, "ephemeral-storage": {"107374182400", "96636764160"}, "nvidia.com/gpu": {"2", "2"}, "pods": {"110", "110"}} {
			if all, free := n.Status.Capacity[name].GetString_(), n.Status.Allocatable[name].GetString_(); all != want[0] || free != want[1] {
				t.Errorf("%s: %s, of which %s is allocatable, want %v", name, all, free, want)
			}
		}
		for key, want := range map[string]string{"drover/group": "a", "tier": "batch", "topology.kubernetes.io/zone": "z1", "node.kubernetes.io/instance-type": "big", "kubernetes.io/arch": "amd64"} {
			if n.Metadata.Labels[key] != want {
				t.Errorf("label %s is %q, want %q", key, n.Metadata.Labels[key], want)
			}
		}
		if len(n.Spec.Taints) != 1 || n.Spec.Taints[0].Key != "batch" || n.Spec.Taints[0].Effect != "NoSchedule" {
			t.Errorf("taints are %v", n.Spec.Taints)
		}
	})
	t.Run("nodes that may have either architecture are promised with neither", func(t *testing.T) {
		f := twoGroups()
		f.groups[0].Offer.Type.Resources.Arch = ""
		got, err := asked(t, f, false).NodeGroupTemplateNodeInfo(within(t), &protos.NodeGroupTemplateNodeInfoRequest{Id: "a"})
		if err != nil {
			t.Fatal(err)
		}
		n := &protos.Node{}
		if err := proto.Unmarshal(got.NodeBytes, n); err != nil {
			t.Fatal(err)
		}
		if arch, there := n.Metadata.Labels["kubernetes.io/arch"]; there {
			t.Errorf("the label kubernetes.io/arch is %q", arch)
		}
	})
	t.Run("without an offering there is no template, since an empty one would crash the autoscaler", func(t *testing.T) {
		_, err := c.NodeGroupTemplateNodeInfo(ctx, &protos.NodeGroupTemplateNodeInfoRequest{Id: "b"})
		wantCode(t, err, codes.Unimplemented)
	})
	t.Run("the GPU types and their label are reported", func(t *testing.T) {
		label, err := c.GPULabel(ctx, &protos.GPULabelRequest{})
		if err != nil || label.Label == "" {
			t.Errorf("got %v, %v", label, err)
		}
		types, err := c.GetAvailableGPUTypes(ctx, &protos.GetAvailableGPUTypesRequest{})
		if err != nil || len(types.GpuTypes) != 1 {
			t.Errorf("got %v, %v", types, err)
		}
	})
}

// If GetOptions succeeded, the autoscaler would treat booting nodes as lost, so it succeeds only on request.
func TestOptionsAreTheAutoscalersDefaults(t *testing.T) {
	r := &protos.NodeGroupAutoscalingOptionsRequest{Id: "a", Defaults: &protos.NodeGroupAutoscalingOptions{ScaleDownUtilizationThreshold: 0.5}}
	_, err := asked(t, twoGroups(), false).NodeGroupGetOptions(within(t), r)
	wantCode(t, err, codes.Unimplemented)
	got, err := asked(t, twoGroups(), true).NodeGroupGetOptions(within(t), r)
	if err != nil || got.NodeGroupAutoscalingOptions.GetScaleDownUtilizationThreshold() != 0.5 {
		t.Errorf("got %v, %v", got, err)
	}
}

// covers S9
func TestPrices(t *testing.T) {
	f := twoGroups()
	f.groups[1].Offer = &drover.Offering{Price: drover.Dollar / 100, Type: drover.InstanceType{Resources: drover.Resources{CPU: 2000}}} // holds no pod
	c, ctx := asked(t, f, false), within(t)
	from, to := timestamppb.New(time.Unix(0, 0)), timestamppb.New(time.Unix(1800, 0))
	for id, want := range map[string]float64{"c:///1": 1, "drover-template://a": 1} {
		got, err := c.PricingNodePrice(ctx, &protos.PricingNodePriceRequest{Node: node(id), StartTimestamp: from, EndTimestamp: to})
		if err != nil || got.Price != want {
			t.Errorf("half an hour of %s costs %v (%v), want %v", id, got, err, want)
		}
	}
	_, err := c.PricingNodePrice(ctx, &protos.PricingNodePriceRequest{Node: node("kind://x"), StartTimestamp: from, EndTimestamp: to})
	wantCode(t, err, codes.NotFound)
	pod, err := proto.Marshal(&protos.Pod{Spec: &protos.PodSpec{Containers: []*protos.Container{{Resources: &protos.ResourceRequirements{Requests: map[string]*protos.Quantity{
		"cpu": {String_: "2"}, "memory": {String_: "16Gi"},
	}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.PricingPodPrice(ctx, &protos.PricingPodPriceRequest{PodBytes: pod, StartTimestamp: from, EndTimestamp: to})
	if err != nil || got.Price != 0.5 {
		t.Errorf("half an hour of half a node's memory costs %v (%v), want 0.5", got, err)
	}
}

// covers S1 S7
func TestClientsWithoutAValidCertificateGetNoAnswer(t *testing.T) {
	f := twoGroups()
	a, other := kubetest.NewAuthority(t), kubetest.NewAuthority(t)
	for name, with := range map[string]credentials.TransportCredentials{
		"none": credentials.NewTLS(a.Client(nil)), "another authority's": credentials.NewTLS(a.Client(other)), "no TLS": insecure.NewCredentials(),
	} {
		t.Run(name, func(t *testing.T) {
			conn, ctx := dialed(t, New(f, look, false), a, with), within(t)
			for _, m := range protos.CloudProvider_ServiceDesc.Methods {
				err := conn.Invoke(ctx, "/"+protos.CloudProvider_ServiceDesc.ServiceName+"/"+m.MethodName, &emptypb.Empty{}, &emptypb.Empty{})
				if status.Code(err) != codes.Unavailable {
					t.Errorf("%s is answered: %v", m.MethodName, err)
				}
			}
		})
	}
	if len(f.asked) > 0 {
		t.Errorf("requested %v", f.asked)
	}
}

func TestARenewedCertificateIsServedWithoutARestart(t *testing.T) {
	f, old, renewed := twoGroups(), kubetest.NewAuthority(t), kubetest.NewAuthority(t)
	now, later := files(old), files(renewed)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- New(f, look, false).Serve(ctx, l, now) }()
	t.Cleanup(func() { cancel(); <-ended })
	refresh := func(a *kubetest.Authority) error {
		conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(credentials.NewTLS(a.Client(a))))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, err = protos.NewCloudProviderClient(conn).Refresh(within(t), &protos.RefreshRequest{})
		return err
	}
	wantCode(t, refresh(old), codes.OK)
	for from, to := range map[string]string{later.Cert: now.Cert, later.Key: now.Key, later.ClientCA: now.ClientCA} {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	wantCode(t, refresh(renewed), codes.OK)
	wantCode(t, refresh(old), codes.Unavailable)
}
