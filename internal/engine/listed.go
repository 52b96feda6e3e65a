package engine

import "drover"

// front is the jobs of a group for whose first elements instances are on their way, and how many elements of others come before each.
type front map[int64]int

// WhyWait says of each of these jobs, arrays as a whole, or elements, the first reason for which it waits; none of those that do not. It looks at each of them, and
// at those that instances are on their way for, but not at all that waits.
func (e *Engine) WhyWait(ids []drover.JobID) []*drover.Reason {
	why, fronts := make([]*drover.Reason, len(ids)), map[*group]front{}
	for i, id := range ids {
		if j := e.job(id.Number); j != nil && j.Waits(id) > 0 {
			why[i] = new(e.whyFirst(j, id, fronts).Reason())
		}
	}
	return why
}

func (e *Engine) whyFirst(j *Job, id drover.JobID, fronts map[*group]front) Verdict {
	if why, held := e.whyHeld(j); held {
		return why
	}
	if j.Postponed.Has(id.Index) {
		return e.whyPostponed(j, id)[0]
	}
	key, rank := e.queue.KeyOf(j), 0
	if id.Index >= 0 || !j.Array.Set {
		key = e.queue.KeyOf(j).With(j.MemoryOf(id.Index))
	}
	g := e.byKey[key]
	if id.Index < 0 && j.Array.Set && (g == nil || j.WaitingIn(g.Key) == 0) {
		if why := e.whyPostponed(j, id); len(why) > 0 {
			return why[0]
		}
	}
	if g == nil || g.Reason.Cause == "" {
		return Verdict{Cause: drover.ReasonPlanning, Text: planningText, Since: j.Since}
	}
	if id.Index >= 0 {
		rank = j.WaitingRanges(g.Key).Rank(id.Index)
	}
	if fronts[g] == nil {
		fronts[g] = frontOf(g)
	}
	if before, first := fronts[g][j.Number]; first && before+rank < g.booting() {
		return Verdict{Cause: drover.ReasonBooting, Text: bootingText}
	}
	return g.Reason
}

// frontOf is the front of a group.
func frontOf(g *group) front {
	f, before := front{}, 0
	for _, j := range g.Jobs {
		if before >= g.booting() {
			break
		}
		f[j.Number] = before
		before += j.WaitingIn(g.Key)
	}
	return f
}
