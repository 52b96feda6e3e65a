package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"drover"
	"drover/internal/engine/fleet"
	"drover/internal/engine/pool"
	"drover/internal/engine/verdict"
)

// A node group is a pool whose size, its target, is set by a Kubernetes cluster's autoscaler, which also chooses the
// nodes to delete.
//
//   - The target is durable. It counts what was requested: instances, including those being created, and failures.
//   - A node that could not be provided is a failure. It remains until it is deleted, and nothing is rented in its
//     place: the autoscaler is told why, and decides. This covers refused, unaffordable and unplaceable nodes, and
//     those that ended before joining. One that ends later is replaced.
//   - An instance beyond the target, such as one adopted without records, raises the target. So only
//     named nodes are removed, except to be replaced.
//   - If Drover removes a node for its own reasons, it waits until the cluster says that the node is drained, or the
//     cloud takes the instance.

// grouped reports whether the pool is a node group.
func (p *poolOf) grouped() bool { return p.spec.Kind == drover.PoolGroup }

// place returns where a node group's nodes are. Its zone may be written as ZONE or CLOUD/ZONE.
func (p *poolOf) place() pool.Place {
	cloud := p.spec.Clouds[0]
	return pool.Place{Cloud: cloud, Zone: strings.TrimPrefix(p.spec.Zones[0], cloud+"/")}
}

// inGroup reports whether the instance belongs to a configured node group.
func (e *Engine) inGroup(in *fleet.Member) bool {
	p := e.pool(in.Pool)
	return p != nil && p.grouped()
}

// nodeDrained reports whether the instance's node has been drained, so that it may be destroyed.
func (e *Engine) nodeDrained(in *fleet.Member) bool {
	return in.Joined == 0 || in.Emptied || !e.s.Settings.Nodes
}

// drainsNode returns why the instance's node is to be drained, if so: the instance departs, or the fleet closes.
func (e *Engine) drainsNode(in *fleet.Member) (why Verdict, so bool) {
	if why, so = e.departs(in); so || in.Held() || !e.s.Closing {
		return why, so
	}
	return e.verdict(drover.ReasonClosing, "the fleet is shutting down"), true
}

// forgetDrain forgets that an instance's node was drained, once pods may run there again.
func (e *Engine) forgetDrain(in *fleet.Member) {
	if _, drains := e.drainsNode(in); in.Emptied && !drains && in.State != drover.InstanceStopping {
		in.Emptied = false
		e.writeInstance(in)
	}
}

// writeGroup records a node group's target and failures.
func (e *Engine) writeGroup(p *poolOf) {
	e.writePool(PoolRow{Name: p.Name, Kind: p.spec.Kind, Count: p.count, Failed: slices.Clone(p.failed), LastFailure: p.last, Gone: p.count == 0 && p.last == 0})
	e.pools.revision++
}

// present counts a node group's instances.
func (e *Engine) present(p *poolOf) (n int) {
	for _, in := range e.pools.members[p.Name] {
		if v := e.viewOf(in); !v.Going && (v.Held || p.spec.Allows(v.Place)) {
			n++
		}
	}
	return n
}

// departing counts a node group's instances that are leaving.
func (e *Engine) departing(p *poolOf) (n int) {
	for _, in := range e.pools.members[p.Name] {
		if e.leaving(in) {
			n++
		}
	}
	return n
}

// answerWithin is how long an autoscaler's request may wait for its decision: less than the autoscaler waits for its
// answer.
const answerWithin = 2 * time.Second

// groupAsked carries out an autoscaler's request, or refuses it.
func (e *Engine) groupAsked(b GroupAsked) {
	p := e.pool(b.Group)
	switch {
	case p == nil || !p.grouped():
		e.reply(b.Wish, drover.Errorf(drover.KindNotFound, "there is no node group %s", b.Group))
	case b.Asked < max(e.s.Looking, e.s.Now.Add(-answerWithin)):
		e.reply(b.Wish, drover.Errorf(drover.KindTransient, "the caller is no longer waiting for the response, so nothing was done"))
	case b.Verb == GroupIncrease:
		e.reply(b.Wish, e.increase(p, b))
	case b.Verb == GroupDecrease:
		e.reply(b.Wish, e.decrease(p, b))
	case b.Verb == GroupDelete:
		e.reply(b.Wish, e.deleteNodes(p, b))
	default:
		e.reply(b.Wish, drover.Errorf(drover.KindInvalid, "%q is not a node-group operation", b.Verb))
	}
}

func (e *Engine) increase(p *poolOf, b GroupAsked) *drover.Error {
	switch {
	case b.Delta <= 0:
		return drover.Errorf(drover.KindInvalid, "the target size of node group %s cannot be increased by %d: the delta must be positive", p.Name, b.Delta)
	case b.Delta > p.spec.Max-p.count:
		return drover.Errorf(drover.KindInvalid, "node group %s has a target size of %d and a max of %d, so it cannot be increased by %d", p.Name, p.count, p.spec.Max, b.Delta)
	case e.s.Closing || e.s.Draining:
		return drover.Errorf(drover.KindConflict, "this controller is shutting down and rents no more instances")
	}
	e.retarget(p, p.count+b.Delta, nil)
	return nil
}

// decrease gives up requested nodes that are not created yet: first those not rented, then the latest requested.
func (e *Engine) decrease(p *poolOf, b GroupAsked) *drover.Error {
	if b.Delta >= 0 {
		return drover.Errorf(drover.KindInvalid, "the target size of node group %s cannot be decreased by %d: the delta must be negative", p.Name, b.Delta)
	}
	var requested []*fleet.Member
	for _, in := range slices.Backward(e.pools.members[p.Name]) {
		if in.State == drover.InstanceCreating && in.ProviderID == "" && !in.Held() && !e.leaving(in) {
			requested = append(requested, in)
		}
	}
	unrented := max(0, p.count-len(p.failed)-e.present(p))
	if -b.Delta > unrented+len(requested) {
		return drover.Errorf(drover.KindInvalid, "the target size of node group %s can be decreased by at most %d (the instances not created yet), not by %d", p.Name, unrented+len(requested), -b.Delta)
	}
	e.retarget(p, p.count+b.Delta, &b.Reason)
	for _, in := range requested[:max(0, -b.Delta-unrented)] {
		e.stop(in, e.verdict(drover.ReasonScaledDown, "%s", b.Reason.Text))
	}
	return nil
}

// deleteNodes destroys all of the named nodes, or none: each must be, or have been, of the group. Only nodes that count
// lower the target.
func (e *Engine) deleteNodes(p *poolOf, b GroupAsked) *drover.Error {
	for _, key := range b.Nodes {
		if err := e.mayDelete(p, key); err != nil {
			return err
		}
	}
	was := p.count
	var stops []*fleet.Member
	for _, key := range b.Nodes {
		failures := len(p.failed)
		p.failed = slices.DeleteFunc(p.failed, func(f FailedNode) bool {
			return key.Failure != 0 && f.Number == key.Failure || key.Instance != 0 && f.Instance == key.Instance
		})
		failed := len(p.failed) < failures
		in := e.fleet.Member(key.Instance)
		counts := in != nil && !e.leaving(in) && !slices.Contains(stops, in)
		if counts || failed {
			p.count--
		}
		if in != nil && in.State != drover.InstanceStopping && !slices.Contains(stops, in) {
			stops = append(stops, in)
		}
	}
	if p.count != was || len(stops) > 0 {
		e.retarget(p, p.count, &b.Reason)
	}
	for _, in := range stops {
		e.stop(in, e.verdict(drover.ReasonScaledDown, "%s", b.Reason.Text))
	}
	return nil
}

// mayDelete returns why a node cannot be deleted; nil if it can, or is gone.
func (e *Engine) mayDelete(p *poolOf, key NodeKey) *drover.Error {
	foreign := drover.Errorf(drover.KindNotFound, "this node is not in group %s, so nothing was deleted", p.Name)
	if key.Instance == 0 {
		if key.Failure <= 0 || key.Failure > p.last {
			return foreign
		}
		return nil
	}
	in := e.fleet.Member(key.Instance)
	switch departed := slices.IndexFunc(e.fleet.Departed(), func(d *Departed) bool { return d.Instance.ID == key.Instance }); {
	case in != nil && in.Pool != p.Name, in == nil && departed >= 0 && e.fleet.Departed()[departed].Instance.Pool != p.Name:
		return foreign
	case in != nil && in.Held():
		return drover.Errorf(drover.KindConflict, "an operator holds instance %s, so nothing was deleted", in.Name).WithHint("drover release %s", in.Name)
	case in == nil && (key.Instance < 0 || key.Instance > e.s.LastInstance):
		return foreign
	}
	return nil
}

// retarget sets a group's target. The optional reason says why it is not what the autoscaler asked for, or was lowered.
func (e *Engine) retarget(p *poolOf, target int, why *drover.Reason) {
	text := fmt.Sprintf("node group %s: the target size is %d", p.Name, target)
	if why != nil && why.Code != drover.ReasonScaledDown {
		text += ": " + why.Text
	}
	e.note(Note{Level: Info, Text: text, Reason: why})
	p.count = target
	e.writeGroup(p)
}

// nodeFailed records that an instance's node could not be provided, unless it had joined, is departing anyway, or is
// not missing. It is called before the instance's fate is decided.
func (e *Engine) nodeFailed(in *fleet.Member, code string, why Verdict) {
	p := e.pool(in.Pool)
	if p == nil || !p.grouped() || in.Joined != 0 || e.leaving(in) || !in.Held() && !p.spec.Allows(pool.Place{Cloud: in.Cloud, Zone: in.Zone}) {
		return
	}
	if e.failure(p, in.ID) >= 0 || e.present(p) > p.count-len(p.failed) { // the one that it was to replace still exists
		return
	}
	e.addFailure(p, FailedNode{
		Code: code, Why: why, Instance: in.ID, Name: in.Name, Cloud: in.Cloud, Zone: in.Zone, ProviderID: in.ProviderID,
	})
}

// failure returns an instance's index among a node group's failures, -1 if it has none.
func (e *Engine) failure(p *poolOf, instance int64) int {
	return slices.IndexFunc(p.failed, func(f FailedNode) bool { return f.Instance == instance && instance != 0 })
}

// nodeBack removes the failure of an instance that counted as gone and exists.
func (e *Engine) nodeBack(in *fleet.Member) {
	if p := e.pool(in.Pool); p != nil && p.grouped() && in.State != drover.InstanceStopping {
		if at := e.failure(p, in.ID); at >= 0 {
			p.failed = slices.Delete(slices.Clone(p.failed), at, at+1)
			e.writeGroup(p)
		}
	}
}

// exhausting are the codes of failures for lack of resources.
var exhausting = []string{string(drover.KindQuota), string(drover.KindCapacity), drover.ReasonBlocked, drover.ReasonLimit, drover.ReasonBudget}

// told returns the failure as reported to the autoscaler.
func (f FailedNode) told() *drover.NodeFailure {
	return &drover.NodeFailure{Number: f.Number, Code: f.Code, Exhausted: slices.Contains(exhausting, f.Code), Reason: f.Why.Reason()}
}

func (e *Engine) addFailure(p *poolOf, f FailedNode) {
	p.last++
	f.Number = p.last
	p.failed = append(p.failed, f)
	e.note(Note{Level: Warn, Text: fmt.Sprintf("node group %s could not get a node: %s", p.Name, f.Why.Text), Instance: f.Name, Reason: new(f.Why.Reason())})
	e.writeGroup(p)
}

// meetTarget reconciles a node group's target with its instances once nothing is left to rent or release, and reports
// whether anything changed.
func (e *Engine) meetTarget(p *poolOf, in pool.Input, plan pool.Plan, closed closings) bool {
	if !p.grouped() {
		return false
	}
	if plan.Short > 0 {
		why := e.whyShort(p, countOf(1, "instance"), closed)
		short := plan.Short
		if why.Cause == verdict.Limit || why.Cause == verdict.Budget { // the instances that are leaving make room
			short = max(0, short-e.departing(p))
		}
		for range short {
			e.addFailure(p, FailedNode{Code: string(why.Cause), Why: why})
		}
		return short > 0
	}
	old := slices.ContainsFunc(in.Views, func(v pool.View) bool {
		return !v.Going && (v.Template != "" && v.Template != p.spec.Template || p.spec.MaxAge > 0 && v.Asked.Add(p.spec.MaxAge) <= e.s.Now)
	})
	if beyond := plan.Counted - plan.Wanted; beyond > 0 && !old {
		e.retarget(p, p.count+beyond, new(e.verdict(drover.ReasonPool, "it has %s more than requested", countOf(beyond, "instance")).Reason()))
		return true
	}
	return false
}

// nodeTold handles what was observed about an instance's node.
func (e *Engine) nodeTold(b NodeTold) {
	in := e.fleet.Member(b.Instance)
	if in == nil || in.State == drover.InstanceStopping || !in.Pooled() {
		return
	}
	switch b.Word {
	case NodeJoined:
		if in.Joined == 0 {
			in.Joined, in.NodeWait = e.s.Now, nil
			e.countTemplate(in, true)
			e.note(Note{Level: Info, Text: fmt.Sprintf("the node of instance %s joined after %v", in.Name, in.Joined.Sub(in.Asked).Round(1e8)), Instance: in.Name})
			e.writeInstance(in)
		}
	case NodeAbsent:
		if e.due(e.overdue(in)) && !in.Held() {
			e.countTemplate(in, false)
			why := e.verdict(drover.ReasonNeverJoined, "its node did not join the cluster within %v", e.pool(in.Pool).spec.JoinTimeout)
			if in.NodeWait != nil {
				why.Text += ": " + in.NodeWait.Text
			}
			e.breakInstance(in, why)
		}
	case NodeEmptied:
		if _, so := e.drainsNode(in); so && !in.Emptied {
			in.Emptied, in.NodeWait = true, nil
			e.writeInstance(in)
			e.touch(in)
		}
	case NodeWaits:
		if in.NodeWait = nil; b.Why != "" {
			in.NodeWait = new(e.verdict(drover.ReasonPool, "%s", b.Why))
		}
	}
	e.pools.revision++
}

// overdue returns when an instance is given up whose node has not joined; 0 for never. No node joins while no controller
// looks, since none gives it a token or admits it.
func (e *Engine) overdue(in *fleet.Member) drover.Time {
	if p := e.pool(in.Pool); p != nil && p.grouped() && p.spec.JoinTimeout > 0 && in.Joined == 0 && in.Created != 0 {
		return max(in.Created, e.s.Looking).Add(p.spec.JoinTimeout)
	}
	return 0
}

// NodeGroups returns the configured node groups by name, and others that still have nodes. The values share no memory
// with the engine.
func (e *Engine) NodeGroups() (all []drover.NodeGroup) {
	for _, p := range e.pools.list {
		if p.grouped() {
			all = append(all, e.nodeGroup(p))
		}
	}
	for _, name := range e.pools.names {
		if p := e.pool(name); p != nil && p.grouped() {
			continue
		}
		g := drover.NodeGroup{Name: name, Gone: true}
		for _, in := range e.pools.members[name] {
			if in.Joined != 0 {
				g.Nodes = append(g.Nodes, e.groupNode(in))
			}
		}
		if len(g.Nodes) > 0 {
			all = append(all, g)
		}
	}
	return all
}

func (e *Engine) nodeGroup(p *poolOf) drover.NodeGroup {
	g := drover.NodeGroup{Name: p.Name, Min: p.spec.Min, Max: p.spec.Max, Target: p.count, Zone: p.place().Zone, Offer: e.leastOffer(p)}
	if why := e.whyUnfilled(p); why != nil {
		g.Reason = new(why.Reason())
	}
	for _, in := range e.pools.members[p.Name] {
		n := e.groupNode(in)
		if at := e.failure(p, in.ID); at >= 0 {
			n.State, n.Failure = drover.NodeCreating, p.failed[at].told()
		}
		g.Nodes = append(g.Nodes, n)
	}
	for _, f := range p.failed {
		if e.fleet.Member(f.Instance) == nil {
			g.Nodes = append(g.Nodes, drover.GroupNode{State: drover.NodeCreating, Instance: f.Instance, Name: f.Name, Cloud: f.Cloud, Zone: f.Zone, Provider: f.ProviderID, Failure: f.told()})
		}
	}
	return g
}

func (e *Engine) groupNode(in *fleet.Member) drover.GroupNode {
	n := drover.GroupNode{
		State: drover.NodeRunning, Instance: in.ID, Name: in.Name, Cloud: in.Cloud, Zone: in.Zone, Type: in.Type.ProviderType, GPUs: in.Type.Resources.GPUs, Provider: in.ProviderID,
		Created: in.Created, Joined: in.Joined != 0, Emptied: in.Emptied, Overdue: e.overdue(in), Taken: in.Reclaimed != nil, Held: in.Held(),
	}
	switch {
	case e.leaving(in):
		n.State = drover.NodeDeleting
	case in.State == drover.InstanceCreating, in.State == drover.InstanceBooting && in.Joined == 0:
		n.State = drover.NodeCreating
	}
	if why, so := e.drainsNode(in); so {
		n.Leaving = new(why.Reason())
	}
	return n
}

// leastOffer returns what a group's next node has at least, at the cheapest price: the minimum of each resource over
// its possible offerings. It is nil while none is known.
func (e *Engine) leastOffer(p *poolOf) *drover.Offering {
	if p.offered == e.typesRevision {
		return p.offer
	}
	p.offer, p.offered = nil, e.typesRevision
	all := e.usable(p, pool.Place{})
	if len(all) == 0 {
		return nil
	}
	least := all[0]
	least.Type.Resources.Disk = e.poolDisk(p, least)
	for _, o := range all[1:] {
		r := &least.Type.Resources
		r.CPU, r.Memory, r.GPUs = min(r.CPU, o.Type.Resources.CPU), min(r.Memory, o.Type.Resources.Memory), min(r.GPUs, o.Type.Resources.GPUs)
		r.Disk = min(r.Disk, e.poolDisk(p, o))
		least.Price = min(least.Price, o.Price)
		if o.Type.Name != least.Type.Name {
			least.Type.Name = ""
		}
		if o.Type.Resources.Arch != r.Arch {
			r.Arch = ""
		}
	}
	p.offer = &least
	return p.offer
}

// GroupRevision differs whenever NodeGroups or Checks may.
type GroupRevision struct {
	pools, reasons, fleet, types int
	closing, draining            bool
	looking                      drover.Time // when the time to join began again
	stale                        drover.Time // now, while the records may be stale: what nodes wait for changes without a count
}

// GroupRevision returns the current revision of the node groups.
func (e *Engine) GroupRevision() GroupRevision {
	r := GroupRevision{pools: e.pools.revision, reasons: e.pools.reasons, fleet: e.fleet.Revision(), types: e.typesRevision, closing: e.s.Closing, draining: e.s.Draining, looking: e.s.Looking}
	if !e.recordsCurrent() {
		r.stale = e.s.Now
	}
	return r
}

// FindNode returns the latest departed instance of a node group for which is holds; 0 if there is none.
func (e *Engine) FindNode(group string, is func(drover.GroupNode) bool) int64 {
	for _, d := range slices.Backward(e.fleet.Departed()) {
		in := d.Instance
		if in.Pool == group && is(drover.GroupNode{Instance: in.ID, Name: in.Name, Cloud: in.Cloud, Zone: in.Zone, Provider: in.ProviderID}) {
			return in.ID
		}
	}
	return 0
}
