package externalgrpc

import (
	"context"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"drover"
	"drover/internal/externalgrpc/protos"
)

// gpuResource is the resource that pods request.
const gpuResource = "nvidia.com/gpu"

// maxPods is a kubelet's default maximum of pods.
const maxPods = 110

// NodeGroupTemplateNodeInfo returns the group's future nodes: their instance's resources, less the reserved ones.
func (s *Server) NodeGroupTemplateNodeInfo(_ context.Context, r *protos.NodeGroupTemplateNodeInfoRequest) (*protos.NodeGroupTemplateNodeInfoResponse, error) {
	g, err := s.group(r.GetId())
	if err != nil {
		return nil, err
	}
	if g.Offer == nil { // an empty template would crash the autoscaler
		return nil, status.Errorf(codes.Unimplemented, "the properties of a node in group %s are not known yet", g.Name)
	}
	data, err := proto.Marshal(template(g, s.look(g.Name)))
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &protos.NodeGroupTemplateNodeInfoResponse{NodeBytes: data}, nil
}

// template returns a node of the group as its cluster will see it.
func template(g *drover.NodeGroup, look Look) *protos.Node {
	r := g.Offer.Type.Resources
	name := "template-" + g.Name
	labels := map[string]string{
		"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "topology.kubernetes.io/zone": g.Zone,
	}
	if r.Arch != "" {
		labels["kubernetes.io/arch"] = string(r.Arch)
	}
	if t := g.Offer.Type; t.Name != "" {
		labels["node.kubernetes.io/instance-type"] = t.ProviderType
	}
	if r.GPUs > 0 {
		labels[drover.GPULabel] = drover.AnyGPU
	}
	maps.Copy(labels, look.Labels)
	n := &protos.Node{
		Metadata: &protos.ObjectMeta{Name: name, Labels: labels},
		Spec:     &protos.NodeSpec{ProviderID: "drover-template://" + g.Name},
		Status: &protos.NodeStatus{
			Capacity: quantities(r), Allocatable: quantities(r.Minus(look.Reserved, 1)),
			Conditions: []*protos.NodeCondition{{Type: "Ready", Status: "True"}},
		},
	}
	for _, text := range look.Taints {
		t := drover.ParseTaint(text)
		n.Spec.Taints = append(n.Spec.Taints, &protos.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
	}
	return n
}

// quantities converts resources to Kubernetes' notation.
func quantities(r drover.Resources) map[string]*protos.Quantity {
	all := map[string]*protos.Quantity{
		"cpu":               {String_: fmt.Sprintf("%dm", max(0, int64(r.CPU)))},
		"memory":            {String_: strconv.FormatInt(max(0, int64(r.Memory)), 10)},
		"ephemeral-storage": {String_: strconv.FormatInt(max(0, int64(r.Disk)), 10)},
		"pods":              {String_: strconv.Itoa(maxPods)},
	}
	if r.GPUs > 0 {
		all[gpuResource] = &protos.Quantity{String_: strconv.Itoa(r.GPUs)}
	}
	return all
}

// GPULabel returns the label of nodes with GPUs.
func (s *Server) GPULabel(context.Context, *protos.GPULabelRequest) (*protos.GPULabelResponse, error) {
	return &protos.GPULabelResponse{Label: drover.GPULabel}, nil
}

// GetAvailableGPUTypes lists the kinds of GPUs in all groups.
func (s *Server) GetAvailableGPUTypes(context.Context, *protos.GetAvailableGPUTypesRequest) (*protos.GetAvailableGPUTypesResponse, error) {
	types := map[string]*anypb.Any{}
	for _, g := range s.now().All() {
		if g.Offer != nil && g.Offer.Type.Resources.GPUs > 0 {
			types[drover.AnyGPU] = &anypb.Any{}
		}
	}
	return &protos.GetAvailableGPUTypesResponse{GpuTypes: types}, nil
}

// PricingNodePrice returns the cost of a group's node for a time, at the price of the cheapest instance type that the
// group may use.
func (s *Server) PricingNodePrice(_ context.Context, r *protos.PricingNodePriceRequest) (*protos.PricingNodePriceResponse, error) {
	name, templated := strings.CutPrefix(r.GetNode().GetProviderID(), "drover-template://")
	g := s.now().Group(name)
	if !templated {
		g, _ = s.now().Find(r.GetNode().GetProviderID())
	}
	if g == nil || g.Offer == nil {
		return nil, status.Error(codes.NotFound, "the node is not in a group with known prices")
	}
	return &protos.PricingNodePriceResponse{Price: dollars(g.Offer.Price) * hours(r.GetStartTimestamp(), r.GetEndTimestamp())}, nil
}

// PricingPodPrice returns the cost of a pod for a time in the cheapest group whose nodes hold it: its share of a node,
// by the resource of which it needs the largest share.
func (s *Server) PricingPodPrice(_ context.Context, r *protos.PricingPodPriceRequest) (*protos.PricingPodPriceResponse, error) {
	pod := &protos.Pod{}
	if err := proto.Unmarshal(r.GetPodBytes(), pod); err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "the pod cannot be read: %v", err)
	}
	need, least := requests(pod), math.Inf(1)
	for _, g := range s.now().All() {
		if g.Offer == nil {
			continue
		}
		has := g.Offer.Type.Resources
		if part := max(share(int64(need.CPU), int64(has.CPU)), share(int64(need.Memory), int64(has.Memory)), share(int64(need.GPUs), int64(has.GPUs))); part <= 1 {
			least = min(least, part*dollars(g.Offer.Price))
		}
	}
	if math.IsInf(least, 1) {
		return nil, status.Error(codes.NotFound, "no group with a known price can hold the pod")
	}
	return &protos.PricingPodPriceResponse{Price: least * hours(r.GetStartTimestamp(), r.GetEndTimestamp())}, nil
}

// requests sums up the requests of a pod's containers. An invalid quantity counts as 0.
func requests(pod *protos.Pod) (need drover.Resources) {
	for _, c := range pod.GetSpec().GetContainers() {
		for name, q := range c.GetResources().GetRequests() {
			value := quantity(q.GetString_())
			switch name {
			case "cpu":
				need.CPU += drover.MilliCPU(value * 1000)
			case "memory":
				need.Memory += drover.Bytes(value)
			case gpuResource:
				need.GPUs += int(value)
			}
		}
	}
	return need
}

// suffixes are the suffixes of quantities.
var suffixes = map[string]float64{
	"n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15,
	"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50,
}

func quantity(text string) float64 {
	number := strings.TrimRight(text, "numkKMGTPi")
	value, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0
	}
	return value * suffixes[text[len(number):]]
}

func share(need, has int64) float64 {
	if need <= 0 {
		return 0
	}
	return float64(need) / float64(has) // infinite if there is none
}

// dollars converts money to the autoscaler's floating point.
func dollars(m drover.Money) float64 { return float64(m) / 1e9 }

func hours(from, to *timestamppb.Timestamp) float64 {
	return float64(to.AsTime().Sub(from.AsTime())) / float64(time.Hour)
}
