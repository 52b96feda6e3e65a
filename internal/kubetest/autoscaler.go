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

// Autoscaler asks a cloud provider as cluster-autoscaler does: in its order, with its caches, its nodes that stand for
// instances that have not registered, and its retries. It knows CPU alone, and evicts nothing, since a node goes only
// once no pod is on it. Its times are fields, so that a test need not wait as long.
type Autoscaler struct {
	Provider protos.CloudProviderClient
	API      *API
	Log      func(format string, args ...any)

	Scan        time.Duration // between loops
	NewPods     time.Duration // a loop passes when all pending pods are younger
	Unneeded    time.Duration // an empty node goes after this
	DeleteDelay time.Duration // between a node's taint and its deletion
	Provision   time.Duration // an instance that has not registered goes after this
	Backoff     time.Duration // a group that failed is left alone for this

	groups       []*protos.NodeGroup
	instances    map[string][]*protos.Instance // by group; a group whose size changes is asked anew
	owner        map[string]string             // group by provider id, for one loop
	gpuLabel     string                        // never asked twice
	gpuTypes     map[string]bool
	growing      map[string]time.Time // groups that were increased, since when
	blocked      map[string]time.Time // groups that failed, until when
	unneeded     map[string]time.Time // by node
	unregistered map[string]time.Time // by instance
	shrunk       map[string]time.Time // groups with a target beyond their instances, since when

	mu    sync.Mutex
	calls map[string]int
	slow  time.Duration
}

// rpcTimeout is how long a call may take.
const rpcTimeout = 5 * time.Second

// atOnce is how many nodes are deleted in one loop at most.
const atOnce = 10

// fakeReason is on nodes that stand for an instance without a node.
const fakeReason = "k8s.io/cluster-autoscaler/fake-node-reason"

// goingTaint is on a node that will be deleted.
const goingTaint = "ToBeDeletedByClusterAutoscaler"

// Run makes loops until ctx ends. One in which something was asked for is followed by the next at once.
func (a *Autoscaler) Run(ctx context.Context) {
	a.instances, a.growing, a.blocked = map[string][]*protos.Instance{}, map[string]time.Time{}, map[string]time.Time{}
	a.unneeded, a.unregistered, a.shrunk = map[string]time.Time{}, map[string]time.Time{}, map[string]time.Time{}
	for ctx.Err() == nil {
		grown, err := a.loop(ctx)
		if err != nil && ctx.Err() == nil {
			a.Log("autoscaler: the loop is given up: %v", err)
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

// Calls are how often each call was made, and how long the slowest took.
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

// seen is what one loop sees of a group.
type seen struct {
	*protos.NodeGroup
	target    int
	instances []*protos.Instance
	nodes     []Node // registered
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

// wrap makes a method of the client one without options.
func wrap[Q, R, O any](do func(context.Context, Q, ...O) (R, error)) func(context.Context, Q) (R, error) {
	return func(ctx context.Context, q Q) (R, error) { return do(ctx, q) }
}

// look asks for the groups, and for what each has. The answers about groups and owners hold for this loop.
func (a *Autoscaler) look(ctx context.Context, nodes []Node) (all []*seen, err error) {
	a.owner, a.groups = map[string]string{}, nil
	if r, err := call(ctx, a, "NodeGroups", wrap(a.Provider.NodeGroups), &protos.NodeGroupsRequest{}); err == nil {
		a.groups = r.NodeGroups // an error reads as no groups
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

// groupOf says to which group a node belongs. A node that is nobody's is asked about at every lookup, and its options
// four times.
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

// fake stands for an instance without a node.
func fake(id, why string) *protos.ExternalGrpcNode {
	return &protos.ExternalGrpcNode{ProviderID: id, Name: id, Annotations: map[string]string{fakeReason: why}}
}

// nodesOf are a group's instances: those of the cache, unless the group grows.
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
		delete(a.growing, s.Id) // it has what it was increased to, or never gets it
	}
	return r.Instances, nil
}

// templateOf is what a node of the group will look like; nil if that is not known.
func (a *Autoscaler) templateOf(ctx context.Context, group string) (*protos.Node, error) {
	r, err := call(ctx, a, "TemplateNodeInfo", wrap(a.Provider.NodeGroupTemplateNodeInfo), &protos.NodeGroupTemplateNodeInfoRequest{Id: group})
	switch {
	case status.Code(err) == codes.Unimplemented:
		return nil, nil
	case err != nil:
		return nil, err
	case len(r.NodeBytes) == 0:
		return nil, fmt.Errorf("the template of group %s is empty, which ends the real autoscaler", group)
	}
	n := &protos.Node{}
	return n, proto.Unmarshal(r.NodeBytes, n)
}

// removeUnregistered deletes instances whose nodes have not come for too long.
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

// deleteFailed deletes what could not be created, and leaves the group alone for a while.
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

// fixTargets gives up what a group was asked for and has not listed for too long.
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

// pending are the pods for which there is no room, and whether all are so young that more may follow.
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

// scaleUp increases the one group that wastes least, after what the nodes that are on their way will hold.
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
		a.Log("autoscaler: %s is left alone for %v: %v", best.Id, a.Backoff, err)
		a.blocked[best.Id] = time.Now().Add(a.Backoff)
		return true
	}
	a.growing[best.Id] = time.Now()
	return true
}

// scaleDown deletes nodes that have been empty for long enough, each with a call of its own, side by side.
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

// deleteOne taints a node, waits for whoever may still bind to it, and deletes its instance. Its Node object is for the
// provider to remove.
func (a *Autoscaler) deleteOne(ctx context.Context, group string, n Node) {
	if !slices.ContainsFunc(n.Spec.Taints, func(t Taint) bool { return t.Key == goingTaint }) {
		taints := append(slices.Clone(n.Spec.Taints), Taint{Key: goingTaint, Value: fmt.Sprint(time.Now().Unix()), Effect: "NoSchedule"})
		change := map[string]any{"metadata": map[string]any{"resourceVersion": n.Meta.Version}, "spec": map[string]any{"taints": taints}}
		if err := a.API.Do(ctx, "PATCH", "/api/v1/nodes/"+n.Meta.Name, change, nil); err != nil {
			return // somebody else changed it; the next loop sees it anew
		}
	}
	select {
	case <-ctx.Done():
		return
	case <-time.After(a.DeleteDelay):
	}
	a.delete(ctx, group, []*protos.ExternalGrpcNode{told(n)})
}
