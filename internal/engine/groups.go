package engine

import (
	"cmp"
	"slices"
	"strings"

	"drover"
	"drover/internal/engine/fleet"
	"drover/internal/engine/queue"
)

// group is the jobs of one key that are not final, and how many of their elements wait.
type group struct {
	Group
	queue.Class
	demand fleet.Demand // what its jobs want of instances
	narrow int          // how much it asks of an instance beside its size
	bound  int          // of those and of the coming, for how many an instance is on its way

	awaits int // for how many there is to be room before another instance would have booted, as far as the last plan goes

	fits  []fit // by ID, the instances that have room for one of its jobs now, as far as news was taken in
	knows bool  // fits is known

	fitted int // the engine's fitting for which some type is known to hold its jobs

	host   bool // there is an instance that its jobs may ever run on
	looked int  // the engine's fleet for which host is known
}

// wants is for how many elements, waiting or to wait soon, there is neither a place nor an instance on its way.
func (g *group) wants() int { return max(0, g.Queued+g.Coming-g.Standby-g.bound) }

// unbound is how many waiting elements have neither a place nor an instance on its way.
func (g *group) unbound() int { return min(g.Queued, g.wants()) }

// booting is for how many waiting elements instances are on their way.
func (g *group) booting() int {
	if g.Key.Gang > 0 {
		return min(g.bound, g.Queued)
	}
	return g.Queued - g.unbound()
}

// wait sets why the group waits; the same cause keeps the time since which it holds.
func (g *group) wait(r Verdict) {
	if g.Reason.Cause == r.Cause && g.Reason.Since != 0 {
		r.Since = g.Reason.Since
	}
	g.Reason, g.Refused = r, nil
}

// addJob takes a job in and, if it may start, puts it in its group.
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

// regroup puts a job that may start, and has something queued, in its groups; any other out of them.
func (e *Engine) regroup(j *Job) {
	e.ungroup(j)
	j.Grown = slices.DeleteFunc(j.Grown, func(g Grown) bool { return len(g.Waiting) == 0 })
	if !j.MayStart() {
		return
	}
	e.join(j, e.queue.KeyOf(j))
	for _, grown := range j.Grown {
		e.join(j, e.queue.KeyOf(j).With(grown.Memory))
	}
}

func (e *Engine) join(j *Job, key GroupKey) {
	if j.WaitingIn(key) == 0 {
		return
	}
	g := e.group(key)
	e.settle(g)
	g.Add(j)
	g.Deferred = false
	e.replace = true
	e.refit = e.refit || g.fitted != e.fitting
}

func (e *Engine) ungroup(j *Job) {
	e.part(j, e.byKey[e.queue.KeyOf(j)])
	for _, grown := range j.Grown {
		e.part(j, e.byKey[e.queue.KeyOf(j).With(grown.Memory)])
	}
}

func (e *Engine) part(j *Job, g *group) {
	if g == nil || !g.Has(j) {
		return
	}
	*j.BlockedIn(g.Key) = e.blockedFor(g, j)
	g.Remove(j)
	e.unbindSurplus(g, e.fleet.Index())
}

// group finds the group of a key, making it if there is none.
func (e *Engine) group(key GroupKey) *group {
	g := e.byKey[key]
	if g == nil {
		known := Group{Key: key, Reason: e.verdict(drover.ReasonPlanning, planningText)}
		g = &group{Group: known, Class: queue.NewClass(key), demand: fleet.Demand{Shape: key.Shape, Owner: drover.OwnerMark(key.User)}, narrow: narrowness(key.Shape)}
		e.byKey[key] = g
		e.groups = append(e.groups, g)
	}
	return g
}

// sortGroups puts the groups in order of service: higher priority first, then whoever uses least of their share, if there are shares, then what
// fewest instances can serve (BEHAVIOUR K2), then the one whose first waiting job was submitted first.
// Groups in which nothing waits are dropped. The order is total, so it survives a restart.
func (e *Engine) sortGroups() {
	e.groups = slices.DeleteFunc(e.groups, func(g *group) bool {
		empty := len(g.Jobs) == 0 && g.bound == 0 && g.Coming == 0
		if empty {
			delete(e.byKey, g.Key)
		}
		return empty
	})
	for i := 1; i < len(e.groups); i++ { // mostly one or two are out of place
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
	if a.narrow != b.narrow {
		return cmp.Compare(b.narrow, a.narrow)
	}
	return cmp.Compare(a.First(), b.First())
}

// take takes the group's next element out of its queue.
func (e *Engine) take(g *group) (*Job, int) {
	j, index, last := g.Take()
	if last {
		*j.BlockedIn(g.Key) = e.blockedFor(g, j)
	}
	return j, index
}

// enqueue puts an element back into its job's queue, to be started again.
func (e *Engine) enqueue(j *Job, index int) {
	j.Enqueue(index)
	j.Since = e.s.Now
	e.postpone(j, index)
	e.regroup(j)
}

// narrowness is how much a shape asks of an instance beside its size.
func narrowness(s drover.Shape) (n int) {
	asks := []bool{s.Placement.Cloud != "", s.Placement.Zone != "", s.Placement.Type != "", s.Placement.MaxPrice != 0, s.Need.Arch != "", s.Need.GPUs > 0, s.Spot == drover.SpotRequire, s.Spot == drover.SpotNever}
	for _, so := range asks {
		if so {
			n++
		}
	}
	return n
}

// labels are the names of the labels that budgets and shares speak of, sorted.
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

// relabel puts jobs in their groups anew if other labels matter now.
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
