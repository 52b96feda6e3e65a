package engine

import (
	"cmp"
	"slices"
	"strings"

	"drover"
	"drover/internal/engine/fleet"
	"drover/internal/engine/queue"
)

// group is the unfinished jobs of one key that may start, and the number of their waiting elements.
type group struct {
	Group
	queue.Class
	demand      fleet.Demand // what its jobs need of an instance
	constraints int          // how many constraints it has besides its size
	reserved    int          // elements, waiting or coming, with a reservation on a coming instance

	solving      int64 // the last Solve effect whose problem had a demand of the group
	fewest       fewest
	lacks        int // instances that cannot run its jobs and are to become empty for it
	awaitingEnds int // elements for which the last plan expects room before a new instance would have booted

	runTime groupRunTime

	fits     []fit // by ID, the instances that may have room for one of its jobs, as of the last News
	examined int64 // the instance up to which fits is known

	typesRevision int // the engine's typesRevision for which some type is known to fit

	hasHost      bool // an existing instance may run its jobs
	hostRevision int  // the fleet's revision for which host is known
}

// netDemand returns how many waiting or coming elements have neither a place nor a reservation.
func (g *group) netDemand() int { return max(0, g.Queued+g.Coming-g.Standby-g.reserved) }

// unreserved returns how many waiting elements have neither a place nor a reservation.
func (g *group) unreserved() int { return min(g.Queued, g.netDemand()) }

// booting returns for how many waiting elements instances are coming.
func (g *group) booting() int {
	if g.Key.Gang > 0 {
		return min(g.reserved, g.Queued)
	}
	return g.Queued - g.unreserved()
}

// setReason sets why the group waits; if the cause is unchanged, so is its time.
func (g *group) setReason(r Verdict) {
	if g.Reason.Cause == r.Cause && g.Reason.Since != 0 {
		r.Since = g.Reason.Since
	}
	g.Reason, g.Refused = r, nil
}

// addJob adds a job and, if it may start, puts it in its group.
func (e *Engine) addJob(j *Job) {
	e.queue.Add(j)
	e.postponeFrom(j)
	e.regroup(j)
}

func (e *Engine) job(number int64) *Job { return e.queue.Job(number) }

func (e *Engine) removeJob(j *Job) {
	e.ungroup(j)
	e.queue.Remove(j.Number)
}

// regroup puts a job that may start and has queued elements in its groups, and removes any other.
func (e *Engine) regroup(j *Job) {
	e.ungroup(j)
	j.DropGrown()
	if !j.MayStart() {
		return
	}
	e.joinGroup(j, e.queue.KeyOf(j))
	for _, grown := range j.Grown {
		e.joinGroup(j, e.queue.KeyOf(j).With(grown.Memory))
	}
}

func (e *Engine) joinGroup(j *Job, key GroupKey) {
	if j.WaitingIn(key) == 0 {
		return
	}
	g := e.group(key)
	e.endBlockedTime(g)
	g.Add(j)
	g.Deferred = false
	e.pending.Place = true
	e.pending.FitCheck = e.pending.FitCheck || g.typesRevision != e.typesRevision
}

func (e *Engine) ungroup(j *Job) {
	e.leaveGroup(j, e.byKey[e.queue.KeyOf(j)])
	for _, grown := range j.Grown {
		e.leaveGroup(j, e.byKey[e.queue.KeyOf(j).With(grown.Memory)])
	}
}

func (e *Engine) leaveGroup(j *Job, g *group) {
	if g == nil || !g.Has(j) {
		return
	}
	*j.BlockedIn(g.Key) = e.blockedFor(g, j)
	g.Remove(j)
	e.dropSurplus(g, e.fleet.Index())
}

// group returns the group of a key, creating it if needed.
func (e *Engine) group(key GroupKey) *group {
	g := e.byKey[key]
	if g == nil {
		known := Group{Key: key, Reason: e.verdict(drover.ReasonPlanning, planningText)}
		g = &group{Group: known, Class: queue.NewClass(key), demand: fleet.Demand{Shape: key.Shape, Owner: drover.OwnerMark(key.User)}, constraints: countConstraints(key.Shape)}
		e.byKey[key] = g
		e.groups = append(e.groups, g)
		if s := e.s.Solving; s != nil && slices.Contains(s.Groups, key) {
			g.solving = s.Effect
		}
	}
	return g
}

// take dequeues what the group starts next, and of which job.
func (e *Engine) take(g *group) (*Job, []int) {
	j, elements := g.Take()
	if !g.Has(j) {
		*j.BlockedIn(g.Key) = e.blockedFor(g, j)
	}
	return j, elements
}

// enqueue returns an element to its job's queue.
func (e *Engine) enqueue(j *Job, index int) {
	if len(j.Queued) == 0 {
		j.Since = e.s.Now
	}
	j.Enqueue(index)
	e.postpone(j, index)
	e.regroup(j)
}

// labels returns the names of the labels that budgets and shares refer to, sorted.
func (s Settings) labels() (names []string) {
	if name := s.Shares.By.Label(); name != "" {
		names = append(names, name)
	}
	for _, b := range s.Budgets {
		if name, _, ok := strings.Cut(b.Label, "="); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// relabel regroups all jobs if other labels matter now.
func (e *Engine) relabel() {
	names := e.s.Settings.labels()
	if slices.Equal(names, e.queue.Labels()) {
		return
	}
	for j := range e.queue.All() {
		e.ungroup(j)
	}
	e.queue.SetLabels(names)
	for j := range e.queue.All() {
		e.regroup(j)
	}
}

// sortGroups sorts the groups in order of service: higher priority first, then, with shares, whoever uses least of
// theirs, then the most constrained (K2 in docs/behaviour.md), then the lowest job number. It drops empty groups. The
// order is total, so it survives a restart.
func (e *Engine) sortGroups() {
	e.groups = slices.DeleteFunc(e.groups, func(g *group) bool {
		empty := len(g.Jobs) == 0 && g.reserved == 0 && g.Coming == 0
		if empty {
			delete(e.byKey, g.Key)
		}
		return empty
	})
	for i := 1; i < len(e.groups); i++ { // usually only one or two are out of place
		g := e.groups[i]
		if e.compareGroups(e.groups[i-1], g) <= 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(e.groups[:i], g, func(o, g *group) int { return cmp.Or(e.compareGroups(o, g), -1) })
		copy(e.groups[at+1:i+1], e.groups[at:i])
		e.groups[at] = g
	}
}

func (e *Engine) compareGroups(a, b *group) int {
	if a.Key.Priority != b.Key.Priority {
		return cmp.Compare(b.Key.Priority, a.Key.Priority)
	}
	if order := e.byShare(a, b); order != 0 {
		return order
	}
	if a.constraints != b.constraints {
		return cmp.Compare(b.constraints, a.constraints)
	}
	return cmp.Compare(a.First(), b.First())
}

// countConstraints counts what a shape requires of an instance besides its size.
func countConstraints(s drover.Shape) (n int) {
	asks := []bool{s.Placement.Cloud != "", s.Placement.Zone != "", s.Placement.Type != "", s.Placement.MaxPrice != 0, s.Need.Arch != "", s.Need.GPUs > 0, s.Spot == drover.SpotRequire, s.Spot == drover.SpotNever}
	for _, so := range asks {
		if so {
			n++
		}
	}
	return n
}
