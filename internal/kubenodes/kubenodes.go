// Package kubenodes looks after the nodes of node groups in their Kubernetes cluster: it lets them join, says when they have, empties those that go, and takes
// away what is left of those that are gone.
//
// The model: each round compares the cluster's nodes with the groups as the last decision left them, and makes one step toward what should be. Rounds repeat,
// so a step that failed is made again. What was seen is told to whoever decides.
//
// The invariants: a node is an instance's only if its spec.providerID is; a cluster that does not answer says nothing, so nothing follows from it; a Node object
// is removed only if its instance is known to be gone; no pod is deleted, but evicted, so that disruption budgets hold.
package kubenodes

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"drover"
	"drover/internal/logkey"
)

// Fleet is where the instances are.
type Fleet interface {
	NodeGroups() (*drover.NodeGroups, <-chan struct{})
	TellNode(ctx context.Context, instance int64, word string) // "joined", "absent" or "emptied"
	GoneNode(ctx context.Context, group, id string) (bool, error)
	JoinToken(name string) drover.Secret
}

// Look is what the nodes of a group bear.
type Look struct {
	Labels map[string]string
	Taints []string // each as KEY=VALUE:EFFECT, the startup taint among them
}

// Drain is what may be evicted, and for how long that is tried; 0: until the node is empty.
type Drain struct {
	Timeout                            time.Duration
	BarePods, LocalStorage, SystemPods bool
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

	began map[string]time.Time // when a node's emptying began, by its id
}

// Labels, taints and names that Drover gives.
const (
	GroupLabel       = "drover/group" // which pool a node's instance belongs to
	fleetLabel       = "drover/fleet"
	interruptedTaint = "drover/interrupted"
	tokenPrefix      = "bootstrap-token-"
	system           = "kube-system"
)

// Rounds come this often, and after a change no more often than that.
const (
	pace     = 2 * time.Second
	leastGap = 200 * time.Millisecond
)

// Run makes rounds until ctx ends.
func (k *Keeper) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		_, changed := k.Fleet.NodeGroups()
		if err := k.round(ctx); err != nil && ctx.Err() == nil {
			k.Log.Warn("looking after the cluster's nodes", logkey.Error, err)
		}
		wait(ctx, leastGap, nil)
		wait(ctx, pace-leastGap, changed)
	}
	return ctx.Err()
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

// round compares, and makes a step for each node. It goes on after what failed for one.
func (k *Keeper) round(ctx context.Context) (failed error) {
	var nodes list[node]
	if err := k.Cluster.call(ctx, "GET", "/api/v1/nodes", "", nil, &nodes); err != nil {
		return err
	}
	groups, _ := k.Fleet.NodeGroups() // after the list: what is new there is not held to be gone
	there := map[string]*node{}
	for i := range nodes.Items {
		there[nodes.Items[i].Spec.ProviderID] = &nodes.Items[i]
	}
	if k.began == nil {
		k.began = map[string]time.Time{}
	}
	note := func(err error) {
		if err != nil && failed == nil {
			failed = err
		}
	}
	note(k.keepTokens(ctx, groups))
	for _, g := range groups.All() {
		for _, n := range g.Nodes {
			if n.Instance != 0 && n.Failure == nil {
				note(k.step(ctx, g.Name, n, there[n.ID]))
			}
		}
	}
	maps.DeleteFunc(k.began, func(id string, _ time.Time) bool { g, _ := groups.Find(id); return g == nil })
	for id, n := range there {
		note(k.removeGone(ctx, groups, id, n))
	}
	return failed
}

// step makes one for a node, which in the cluster is is; nil if it is not there.
func (k *Keeper) step(ctx context.Context, group string, n drover.GroupNode, is *node) error {
	switch {
	case n.Leaving != nil && n.Joined:
		return k.empty(ctx, n, is)
	case n.Joined || n.State == drover.NodeDeleting:
		return nil
	case is != nil && is.works():
		if err := k.admit(ctx, group, n, is); err != nil {
			return err
		}
		k.Fleet.TellNode(ctx, n.Instance, "joined")
	case n.Overdue != 0 && n.Overdue <= drover.TimeOf(time.Now()):
		k.Fleet.TellNode(ctx, n.Instance, "absent")
	}
	return nil
}

// admit gives a node that works what its group's template promised, and takes its startup taints off. What the cloud's own controller has said of it stays.
func (k *Keeper) admit(ctx context.Context, group string, n drover.GroupNode, is *node) error {
	look := k.Look(group)
	labels := map[string]string{}
	for key, value := range map[string]string{"topology.kubernetes.io/zone": n.Zone, "node.kubernetes.io/instance-type": n.Type} {
		if is.Meta.Labels[key] == "" && value != "" {
			labels[key] = value
		}
	}
	if n.GPUs > 0 {
		labels[drover.GPULabel] = drover.AnyGPU
	}
	maps.Copy(labels, look.Labels)
	labels[fleetLabel], labels[GroupLabel] = k.Name, group
	taints := slices.DeleteFunc(slices.Clone(is.Spec.Taints), func(t taint) bool { return strings.HasPrefix(t.Key, drover.StartupTaint) })
	for _, text := range look.Taints {
		t := drover.ParseTaint(text)
		if !strings.HasPrefix(t.Key, drover.StartupTaint) && !has(taints, t.Key) {
			taints = append(taints, taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
		}
	}
	return k.patch(ctx, is, map[string]any{"labels": labels}, map[string]any{"taints": taints})
}

func has(taints []taint, key string) bool {
	return slices.ContainsFunc(taints, func(t taint) bool { return t.Key == key })
}

// patch changes a node, unless somebody else has changed it since it was read: then the next round does.
func (k *Keeper) patch(ctx context.Context, n *node, metadata, spec map[string]any) error {
	metadata["resourceVersion"] = n.Meta.Version
	return k.Cluster.call(ctx, "PATCH", "/api/v1/nodes/"+url.PathEscape(n.Meta.Name), "application/merge-patch+json", map[string]any{"metadata": metadata, "spec": spec}, nil)
}

// empty cordons a node and evicts its pods. One that its cloud takes away loses them all; else a pod that must not be evicted stops it before it is cordoned.
func (k *Keeper) empty(ctx context.Context, n drover.GroupNode, is *node) error {
	if n.Emptied {
		return nil
	}
	if is == nil {
		k.Fleet.TellNode(ctx, n.Instance, "emptied")
		return nil
	}
	if k.began[n.ID].IsZero() {
		k.began[n.ID] = time.Now()
	}
	var pods list[pod]
	if err := k.Cluster.call(ctx, "GET", "/api/v1/pods?fieldSelector=spec.nodeName%3D"+url.QueryEscape(is.Meta.Name), "", nil, &pods); err != nil {
		return err
	}
	left := slices.DeleteFunc(pods.Items, func(p pod) bool { return p.stays() })
	late := k.Drain.Timeout > 0 && time.Since(k.began[n.ID]) >= k.Drain.Timeout
	if why := k.stops(left); why != "" && !n.Taken && !late {
		return fmt.Errorf("node %s is not emptied: %s", is.Meta.Name, why)
	}
	if err := k.cordon(ctx, is, n.Taken); err != nil {
		return err
	}
	if len(left) == 0 || late {
		k.Fleet.TellNode(ctx, n.Instance, "emptied")
		return nil
	}
	return k.evict(ctx, left)
}

// stops says which pod must not be evicted; empty if each may be.
func (k *Keeper) stops(pods []pod) string {
	for _, p := range pods {
		name := p.Meta.Namespace + "/" + p.Meta.Name
		switch bare := len(p.Meta.Owners) == 0; {
		case bare && p.Meta.Namespace == system && !k.Drain.SystemPods:
			return name + " is a pod of kube-system that nothing replicates"
		case bare && p.Meta.Namespace != system && !k.Drain.BarePods:
			return name + " is a pod that nothing would replace"
		case p.local() && !k.Drain.LocalStorage:
			return name + " has storage on the node"
		}
	}
	return ""
}

func (k *Keeper) cordon(ctx context.Context, n *node, taken bool) error {
	spec := map[string]any{"unschedulable": true}
	if taken && !has(n.Spec.Taints, interruptedTaint) {
		spec["taints"] = append(slices.Clone(n.Spec.Taints), taint{Key: interruptedTaint, Effect: "NoSchedule"})
	} else if n.Spec.Unschedulable {
		return nil
	}
	return k.patch(ctx, n, map[string]any{}, spec)
}

// evict asks for the end of pods. What a disruption budget refuses is asked for again in the next round.
func (k *Keeper) evict(ctx context.Context, pods []pod) (failed error) {
	for _, p := range pods {
		if p.Meta.Deleted != "" {
			continue
		}
		path := "/api/v1/namespaces/" + p.Meta.Namespace + "/pods/" + p.Meta.Name + "/eviction"
		body := map[string]any{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta{Name: p.Meta.Name, Namespace: p.Meta.Namespace}}
		err := k.Cluster.call(ctx, "POST", path, "", body, nil)
		if kind := drover.KindOf(err); err != nil && kind != drover.KindRateLimit && kind != drover.KindNotFound {
			failed = err
		}
	}
	return failed
}

// removeGone removes the Node object of an instance that is known to be gone.
func (k *Keeper) removeGone(ctx context.Context, groups *drover.NodeGroups, id string, n *node) error {
	if n.Meta.Labels[fleetLabel] != k.Name {
		return nil
	}
	if g, _ := groups.Find(id); g != nil {
		return nil
	}
	gone, err := k.Fleet.GoneNode(ctx, n.Meta.Labels[GroupLabel], id)
	if err != nil || !gone {
		return err
	}
	err = k.Cluster.call(ctx, "DELETE", "/api/v1/nodes/"+url.PathEscape(n.Meta.Name), "", nil, nil)
	if drover.KindOf(err) == drover.KindNotFound {
		return nil
	}
	return err
}

// keepTokens has a bootstrap token for each instance whose node is still to join, and none for any other.
func (k *Keeper) keepTokens(ctx context.Context, groups *drover.NodeGroups) error {
	wanted := map[string]drover.GroupNode{}
	for _, g := range groups.All() {
		for _, n := range g.Nodes {
			if n.Instance != 0 && !n.Joined && n.Failure == nil && n.State != drover.NodeDeleting {
				id, _, _ := strings.Cut(k.Fleet.JoinToken(n.Name).Reveal(), ".")
				wanted[tokenPrefix+id] = n
			}
		}
	}
	var secrets list[secret]
	const path = "/api/v1/namespaces/" + system + "/secrets"
	if err := k.Cluster.call(ctx, "GET", path+"?labelSelector="+url.QueryEscape(fleetLabel+"="+k.Name), "", nil, &secrets); err != nil {
		return err
	}
	for _, s := range secrets.Items {
		if _, ok := wanted[s.Meta.Name]; ok {
			delete(wanted, s.Meta.Name)
			continue
		}
		if err := k.Cluster.call(ctx, "DELETE", path+"/"+s.Meta.Name, "", nil, nil); err != nil && drover.KindOf(err) != drover.KindNotFound {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if err := k.Cluster.call(ctx, "POST", path, "", k.token(name, wanted[name]), nil); err != nil && drover.KindOf(err) != drover.KindConflict {
			return err
		}
	}
	return nil
}

func (k *Keeper) token(name string, n drover.GroupNode) secret {
	id, private, _ := strings.Cut(k.Fleet.JoinToken(n.Name).Reveal(), ".")
	return secret{
		Version: "v1", Kind: "Secret", Type: "bootstrap.kubernetes.io/token",
		Meta: meta{Name: name, Namespace: system, Labels: map[string]string{fleetLabel: k.Name}},
		Data: map[string]string{
			"token-id": id, "token-secret": private, "expiration": time.Now().Add(k.JoinTimeout).UTC().Format(time.RFC3339),
			"usage-bootstrap-authentication": "true", "usage-bootstrap-signing": "true",
			"auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token",
		},
	}
}
