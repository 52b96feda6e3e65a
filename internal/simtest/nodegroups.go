package simtest

import (
	"maps"
	"slices"
	"time"

	"drover"
	"drover/internal/engine"
	"drover/internal/engine/pool"
)

// A node group in the modelled world: an autoscaler that asks for anything, and a cluster whose nodes join, or do not,
// and are emptied.

// autoscale has the autoscaler ask a node group for something: more, less of what is not created, or that some nodes
// go. Some it names are gone, held, or never were the group's.
func (w *World) autoscale(s *pool.Spec) {
	b := engine.GroupAsked{Group: s.Name, By: w.now.Add(2 * time.Second)}
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
	if w.roll(4) == 0 { // the answer was lost, and it asks again
		w.wish(b)
	}
}

// cluster has the nodes of node groups seen, again and again.
func (w *World) cluster() {
	for _, id := range slices.Sorted(maps.Keys(w.Disk.instances)) {
		in := w.Disk.instances[id]
		if w.controller == nil || !w.controller.alive() {
			break
		}
		switch s := w.controller.poolSpec(in.Pool); {
		case s == nil || s.Kind != drover.PoolGroup || in.State == drover.InstanceStopping:
		case in.Joined != 0:
			w.tell(engine.NodeTold{Instance: id, Word: engine.NodeEmptied}) // which counts once it goes
		case in.Ready != 0 && id%7 != 3:
			w.tell(engine.NodeTold{Instance: id, Word: engine.NodeJoined})
		default:
			w.tell(engine.NodeTold{Instance: id, Word: engine.NodeAbsent})
		}
	}
	w.after(20*time.Second+w.within(40*time.Second), w.cluster)
}

// mayGrant checks what was granted to an autoscaler: nothing of another's, and nothing that is held, is deleted.
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

// mayLeaveGroup checks a node that begins to go: nobody but the autoscaler has too many go.
func (w *World) mayLeaveGroup(in engine.Instance, why drover.Reason, s *pool.Spec) {
	if why.Code == drover.ReasonPool && s.Allows(placeOf(in)) && in.Template == s.Template {
		w.fail("node %s is to go, and nobody named it: %s", in.Name, why.Text)
	}
}

// groupAsAsked checks that a node group has come to its target.
func (w *World) groupAsAsked(p drover.Pool) {
	if failed := len(w.Disk.pools[p.Name].Failed); p.Instances+failed != p.Wanted {
		w.fail("node group %s has a target of %d, and %d instances and %d failures", p.Name, p.Wanted, p.Instances, failed)
	}
}
