package control

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"drover"
	"drover/driver"
	"drover/internal/engine"
)

// shown is the node groups and the instances to be health-checked, as of the last decision, for callers that query them
// thousands of times a second.
type shown struct {
	mu      sync.Mutex
	groups  *drover.NodeGroups // guarded by mu
	checks  []engine.Check     // guarded by mu; never changed in place
	changed chan struct{}      // closed when they change, and then replaced; guarded by mu

	engine   *engine.Engine // to which revision refers; only the loop uses these two
	revision engine.GroupRevision
}

// show updates what is shown after a decision, before anybody hears of the decision. The loop calls it.
func (c *Controller) show(e *engine.Engine) {
	g := &c.shown
	revision := e.GroupRevision()
	if g.engine == e && g.revision == revision {
		return
	}
	g.engine, g.revision = e, revision
	list := e.NodeGroups()
	for i := range list {
		for n := range list[i].Nodes {
			c.nameNode(list[i].Name, &list[i].Nodes[n])
		}
	}
	groups, checks := drover.NewNodeGroups(list), e.Checks()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.groups, g.checks = groups, checks
	close(g.changed)
	g.changed = make(chan struct{})
}

// NodeGroups returns the node groups as of the last decision, and a channel that is closed when they have changed.
func (c *Controller) NodeGroups() (*drover.NodeGroups, <-chan struct{}) {
	c.shown.mu.Lock()
	defer c.shown.mu.Unlock()
	return c.shown.groups, c.shown.changed
}

// toCheck returns the instances to be health-checked, likewise.
func (c *Controller) toCheck() ([]engine.Check, <-chan struct{}) {
	c.shown.mu.Lock()
	defer c.shown.mu.Unlock()
	return c.shown.checks, c.shown.changed
}

// nameNode gives a node the ID by which its cluster knows it or, until its cloud has named it, a substitute.
func (c *Controller) nameNode(group string, n *drover.GroupNode) {
	n.Asked = c.askedName(group) + n.Name
	if n.Instance == 0 {
		n.Asked = c.askedName(group) + failureName + strconv.FormatInt(n.Failure.Number, 10)
	}
	if n.ID = c.nodeID(*n); n.ID == "" {
		n.ID = n.Asked
	}
}

// failureName prefixes the name of a failure that never was an instance.
const failureName = "failure-"

// askedName returns the prefix of the names of nodes that were requested of a group.
func (c *Controller) askedName(group string) string {
	return "drover-asked://" + c.cfg.Fleet + "/" + group + "/"
}

// nodeID returns the node's ID in its cluster; empty while unknown.
func (c *Controller) nodeID(n drover.GroupNode) string {
	cl, err := c.cloud(n.Cloud)
	if err != nil || n.Provider == "" {
		return ""
	}
	return cl.own.Capabilities().NodeIDOf(driver.Instance{ID: n.Provider, Zone: n.Zone, Tags: map[string]string{driver.TagName: n.Name}})
}

// IncreaseGroup requests delta more nodes from a node group, now or not at all.
func (c *Controller) IncreaseGroup(ctx context.Context, group string, delta int) error {
	return c.askGroup(ctx, engine.GroupAsked{Group: group, Verb: engine.GroupIncrease, Delta: delta}, fmt.Sprintf("the autoscaler requested %d more", delta))
}

// DecreaseGroup gives up requested nodes that are not created yet; delta is negative.
func (c *Controller) DecreaseGroup(ctx context.Context, group string, delta int) error {
	return c.askGroup(ctx, engine.GroupAsked{Group: group, Verb: engine.GroupDecrease, Delta: delta}, "the autoscaler no longer needs it")
}

// DeleteNodes destroys exactly the nodes with these IDs, or none if one of them never was the group's.
func (c *Controller) DeleteNodes(ctx context.Context, group string, ids []string) error {
	b := engine.GroupAsked{Group: group, Verb: engine.GroupDelete}
	now, _ := c.NodeGroups()
	for _, id := range ids {
		key, err := c.nodeKey(ctx, now, group, id)
		if err != nil {
			return err
		}
		b.Nodes = append(b.Nodes, key)
	}
	return c.askGroup(ctx, b, "the autoscaler deleted it")
}

func (c *Controller) askGroup(ctx context.Context, b engine.GroupAsked, why string) error {
	b.Asked = c.clock.now()
	b.Reason = drover.Reason{Code: drover.ReasonScaledDown, Text: why}
	return c.wish(ctx, b)
}

// nodeKey finds what an ID names: an existing node, or a former one of the group.
func (c *Controller) nodeKey(ctx context.Context, now *drover.NodeGroups, group, id string) (key engine.NodeKey, err error) {
	if g, n := now.Find(id); g != nil && g.Name == group {
		key.Instance = n.Instance
		if n.Instance == 0 {
			key.Failure = n.Failure.Number
		}
		return key, nil
	}
	if name, ours := strings.CutPrefix(id, c.askedName(group)); ours {
		if number, failed := strings.CutPrefix(name, failureName); failed {
			key.Failure, err = strconv.ParseInt(number, 10, 64)
		} else {
			key.Instance, err = strconv.ParseInt(name[strings.LastIndexByte(name, '-')+1:], 10, 64)
		}
		if reused(now, key.Instance) {
			key.Instance = 0
		}
	} else {
		key.Instance, err = c.departed(ctx, group, id)
	}
	if err != nil || key == (engine.NodeKey{}) {
		return key, drover.Errorf(drover.KindNotFound, "node %.200q is not in group %.80s, so nothing was deleted", id, group)
	}
	return key, nil
}

// reused reports whether an instance has the number of one that is not found by its name: if the records are lost, the
// numbers begin again.
func reused(now *drover.NodeGroups, instance int64) bool {
	return slices.ContainsFunc(now.All(), func(g drover.NodeGroup) bool {
		return slices.ContainsFunc(g.Nodes, func(n drover.GroupNode) bool { return instance != 0 && n.Instance == instance })
	})
}

// GoneNode reports whether an ID was a node of the group whose instance is known to be gone.
func (c *Controller) GoneNode(ctx context.Context, group, id string) (gone bool, err error) {
	instance, err := c.departed(ctx, group, id)
	return instance != 0, err
}

// departed returns the former instance of a group whose node had an ID; 0 if there is none.
func (c *Controller) departed(ctx context.Context, group, id string) (instance int64, err error) {
	err = c.Query(ctx, func(e *engine.Engine) {
		instance = e.FindNode(group, func(n drover.GroupNode) bool { return c.nodeID(n) == id })
	})
	return instance, err
}

// JoinToken returns the token with which an instance's node joins its cluster.
func (c *Controller) JoinToken(name string) drover.Secret { return c.cfg.Key.JoinToken(name) }

// TellNode reports to the engine what was observed about an instance's node.
func (c *Controller) TellNode(ctx context.Context, instance int64, word, why string) {
	c.post(ctx, engine.NodeTold{Instance: instance, Word: engine.NodeWord(word), Why: why})
}

// poolInit returns a pool's addition to the first boot of an instance; for a node group, with what the node needs to
// join its cluster.
func (c *Controller) poolInit(cl *cloud, f engine.Create) drover.Secret {
	p := c.current().Pools[f.Pool]
	if p.Group == nil {
		return drover.NewSecret(p.Init)
	}
	look := map[string]string{}
	if !slices.ContainsFunc(f.Candidates, func(o drover.Offering) bool { return o.Type.Resources.GPUs == 0 }) {
		look[drover.GPULabel] = drover.AnyGPU
	}
	maps.Copy(look, p.Group.Labels)
	id := cl.own.Capabilities().NodeIDAtInit(f.Candidates[0].Zone, f.Name)
	return drover.NewSecret(strings.NewReplacer("{token}", c.cfg.Key.JoinToken(f.Name).Reveal(), "{node_id}", id,
		"{labels}", kubeletLabels(look), "{taints}", strings.Join(p.Group.Taints, ",")).Replace(p.Init))
}

// kubeletLabels returns labels for a kubelet's --node-labels. With most labels of Kubernetes' own, such as
// node-role.kubernetes.io/worker, a kubelet does not start; its node gets them when it is admitted.
func kubeletLabels(labels map[string]string) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		prefix, _, _ := strings.Cut(key, "/")
		within := func(domain string) bool { return prefix == domain || strings.HasSuffix(prefix, "."+domain) }
		if own := within("kubernetes.io") || within("k8s.io"); !own || within("node.kubernetes.io") || within("kubelet.kubernetes.io") {
			all = append(all, key+"="+labels[key])
		}
	}
	return strings.Join(all, ",")
}
