package kubetest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"drover/internal/externalgrpc/protos"
)

// Autoscaler calls a cloud provider as cluster-autoscaler does: in the same order, with the same caches and retries,
// and with placeholder nodes for instances that have not registered. It only handles CPU, and evicts nothing, since it
// removes a node only when no pod is on it. Its times are fields, so that tests can shorten them.
type Autoscaler struct {
	Provider protos.CloudProviderClient
	API      *API
	Log      func(format string, args ...any)

	Scan        time.Duration // between loops
	NewPods     time.Duration // a loop ends early when all pending pods are younger
	Unneeded    time.Duration // an empty node is removed after this
	DeleteDelay time.Duration // between a node's taint and its deletion
	Provision   time.Duration // an unregistered instance is removed after this
	Backoff     time.Duration // a failed group is not increased for this

	groups       []*protos.NodeGroup
	instances    map[string][]*protos.Instance // by group; the entry of a group whose size changes is dropped
	owner        map[string]string             // group by provider id, for one loop
	gpuLabel     string                        // requested only once
	gpuTypes     map[string]bool
	growing      map[string]time.Time // since when groups have been increasing
	blocked      map[string]time.Time // until when failed groups are not increased
	unneeded     map[string]time.Time // by node
	unregistered map[string]time.Time // by instance
	shrunk       map[string]time.Time // since when groups have had a target above their instances

	mu    sync.Mutex
	calls map[string]int
	slow  time.Duration
}

// rpcTimeout limits each call.
const rpcTimeout = 5 * time.Second

// atOnce is the most nodes that one loop deletes.
const atOnce = 10

// fakeReason marks placeholder nodes of instances without a node.
const fakeReason = "k8s.io/cluster-autoscaler/fake-node-reason"

// goingTaint marks a node that will be deleted.
const goingTaint = "ToBeDeletedByClusterAutoscaler"

// Run makes loops until ctx ends. A loop that requested something is followed by the next at once.
func (a *Autoscaler) Run(ctx context.Context) {
	a.instances, a.growing, a.blocked = map[string][]*protos.Instance{}, map[string]time.Time{}, map[string]time.Time{}
	a.unneeded, a.unregistered, a.shrunk = map[string]time.Time{}, map[string]time.Time{}, map[string]time.Time{}
	for ctx.Err() == nil {
		grown, err := a.loop(ctx)
		if err != nil && ctx.Err() == nil {
			a.Log("autoscaler: giving up this loop: %v", err)
		}
		if grown {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(a.Scan):
		}
	}
}

// Calls returns how often each call was made, and how long the slowest took.
func (a *Autoscaler) Calls() (calls map[string]int, slowest time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	calls = map[string]int{}
	for name, n := range a.calls {
		calls[name] = n
	}
	return calls, a.slow
}

// call makes one call with its deadline.
func call[Q, R any](ctx context.Context, a *Autoscaler, name string, do func(context.Context, Q) (R, error), q Q) (R, error) {
	ctx, cancel := context.WithTimeout(ctx, rpcTimeout)
	defer cancel()
	began := time.Now()
	r, err := do(ctx, q)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.calls == nil {
		a.calls = map[string]int{}
	}
	a.calls[name]++
	a.slow = max(a.slow, time.Since(began))
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return r, err
}

// seen is a group's state in one loop.
type seen struct {
	*protos.NodeGroup
	target    int
	instances []*protos.Instance
	nodes     []Node // that have registered
	template  *protos.Node
}

func (a *Autoscaler) loop(ctx context.Context) (grown bool, err error) {
	nodes, err := a.API.Nodes(ctx)
	if err != nil {
		return false, err
	}
	pods, err := a.API.Pods(ctx)
	if err != nil {
		return false, err
	}
	if _, err := call(ctx, a, "Refresh", wrap(a.Provider.Refresh), &protos.RefreshRequest{}); err != nil {
		return false, err
	}
	groups, err := a.look(ctx, nodes)
	if err != nil {
		return false, err
	}
	a.removeUnregistered(ctx, groups)
	if a.deleteFailed(ctx, groups) {
		if groups, err = a.look(ctx, nodes); err != nil {
			return false, err
		}
	}
	if err := a.fixTargets(ctx, groups); err != nil {
		return false, err
	}
	if pending, wait := a.pending(pods); len(pending) > 0 {
		if wait {
			return false, nil
		}
		return a.scaleUp(ctx, groups, pending), nil
	}
	return false, a.scaleDown(ctx, groups, pods)
}

// wrap removes the options parameter from a client's method.
func wrap[Q, R, O any](do func(context.Context, Q, ...O) (R, error)) func(context.Context, Q) (R, error) {
	return func(ctx context.Context, q Q) (R, error) { return do(ctx, q) }
}

// look gets the groups and their nodes. The answers about groups and owners are valid for one loop.
func (a *Autoscaler) look(ctx context.Context, nodes []Node) (all []*seen, err error) {
	a.owner, a.groups = map[string]string{}, nil
	if r, err := call(ctx, a, "NodeGroups", wrap(a.Provider.NodeGroups), &protos.NodeGroupsRequest{}); err == nil {
		a.groups = r.NodeGroups // an error counts as no groups
	}
	byGroup := map[string][]Node{}
	for _, n := range nodes {
		group, err := a.groupOf(ctx, n)
		if err != nil {
			return nil, err
		}
		if group != "" {
			byGroup[group] = append(byGroup[group], n)
		}
	}
	for _, g := range a.groups {
		s := &seen{NodeGroup: g, nodes: byGroup[g.Id]}
		size, err := call(ctx, a, "TargetSize", wrap(a.Provider.NodeGroupTargetSize), &protos.NodeGroupTargetSizeRequest{Id: g.Id})
		if err != nil {
			return nil, err
		}
		s.target = int(size.TargetSize)
		if s.instances, err = a.nodesOf(ctx, s); err != nil {
			return nil, err
		}
		if s.template, err = a.templateOf(ctx, g.Id); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// groupOf returns the group of a node. A node without a group is queried at every lookup, and its options four times.
func (a *Autoscaler) groupOf(ctx context.Context, n Node) (string, error) {
	if group, known := a.owner[n.Spec.ProviderID]; known {
		return group, nil
	}
	if a.gpuLabel == "" {
		r, err := call(ctx, a, "GPULabel", wrap(a.Provider.GPULabel), &protos.GPULabelRequest{})
		if err != nil {
			return "", err
		}
		types, err := call(ctx, a, "GetAvailableGPUTypes", wrap(a.Provider.GetAvailableGPUTypes), &protos.GetAvailableGPUTypesRequest{})
		if err != nil {
			return "", err
		}
		a.gpuLabel, a.gpuTypes = r.Label, map[string]bool{}
		for name := range types.GpuTypes {
			a.gpuTypes[name] = true
		}
	}
	r, err := call(ctx, a, "NodeGroupForNode", wrap(a.Provider.NodeGroupForNode), &protos.NodeGroupForNodeRequest{Node: told(n)})
	if err != nil || r.NodeGroup.GetId() == "" {
		return "", err
	}
	for range 4 {
		_, err := call(ctx, a, "GetOptions", wrap(a.Provider.NodeGroupGetOptions), &protos.NodeGroupAutoscalingOptionsRequest{Id: r.NodeGroup.Id, Defaults: &protos.NodeGroupAutoscalingOptions{}})
		if err != nil && status.Code(err) != codes.Unimplemented {
			return "", err
		}
	}
	a.owner[n.Spec.ProviderID] = r.NodeGroup.Id
	return r.NodeGroup.Id, nil
}

func told(n Node) *protos.ExternalGrpcNode {
	return &protos.ExternalGrpcNode{ProviderID: n.Spec.ProviderID, Name: n.Meta.Name, Labels: n.Meta.Labels, Annotations: n.Meta.Annotations}
}

// fake returns a placeholder node for an instance without a node.
func fake(id, why string) *protos.ExternalGrpcNode {
	return &protos.ExternalGrpcNode{ProviderID: id, Name: id, Annotations: map[string]string{fakeReason: why}}
}

// nodesOf returns a group's instances: from the cache, unless the group is growing.
func (a *Autoscaler) nodesOf(ctx context.Context, s *seen) ([]*protos.Instance, error) {
	known, cached := a.instances[s.Id]
	if !a.growing[s.Id].IsZero() {
		cached = false
	}
	if cached {
		return known, nil
	}
	r, err := call(ctx, a, "Nodes", wrap(a.Provider.NodeGroupNodes), &protos.NodeGroupNodesRequest{Id: s.Id})
	if err != nil {
		return nil, err
	}
	a.instances[s.Id] = r.Instances
	ready := 0
	for _, n := range s.nodes {
		if n.Ready() {
			ready++
		}
	}
	if since := a.growing[s.Id]; ready >= s.target || !since.IsZero() && time.Since(since) > a.Provision {
		delete(a.growing, s.Id) // it has reached its increased size, or never will
	}
	return r.Instances, nil
}

// templateOf returns a template of the group's future nodes; nil if it is unknown.
func (a *Autoscaler) templateOf(ctx context.Context, group string) (*protos.Node, error) {
	r, err := call(ctx, a, "TemplateNodeInfo", wrap(a.Provider.NodeGroupTemplateNodeInfo), &protos.NodeGroupTemplateNodeInfoRequest{Id: group})
	switch {
	case status.Code(err) == codes.Unimplemented:
		return nil, nil
	case err != nil:
		return nil, err
	case len(r.NodeBytes) == 0:
		return nil, fmt.Errorf("the template of group %s is empty, which stops the real autoscaler", group)
	}
	n := &protos.Node{}
	return n, proto.Unmarshal(r.NodeBytes, n)
}

// removeUnregistered deletes instances whose nodes have not registered in time.
func (a *Autoscaler) removeUnregistered(ctx context.Context, groups []*seen) {
	there := map[string]bool{}
	for _, s := range groups {
		registered := map[string]bool{}
		for _, n := range s.nodes {
			registered[n.Spec.ProviderID] = true
		}
		var old []*protos.ExternalGrpcNode
		for _, in := range s.instances {
			if registered[in.Id] || in.Status.GetInstanceState() == protos.InstanceStatus_instanceDeleting {
				continue
			}
			there[in.Id] = true
			if a.unregistered[in.Id].IsZero() {
				a.unregistered[in.Id] = time.Now()
			}
			if time.Since(a.unregistered[in.Id]) > a.Provision && len(old) < s.target-int(s.MinSize) {
				old = append(old, fake(in.Id, "unregistered"))
			}
		}
		if len(old) > 0 {
			a.delete(ctx, s.Id, old)
		}
	}
	for id := range a.unregistered {
		if !there[id] {
			delete(a.unregistered, id)
		}
	}
}

// deleteFailed deletes instances that could not be created, and blocks the group for a while.
func (a *Autoscaler) deleteFailed(ctx context.Context, groups []*seen) (any bool) {
	for _, s := range groups {
		var failed []*protos.ExternalGrpcNode
		for _, in := range s.instances {
			if e := in.Status.GetErrorInfo(); in.Status.GetInstanceState() == protos.InstanceStatus_instanceCreating && e.GetErrorCode() != "" {
				failed = append(failed, fake(in.Id, "create-error"))
				a.blocked[s.Id] = time.Now().Add(a.Backoff)
				delete(a.growing, s.Id)
			}
		}
		if len(failed) > 0 {
			any = a.delete(ctx, s.Id, failed) || any
		}
	}
	return any
}

func (a *Autoscaler) delete(ctx context.Context, group string, nodes []*protos.ExternalGrpcNode) bool {
	_, err := call(ctx, a, "DeleteNodes", wrap(a.Provider.NodeGroupDeleteNodes), &protos.NodeGroupDeleteNodesRequest{Id: group, Nodes: nodes})
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		a.Log("autoscaler: deleting nodes of %s: %v", group, err)
		return false
	}
	delete(a.instances, group)
	return true
}

// fixTargets gives up the part of a group's target that has not been listed in time.
func (a *Autoscaler) fixTargets(ctx context.Context, groups []*seen) error {
	for _, s := range groups {
		if len(s.instances) >= s.target {
			delete(a.shrunk, s.Id)
			continue
		}
		if a.shrunk[s.Id].IsZero() {
			a.shrunk[s.Id] = time.Now()
		}
		if time.Since(a.shrunk[s.Id]) <= a.Provision {
			continue
		}
		_, err := call(ctx, a, "DecreaseTargetSize", wrap(a.Provider.NodeGroupDecreaseTargetSize),
			&protos.NodeGroupDecreaseTargetSizeRequest{Id: s.Id, Delta: int32(len(s.instances) - s.target)})
		if err != nil {
			return err
		}
	}
	return nil
}

// pending returns the pods without room, and whether all are so young that more may follow.
func (a *Autoscaler) pending(pods []Pod) (pending []Pod, young bool) {
	young = true
	for _, p := range pods {
		if p.Spec.Node != "" || !slices.ContainsFunc(p.Status.Conditions, func(c Condition) bool { return c.Reason == "Unschedulable" }) {
			continue
		}
		pending = append(pending, p)
		created, err := time.Parse(time.RFC3339, p.Meta.Created)
		young = young && err == nil && time.Since(created) < a.NewPods
	}
	return pending, young
}

// scaleUp increases the one group that wastes least, for what the nodes on their way cannot hold.
func (a *Autoscaler) scaleUp(ctx context.Context, groups []*seen, pending []Pod) bool {
	need := 0
	for _, p := range pending {
		need += p.CPU()
	}
	var best *seen
	least, count := math.MaxInt, 0
	for _, s := range groups {
		if s.template == nil {
			continue
		}
		per := milli(s.template.Status.Allocatable["cpu"].GetString_())
		ready := 0
		for _, n := range s.nodes {
			if n.Open() {
				ready++
			}
		}
		need -= max(0, s.target-ready) * per
		if time.Now().Before(a.blocked[s.Id]) || s.target >= int(s.MaxSize) || len(s.template.Spec.Taints) > 0 {
			continue
		}
		if per < least && per >= pending[0].CPU() {
			best, least = s, per
		}
	}
	if best == nil || need <= 0 {
		return false
	}
	count = min((need+least-1)/least, int(best.MaxSize)-best.target)
	a.Log("autoscaler: %d pods do not fit, so %s gets %d more", len(pending), best.Id, count)
	_, err := call(ctx, a, "IncreaseSize", wrap(a.Provider.NodeGroupIncreaseSize), &protos.NodeGroupIncreaseSizeRequest{Id: best.Id, Delta: int32(count)})
	if err != nil {
		a.Log("autoscaler: backing off from %s for %v: %v", best.Id, a.Backoff, err)
		a.blocked[best.Id] = time.Now().Add(a.Backoff)
		return true
	}
	a.growing[best.Id] = time.Now()
	return true
}

// scaleDown deletes nodes that have been empty for long enough, each with its own call, in parallel.
func (a *Autoscaler) scaleDown(ctx context.Context, groups []*seen, pods []Pod) error {
	used := map[string]bool{}
	for _, p := range pods {
		used[p.Spec.Node] = true
	}
	empty, wait := map[string]time.Time{}, sync.WaitGroup{}
	going := 0
	for _, s := range groups {
		left := s.target - int(s.MinSize)
		for _, n := range s.nodes {
			if used[n.Meta.Name] || strings.HasPrefix(n.Spec.ProviderID, "drover-asked:") || !n.Ready() {
				continue
			}
			since := a.unneeded[n.Meta.Name]
			if since.IsZero() {
				since = time.Now()
			}
			empty[n.Meta.Name] = since
			if time.Since(since) < a.Unneeded || left <= 0 || going >= atOnce || deleting(s, n) {
				continue
			}
			left, going = left-1, going+1
			wait.Go(func() { a.deleteOne(ctx, s.Id, n) })
		}
	}
	wait.Wait()
	a.unneeded = empty
	return nil
}

func deleting(s *seen, n Node) bool {
	return slices.ContainsFunc(s.instances, func(in *protos.Instance) bool {
		return in.Id == n.Spec.ProviderID && in.Status.GetInstanceState() == protos.InstanceStatus_instanceDeleting
	})
}

// deleteOne taints a node, waits for pods that may still be bound to it, and deletes its instance. The provider must
// remove the Node object.
func (a *Autoscaler) deleteOne(ctx context.Context, group string, n Node) {
	if !slices.ContainsFunc(n.Spec.Taints, func(t Taint) bool { return t.Key == goingTaint }) {
		taints := append(slices.Clone(n.Spec.Taints), Taint{Key: goingTaint, Value: fmt.Sprint(time.Now().Unix()), Effect: "NoSchedule"})
		change := map[string]any{"metadata": map[string]any{"resourceVersion": n.Meta.Version}, "spec": map[string]any{"taints": taints}}
		if err := a.API.Do(ctx, "PATCH", "/api/v1/nodes/"+n.Meta.Name, change, nil); err != nil {
			return // somebody else changed it; the next loop gets it again
		}
	}
	select {
	case <-ctx.Done():
		return
	case <-time.After(a.DeleteDelay):
	}
	a.delete(ctx, group, []*protos.ExternalGrpcNode{told(n)})
}
