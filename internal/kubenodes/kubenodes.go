// Package kubenodes looks after the nodes of node groups in their Kubernetes cluster: it lets them join, reports that
// they have joined, drains those that leave, and removes the Node objects of instances that are gone.
//
// The model: each round compares the cluster's nodes with the groups as the last decision left them, and takes one step
// for each node, many at once. Rounds repeat, so a step that failed is taken again. What a round saw is reported to the
// engine.
//
// The invariants: a node belongs to an instance only by its spec.providerID; no conclusions are drawn when a cluster
// does not answer; a Node object is removed only if its instance is known to be gone; pods are evicted, never deleted,
// so that disruption budgets hold.
package kubenodes

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"drover"
	"drover/internal/logkey"
)

// Fleet has the instances.
type Fleet interface {
	NodeGroups() (*drover.NodeGroups, <-chan struct{})
	TellNode(ctx context.Context, instance int64, word, why string) // "joined", "absent", "emptied", or "waits" with a reason or none
	GoneNode(ctx context.Context, group, id string) (bool, error)
	JoinToken(name string) drover.Secret
}

// Look is what a group's configuration gives its nodes.
type Look struct {
	Labels map[string]string
	Taints []string // each as KEY=VALUE:EFFECT, the startup taint among them
}

// Drain is which pods may be evicted, and how long to try; 0: until the node is empty.
type Drain struct {
	Timeout      time.Duration
	BarePods     bool
	LocalStorage bool
	SystemPods   bool
}

// Keeper looks after nodes.
type Keeper struct {
	Fleet       Fleet
	Cluster     *Cluster
	Name        string // of the fleet
	Look        func(group string) Look
	JoinTimeout time.Duration
	Drain       Drain
	Log         *slog.Logger

	seen   map[int64]*seen // by instance; nil before the first round
	tokens error           // why the last round could not keep all tokens
	last   time.Time       // when it ended
	said   string          // what was logged last, or its kind; empty if the last round succeeded
	saidAt time.Time
}

// seen is what is known about an instance's node from earlier rounds.
type seen struct {
	began time.Time     // of its drain
	tried bool          // this controller has taken a step of a drain
	waits string        // why its node is missing, not ready or not emptied, as last reported
	lost  time.Duration // how long the cluster did not answer while the node was to join
}

// Labels, taints and names that Drover gives.
const (
	GroupLabel       = "drover/group" // which pool a node's instance belongs to
	fleetLabel       = "drover/fleet"
	interruptedTaint = "drover/interrupted"
	cordonedNote     = "drover/cordoned" // an annotation of a node that Drover, and nobody else, cordoned
	tokenPrefix      = "bootstrap-token-"
	system           = "kube-system"
)

// A round follows the last one after pace, or sooner if the groups change, but not before leastGap.
const (
	pace     = 2 * time.Second
	leastGap = 200 * time.Millisecond
)

// mostWhy is how long a reported reason may be, in bytes.
const mostWhy = 500

// reminder is how long after its last mention a problem that lasts is logged again.
const reminder = 10 * time.Minute

// Run makes rounds until ctx ends.
func (k *Keeper) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		_, changed := k.Fleet.NodeGroups()
		if err := k.round(ctx); ctx.Err() == nil {
			k.report(err)
		}
		wait(ctx, leastGap, nil)
		wait(ctx, pace-leastGap, changed)
	}
	return ctx.Err()
}

// report logs a round's error, if it is a new one or the last reminder of it was long ago.
func (k *Keeper) report(err error) {
	if err == nil {
		k.said = ""
		return
	}
	text := err.Error()
	if drover.KindOf(err) == drover.KindUnreachable {
		text = string(drover.KindUnreachable) // the error may name another port each time
	}
	if text != k.said || time.Since(k.saidAt) >= reminder {
		k.Log.Warn("the cluster's nodes cannot be updated", logkey.Error, err)
		k.said, k.saidAt = text, time.Now()
	}
}

func wait(ctx context.Context, d time.Duration, sooner <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-sooner:
	}
}

// round takes a step for each node. If one step fails, it still takes the others.
func (k *Keeper) round(ctx context.Context) error {
	defer func() { k.last = time.Now() }()
	nodes, err := objects[node](ctx, k.Cluster, "/api/v1/nodes")
	groups, _ := k.Fleet.NodeGroups() // after the list, so that every listed node's instance is known
	k.follow(groups)
	if err != nil {
		k.tellUnseen(ctx, groups, err)
		return err
	}
	there := map[string]*node{}
	for i := range nodes {
		n := &nodes[i]
		if works, _ := n.works(); works || there[n.Spec.ProviderID] == nil {
			there[n.Spec.ProviderID] = n // an instance that registered again under another name has two
		}
	}
	steps := []func() error{func() error {
		k.tokens = k.keepTokens(ctx, groups)
		return k.tokens
	}}
	for _, g := range groups.All() {
		for _, n := range g.Nodes {
			if n.Instance == 0 || n.Failure != nil {
				continue
			}
			object := there[n.ID]
			if object == nil && !n.Joined && n.State != drover.NodeDeleting {
				k.tellWait(ctx, n, whyMissing(n, nodes, k.tokens))
			}
			steps = append(steps, func() error { return k.step(ctx, g.Name, n, object) })
		}
	}
	stepped := together(steps, func(step func() error) error { return step() })
	removed := together(slices.Sorted(maps.Keys(there)), func(id string) error { return k.removeGone(ctx, groups, id, there[id]) })
	return cmp.Or(cmp.Or(stepped...), cmp.Or(removed...))
}

// together calls do for all items at once, and returns their errors in the same order. A call to the cluster may take as
// long as callTimeout, and a cloud's notice leaves little time to drain a node.
func together[T any](items []T, do func(T) error) []error {
	errs, running := make([]error, len(items)), sync.WaitGroup{}
	for i, item := range items {
		running.Go(func() { errs[i] = do(item) })
	}
	running.Wait()
	return errs
}

// follow keeps what is known about the present instances, and continues the drains that an earlier controller began.
func (k *Keeper) follow(groups *drover.NodeGroups) {
	before := k.seen
	k.seen = map[int64]*seen{}
	for _, g := range groups.All() {
		for _, n := range g.Nodes {
			s := before[n.Instance]
			if s == nil {
				s = &seen{}
			}
			if before == nil && n.Leaving != nil {
				s.began = n.Leaving.Since.Std()
			}
			k.seen[n.Instance] = s
		}
	}
}

// step takes a node's next step. object is nil if the cluster has no Node for it.
func (k *Keeper) step(ctx context.Context, group string, n drover.GroupNode, object *node) error {
	works, whyNot := false, ""
	if object != nil {
		if works, whyNot = object.works(); !works {
			whyNot = "its node is not ready" + whyNot
		}
	} else if n.Joined {
		whyNot = "the cluster has no node for it" // somebody has deleted it
	}
	if n.Leaving == nil {
		k.seen[n.Instance].began = time.Time{} // it may have been leaving before
	}
	switch {
	case n.Leaving != nil && n.Joined:
		why, err := k.empty(ctx, n, object)
		k.tellWait(ctx, n, why)
		return err
	case n.State == drover.NodeDeleting:
		k.tellWait(ctx, n, "")
	case n.Joined:
		k.tellWait(ctx, n, whyNot)
		switch {
		case object == nil || n.Held:
		case object.Meta.Annotations[cordonedNote] != "":
			return k.uncordon(ctx, object)
		case works && k.starts(group, object): // somebody deleted its node, and it registered again
			return k.admit(ctx, group, n, object)
		}
	case works:
		if err := k.admit(ctx, group, n, object); err != nil {
			k.tellWait(ctx, n, "Drover cannot label and taint its node: "+err.Error())
			return err
		}
		k.tell(ctx, n, "joined")
	case n.Overdue != 0 && n.Overdue.Add(k.seen[n.Instance].lost) <= drover.TimeOf(time.Now()):
		k.tell(ctx, n, "absent")
	case object != nil:
		k.tellWait(ctx, n, whyNot)
	}
	return nil
}

// whyMissing returns why the cluster may have no node with the instance's provider ID; empty if that is not known.
func whyMissing(n drover.GroupNode, nodes []node, tokens error) string {
	named := slices.IndexFunc(nodes, func(o node) bool { return o.Meta.Name == n.Name && n.ID != n.Asked })
	switch {
	case named >= 0:
		return fmt.Sprintf("the node %s has the provider ID %q, but must have %q", n.Name, nodes[named].Spec.ProviderID, n.ID)
	case tokens != nil:
		return "its node may have no token to join with: " + tokens.Error()
	}
	return ""
}

// tell reports what has become of a node; it then waits for nothing more.
func (k *Keeper) tell(ctx context.Context, n drover.GroupNode, word string) {
	k.seen[n.Instance].waits = ""
	k.Fleet.TellNode(ctx, n.Instance, word, "")
}

// tellWait reports why a node has not joined, or is not emptied, if that has changed.
func (k *Keeper) tellWait(ctx context.Context, n drover.GroupNode, why string) {
	if why = strings.ToValidUTF8(why[:min(len(why), mostWhy)], ""); k.seen[n.Instance].waits != why {
		k.seen[n.Instance].waits = why
		k.Fleet.TellNode(ctx, n.Instance, "waits", why)
	}
}

const unseen = "its node's state is not known: "

// tellUnseen reports that no node can join or be emptied, since the cluster does not answer.
func (k *Keeper) tellUnseen(ctx context.Context, groups *drover.NodeGroups, err error) {
	for _, g := range groups.All() {
		for _, n := range g.Nodes {
			leaves, comes := n.Joined && n.Leaving != nil && !n.Emptied, !n.Joined && n.State != drover.NodeDeleting
			s := k.seen[n.Instance]
			if comes && !k.last.IsZero() {
				s.lost += time.Since(k.last)
			}
			told := strings.HasPrefix(s.waits, unseen) // the error may name another port each time
			if n.Instance != 0 && n.Failure == nil && (leaves || comes) && !told {
				k.tellWait(ctx, n, unseen+err.Error())
			}
		}
	}
}

// admit gives a working node what its group's template promised, and removes the startup taint. Labels by the cloud's own
// controller stay, and so do other components' startup taints.
func (k *Keeper) admit(ctx context.Context, group string, n drover.GroupNode, object *node) error {
	look := k.Look(group)
	labels := map[string]string{}
	for key, value := range map[string]string{"topology.kubernetes.io/zone": n.Zone, "node.kubernetes.io/instance-type": n.Type} {
		if object.Meta.Labels[key] == "" && value != "" {
			labels[key] = value
		}
	}
	if n.GPUs > 0 {
		labels[drover.GPULabel] = drover.AnyGPU
	}
	maps.Copy(labels, look.Labels)
	labels[fleetLabel], labels[GroupLabel] = k.Name, group
	taints := slices.Clone(object.Spec.Taints)
	for _, text := range look.Taints {
		t := drover.ParseTaint(text)
		same := func(o taint) bool { return o.Key == t.Key && o.Effect == t.Effect }
		if strings.HasPrefix(t.Key, drover.StartupTaint) {
			taints = slices.DeleteFunc(taints, func(o taint) bool { return o.Key == t.Key })
		} else if !slices.ContainsFunc(taints, same) {
			taints = append(taints, taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
		}
	}
	return k.patch(ctx, object, map[string]any{"labels": labels}, map[string]any{"taints": taints})
}

// starts reports whether the node has the startup taint that Drover removes.
func (k *Keeper) starts(group string, object *node) bool {
	return slices.ContainsFunc(k.Look(group).Taints, func(text string) bool {
		key := drover.ParseTaint(text).Key
		return strings.HasPrefix(key, drover.StartupTaint) && has(object.Spec.Taints, key)
	})
}

func has(taints []taint, key string) bool {
	return slices.ContainsFunc(taints, func(t taint) bool { return t.Key == key })
}

// patch changes a node. If somebody else has changed it since it was read, patch fails, and the next round tries again.
func (k *Keeper) patch(ctx context.Context, n *node, metadata, spec map[string]any) error {
	metadata["resourceVersion"] = n.Meta.Version
	return k.Cluster.call(ctx, "PATCH", "/api/v1/nodes/"+url.PathEscape(n.Meta.Name), map[string]any{"metadata": metadata, "spec": spec}, nil)
}

// empty cordons a node and evicts its pods, and returns what is still waited for. If a pod must not be evicted, it does
// nothing, unless the cloud takes the instance back.
func (k *Keeper) empty(ctx context.Context, n drover.GroupNode, object *node) (why string, err error) {
	if n.Emptied {
		return "", nil
	}
	if object == nil {
		k.tell(ctx, n, "emptied")
		return "", nil
	}
	s := k.seen[n.Instance]
	if s.began.IsZero() || !s.tried && object.Meta.Annotations[cordonedNote] == "" { // no earlier controller has evicted its pods
		s.began = time.Now()
	}
	s.tried = true
	pods, err := objects[pod](ctx, k.Cluster, "/api/v1/pods?fieldSelector=spec.nodeName%3D"+url.QueryEscape(object.Meta.Name))
	if err != nil {
		return "the pods on its node cannot be listed: " + err.Error(), err
	}
	works, _ := object.works() // if not, its kubelet may be dead, and no pod on it ever terminates
	left := slices.DeleteFunc(pods, func(p pod) bool { return p.stays() || !works && p.stuck() })
	late := k.Drain.Timeout > 0 && time.Since(s.began) >= k.Drain.Timeout
	if why := k.stops(left); why != "" && !n.Taken && !late {
		return "its node cannot be drained: " + why, fmt.Errorf("node %s cannot be drained: %s", object.Meta.Name, why)
	}
	if err := k.cordon(ctx, object, n.Taken); err != nil {
		return "its node cannot be cordoned: " + err.Error(), err
	}
	if len(left) == 0 || late {
		k.tell(ctx, n, "emptied")
		return "", nil
	}
	return k.evict(ctx, left)
}

// stops returns which pod must not be evicted, and why; empty if all may be.
func (k *Keeper) stops(pods []pod) string {
	for _, p := range pods {
		name := p.Meta.Namespace + "/" + p.Meta.Name
		switch bare := len(p.Meta.Owners) == 0; {
		case bare && p.Meta.Namespace == system && !k.Drain.SystemPods:
			return name + " is a pod in kube-system that no controller manages"
		case bare && p.Meta.Namespace != system && !k.Drain.BarePods:
			return name + " is a pod that no controller would replace"
		case p.local() && !k.Drain.LocalStorage:
			return name + " uses the node's local storage"
		}
	}
	return ""
}

func (k *Keeper) cordon(ctx context.Context, n *node, taken bool) error {
	spec, metadata := map[string]any{"unschedulable": true}, map[string]any{}
	if !n.Spec.Unschedulable {
		metadata["annotations"] = map[string]any{cordonedNote: "true"}
	}
	if taken && !has(n.Spec.Taints, interruptedTaint) {
		spec["taints"] = append(slices.Clone(n.Spec.Taints), taint{Key: interruptedTaint, Effect: "NoSchedule"})
	} else if n.Spec.Unschedulable {
		return nil
	}
	return k.patch(ctx, n, metadata, spec)
}

// uncordon makes a node usable again that Drover cordoned and no longer removes.
func (k *Keeper) uncordon(ctx context.Context, n *node) error {
	return k.patch(ctx, n, map[string]any{"annotations": map[string]any{cordonedNote: nil}}, map[string]any{"unschedulable": false})
}

// evict evicts pods, and returns what is waited for. The next round retries evictions that a disruption budget refused.
func (k *Keeper) evict(ctx context.Context, pods []pod) (why string, failed error) {
	why = fmt.Sprintf("its node is being drained; pods left: %d", len(pods))
	if !slices.ContainsFunc(pods, func(p pod) bool { return p.Meta.Deleted == "" }) { // a finalizer or a dead kubelet may keep them
		why += fmt.Sprintf(", all of them terminating, such as %s/%s", pods[0].Meta.Namespace, pods[0].Meta.Name)
	}
	refused := error(nil) // by a disruption budget
	for _, err := range together(pods, func(p pod) error {
		if p.Meta.Deleted != "" {
			return nil
		}
		path := "/api/v1/namespaces/" + p.Meta.Namespace + "/pods/" + p.Meta.Name + "/eviction"
		body := map[string]any{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta{Name: p.Meta.Name, Namespace: p.Meta.Namespace}}
		err := k.Cluster.call(ctx, "POST", path, body, nil)
		if err == nil || drover.KindOf(err) == drover.KindNotFound {
			return nil
		}
		return fmt.Errorf("pod %s/%s cannot be evicted: %w", p.Meta.Namespace, p.Meta.Name, err)
	}) {
		if drover.KindOf(err) == drover.KindRateLimit {
			refused = cmp.Or(refused, err)
		} else {
			failed = cmp.Or(failed, err)
		}
	}
	if err := cmp.Or(failed, refused); err != nil {
		why = "its node cannot be drained: " + err.Error()
	}
	return why, failed
}

// removeGone removes the Node object of an instance that is known to be gone.
func (k *Keeper) removeGone(ctx context.Context, groups *drover.NodeGroups, id string, n *node) error {
	if id == "" || n.Meta.Labels[fleetLabel] != k.Name {
		return nil
	}
	if g, _ := groups.Find(id); g != nil {
		return nil
	}
	gone, err := k.Fleet.GoneNode(ctx, n.Meta.Labels[GroupLabel], id)
	if err != nil || !gone {
		return err
	}
	return k.remove(ctx, "/api/v1/nodes/"+url.PathEscape(n.Meta.Name))
}

// remove deletes an object, unless it is gone already.
func (k *Keeper) remove(ctx context.Context, path string) error {
	err := k.Cluster.call(ctx, "DELETE", path, nil, nil)
	if drover.KindOf(err) == drover.KindNotFound {
		return nil
	}
	return err
}
