package engine

import (
	"cmp"
	"fmt"
	"slices"

	"drover"
	"drover/internal/engine/fleet"
	"drover/internal/engine/pool"
)

// PoolState is what the engine has observed of a pool since it started.
type PoolState struct {
	Name       string       `json:"name"`
	Exhausted  []Exhaustion `json:"exhausted,omitempty"`  // by cloud and zone
	Template   string       `json:"template,omitempty"`   // to which Failed refers
	Failed     int          `json:"failed,omitempty"`     // instances in a row made from it that never became ready
	CannotStop Verdict      `json:"cannot_stop,omitzero"` // why no more are kept stopped, if so
	Reason     Verdict      `json:"reason,omitzero"`      // why its size is not reached, or outdated instances are not replaced
}

// Exhaustion is a zone in which all of a pool's usable offerings were blocked for lack of capacity, and none of its
// instances was created since.
type Exhaustion struct {
	pool.Place
	Until drover.Time `json:"until"`
	Tried bool        `json:"tried,omitempty"` // it is over, so that one create request may test it
}

// poolOf is a configured pool.
type poolOf struct {
	PoolState
	spec    *pool.Spec
	count   int              // the wanted size; for a node group, including failed nodes
	failed  []FailedNode     // by number
	last    int64            // number of the last failure
	offer   *drover.Offering // the least that the next node has
	offered int              // the market revision for which that holds
	inUse   int              // with a ratio: instances in use when seen was set
	settled bool             // nothing to do until revision changes, or next
	seen    int              // the revision for which that holds
	next    drover.Time      // 0: never
}

// pools holds all pools and their instances.
type pools struct {
	list     []*poolOf                  // configured, by name
	members  map[string][]*fleet.Member // by pool, configured or not, by ID
	names    []string                   // of pools with instances
	revision int                        // counts changes of pools' instances and sizes
	reasons  int                        // counts changes of what keeps pools from their sizes
	inUse    int                        // instances that run jobs, as of a fleet revision
	inUseAt  int
}

// replacesLeast is how many instances of a changed template must fail in a row before replacing stops.
const replacesLeast = 2

// pool returns a configured pool, nil if there is none of this name.
func (e *Engine) pool(name string) *poolOf {
	at, ok := slices.BinarySearchFunc(e.pools.list, name, func(p *poolOf, name string) int { return cmp.Compare(p.Name, name) })
	if !ok {
		return nil
	}
	return e.pools.list[at]
}

// enter adds an instance to its pool's members; leave removes it.
func (p *pools) enter(in *fleet.Member) {
	if !in.Pooled() {
		return
	}
	if p.members == nil {
		p.members = map[string][]*fleet.Member{}
	}
	if at, known := slices.BinarySearch(p.names, in.Pool); !known {
		p.names = slices.Insert(p.names, at, in.Pool)
	}
	at, _ := slices.BinarySearchFunc(p.members[in.Pool], in, fleet.ByID)
	p.members[in.Pool] = slices.Insert(p.members[in.Pool], at, in)
	p.revision++
}

func (p *pools) leave(in *fleet.Member) {
	if at, ok := slices.BinarySearchFunc(p.members[in.Pool], in, fleet.ByID); ok {
		p.members[in.Pool] = slices.Delete(p.members[in.Pool], at, at+1)
		if p.revision++; len(p.members[in.Pool]) == 0 {
			delete(p.members, in.Pool)
			p.names = slices.DeleteFunc(p.names, func(name string) bool { return name == in.Pool })
		}
	}
}

// followPools applies the settings to the pools, and takes over their known states.
func (e *Engine) followPools(known []PoolState) {
	e.pools.list, e.pools.revision = nil, e.pools.revision+1
	for i := range e.s.Settings.Pools {
		spec := &e.s.Settings.Pools[i]
		p := &poolOf{PoolState: PoolState{Name: spec.Name}, spec: spec, count: spec.Count}
		if at := slices.IndexFunc(known, func(s PoolState) bool { return s.Name == spec.Name }); at >= 0 {
			p.PoolState = known[at]
		}
		if at := slices.IndexFunc(e.s.Pools, func(r PoolRow) bool { return r.Name == spec.Name }); at >= 0 {
			row := e.s.Pools[at]
			p.count, p.failed, p.last = row.Count, slices.Clone(row.Failed), row.LastFailure
		}
		e.pools.list = append(e.pools.list, p)
	}
}

// poolStates returns the states of the configured pools. It shares no memory with the engine.
func (e *Engine) poolStates() (all []PoolState) {
	for _, p := range e.pools.list {
		s := p.PoolState
		s.Exhausted = slices.Clone(s.Exhausted)
		all = append(all, s)
	}
	return all
}

// forgetResizes drops sizes that operators set before the configured size or its meaning changed.
func (e *Engine) forgetResizes() {
	stale := func(r PoolRow) bool {
		return !slices.ContainsFunc(e.s.Settings.Pools, func(s pool.Spec) bool {
			return s.Name == r.Name && s.Count == r.Configured && (r.Kind == "" || s.Kind == r.Kind)
		})
	}
	for _, r := range e.s.Pools {
		if stale(r) {
			r.Gone = true
			e.write(Write{Pool: &r})
		}
	}
	e.s.Pools = slices.DeleteFunc(slices.Clone(e.s.Pools), stale)
}

// resize sets a pool's size at an operator's request, or returns why not.
func (e *Engine) resize(b ResizeAsked) *drover.Error {
	p := e.pool(b.Pool)
	switch {
	case p == nil:
		return drover.Errorf(drover.KindNotFound, "there is no pool %s", b.Pool)
	case p.grouped():
		return drover.Errorf(drover.KindConflict, "pool %s is a node group: only its cluster's autoscaler can change its size", b.Pool)
	case b.Count < 0:
		return drover.Errorf(drover.KindInvalid, "pool %s cannot have %d instances: the number must not be negative", b.Pool, b.Count)
	case p.spec.Max > 0 && b.Count > p.spec.Max:
		return drover.Errorf(drover.KindInvalid, "pool %s may have at most %d instances (its max), not %d", b.Pool, p.spec.Max, b.Count)
	}
	e.writePool(PoolRow{Name: b.Pool, Kind: p.spec.Kind, Count: b.Count, Configured: p.spec.Count, Gone: b.Count == p.spec.Count})
	e.note(Note{Level: Info, Text: fmt.Sprintf("pool %s: %s changed from %d to %d", b.Pool, p.spec.Kind, p.count, b.Count), Reason: &b.Reason})
	p.count = b.Count
	e.pools.revision++
	return nil
}

// writePool records the durable part of a pool.
func (e *Engine) writePool(row PoolRow) {
	e.s.Pools = slices.DeleteFunc(slices.Clone(e.s.Pools), func(r PoolRow) bool { return r.Name == row.Name })
	if !row.Gone {
		e.s.Pools = append(e.s.Pools, row)
		slices.SortFunc(e.s.Pools, func(a, b PoolRow) int { return cmp.Compare(a.Name, b.Name) })
	}
	e.write(Write{Pool: &row})
}

// wrongPools finds a pool whose members are not the instances with its name, or that is wrongly considered settled.
func (e *Engine) wrongPools() string {
	anew := pools{}
	for _, in := range e.fleet.All() {
		anew.enter(in)
	}
	if !slices.Equal(anew.names, e.pools.names) || len(anew.members) != len(e.pools.members) {
		return fmt.Sprintf("pools %v have instances, but the index has %v", anew.names, e.pools.names)
	}
	for _, name := range anew.names {
		if !slices.Equal(anew.members[name], e.pools.members[name]) {
			return fmt.Sprintf("pool %s has %d instances, but the index has %d", name, len(anew.members[name]), len(e.pools.members[name]))
		}
	}
	for _, p := range e.pools.list {
		if !p.settled || p.seen != e.pools.revision || p.inUse != e.inUse(p) || e.due(p.next) || e.s.Draining || e.s.Closing || !e.recordsCurrent() {
			continue
		}
		if plan := pool.Reconcile(e.poolInput(p, closings{})); plan.Asks() {
			return fmt.Sprintf("pool %s counts as settled, but needs %+v", p.Name, plan)
		}
	}
	return ""
}
