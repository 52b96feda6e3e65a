package simtest

import (
	"maps"
	"slices"
	"time"

	"drover"
	"drover/internal/engine"
	"drover/internal/engine/pool"
)

// A node group in the modelled world: an autoscaler that makes random requests, and a cluster whose nodes may join and
// are drained.

// autoscale sends a node group a request: grow, shrink by instances that do not exist yet, or delete some nodes. Some
// of the named nodes are gone, are held, or never belonged to the group.
func (w *World) autoscale(s *pool.Spec) {
	b := engine.GroupAsked{Group: s.Name, Asked: w.now.Add(w.leapt), Reason: drover.Reason{Code: drover.ReasonScaledDown, Text: "the autoscaler asked for it"}}
	switch n := w.roll(8); {
	case n < 4:
		b.Verb, b.Delta = engine.GroupIncrease, w.roll(4)
	case n < 5:
		b.Verb, b.Delta = engine.GroupDecrease, -w.roll(3)
	default:
		b.Verb = engine.GroupDelete
		for _, id := range slices.Sorted(maps.Keys(w.Disk.instances)) {
			if w.Disk.instances[id].Pool == s.Name && w.roll(2) == 0 || w.roll(40) == 0 {
				b.Nodes = append(b.Nodes, engine.NodeKey{Instance: id})
			}
		}
		for _, f := range w.Disk.pools[s.Name].Failed {
			b.Nodes = append(b.Nodes, engine.NodeKey{Instance: f.Instance, Failure: f.Number})
		}
	}
	w.wish(b)
	if w.roll(4) == 0 { // the answer was lost, so it repeats the request
		w.wish(b)
	}
}

// cluster reports the nodes of node groups periodically.
func (w *World) cluster() {
	for _, id := range slices.Sorted(maps.Keys(w.Disk.instances)) {
		in := w.Disk.instances[id]
		if w.controller == nil || !w.controller.alive() {
			break
		}
		switch s := w.controller.poolSpec(in.Pool); {
		case s == nil || s.Kind != drover.PoolGroup || in.State == drover.InstanceStopping:
		case in.Joined != 0:
			w.tell(engine.NodeTold{Instance: id, Word: engine.NodeEmptied}) // this counts once the node goes
		case in.Ready != 0 && id%7 != 3:
			w.tell(engine.NodeTold{Instance: id, Word: engine.NodeJoined})
		default:
			w.tell(engine.NodeTold{Instance: id, Word: engine.NodeAbsent})
		}
	}
	w.after(20*time.Second+w.within(40*time.Second), w.cluster)
}

// mayGrant checks a granted autoscaler request: it deletes no node of another group, and none that is held.
func (w *World) mayGrant(b engine.GroupAsked) {
	for _, key := range b.Nodes {
		if in, there := w.Disk.instances[key.Instance]; there && (in.Pool != b.Group || in.Idle == drover.IdleHold) {
			w.fail("instance %s of pool %q, %s, is deleted for node group %s", in.Name, in.Pool, in.Idle, b.Group)
		}
	}
	if row := w.Disk.pools[b.Group]; b.Verb == engine.GroupIncrease && row.Count > w.controller.poolSpec(b.Group).Max {
		w.fail("node group %s was increased to %d", b.Group, row.Count)
	}
}

// mayLeaveGroup checks a node that is about to go: only the autoscaler removes surplus nodes.
func (w *World) mayLeaveGroup(in engine.Instance, why drover.Reason, s *pool.Spec) {
	if why.Code == drover.ReasonPool && s.Allows(placeOf(in)) && in.Template == s.Template {
		w.fail("node %s is to go, and nobody named it: %s", in.Name, why.Text)
	}
}

// groupAsAsked checks that a node group has reached its target.
func (w *World) groupAsAsked(p drover.Pool) {
	if failed := len(w.Disk.pools[p.Name].Failed); p.Instances+failed != p.Wanted {
		w.fail("node group %s has a target of %d, and %d instances and %d failures", p.Name, p.Wanted, p.Instances, failed)
	}
}
