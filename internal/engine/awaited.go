package engine

import (
	"cmp"
	"slices"
	"time"

	"drover"
	"drover/internal/runtimes"
)

// Nothing is rented for a job as long as room for it that costs less is likely to be there before what would be rented had booted. So nobody waits longer
// than for a boot, and one boot less is paid. Only such ends are counted on of which it is known well enough when they come.

// awaitedEnd is when an attempt is likely to end that runs.
type awaitedEnd struct {
	at drover.Time
	a  *Attempt
}

func (x awaitedEnd) compare(y awaitedEnd) int {
	return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.a.ID.Job.Number, y.a.ID.Job.Number), cmp.Compare(x.a.ID.Job.Index, y.a.ID.Job.Index))
}

const (
	sureSpread = runtimes.Octave / 2 // what is less certain is not counted on
	sureBy     = 80                  // hundredths of likelihood that it has ended in time
	sureReach  = 64                  // so many ends are looked at
	sureLate   = 10 * time.Second    // what should have ended that long ago is not counted on
)

func endOf(a *Attempt) awaitedEnd { return awaitedEnd{a.Started.Add(a.Likely.Median()), a} }

// expectEnd notes when an attempt is likely to end.
func (e *Engine) expectEnd(a *Attempt) {
	if a.Likely.Sigma <= sureSpread && a.State != drover.AttemptCollecting {
		end := endOf(a)
		at, _ := slices.BinarySearchFunc(e.ends, end, awaitedEnd.compare)
		e.ends = slices.Insert(e.ends, at, end)
	}
}

// hasEnded forgets when an attempt is likely to end.
func (e *Engine) hasEnded(a *Attempt) {
	if at, found := slices.BinarySearchFunc(e.ends, endOf(a), awaitedEnd.compare); found {
		e.ends = slices.Delete(e.ends, at, at+1)
	}
}

// awaitsEnds counts, of so many jobs of the group, those for which room is to be there in time, and notes when that is to be looked at again.
func (e *Engine) awaitsEnds(g *group, count int, taken map[*Attempt]bool) (n int) {
	if len(e.ends) == 0 || len(g.Jobs) == 0 || g.Key.Gang > 0 || g.Unschedulable || e.s.Closing {
		return 0
	}
	left := g.Jobs[0].Since.Add(e.bootTimes().quickest).Sub(e.s.Now)
	anew, known := e.costAlone(g)
	if left <= 0 || !known {
		return 0
	}
	runs := e.runsOf(g).Left(0)
	from, _ := slices.BinarySearchFunc(e.ends, e.s.Now.Add(-sureLate), func(x awaitedEnd, at drover.Time) int { return cmp.Compare(x.at, at) })
	for _, end := range e.ends[from:min(len(e.ends), from+sureReach)] {
		if n == count || end.at > e.s.Now.Add(left) {
			break
		}
		a := end.a
		in := e.instance(a.Instance)
		if taken[a] || !e.makesRoom(a, in, g) {
			continue
		}
		ends := a.Likely.Left(e.s.Now.Sub(a.Started))
		by, others := ends.By(sureBy), e.leftOf(in)
		later := runs.Later(ends.Mean())
		if by > left || in.Price.For(runtimes.Beyond(&later, &others))+e.keptForOthers(g, in) > anew {
			continue
		}
		taken[a] = true
		e.await = sooner(e.await, e.s.Now.Add(by+time.Second))
		n++
	}
	return n
}

// awaitsNow is for how many elements of a job that was just submitted there would be room in time: an instance that is kept idle spares them nothing.
func (e *Engine) awaitsNow(j *Job) int {
	g := e.byKey[e.queue.KeyOf(j)]
	if g == nil || len(e.ends) == 0 {
		return 0
	}
	return e.awaitsEnds(g, j.Queued.Count(), map[*Attempt]bool{})
}

// makesRoom reports whether one of the group's jobs fits on an instance once an attempt has ended there.
func (e *Engine) makesRoom(a *Attempt, in *instance, g *group) bool {
	return in.open() && in.Standby == 0 && !in.once && !slices.Contains(in.Lost, g.Jobs[0].Number) && in.accepts(g) &&
		in.free.Plus(e.need(a), 1).Fits(g.Key.Shape.Need)
}
