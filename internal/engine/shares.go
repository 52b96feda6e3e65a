package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"drover"
	"drover/internal/engine/fleet"
	"drover/internal/engine/verdict"
)

// Shares divide what there is among those whose work has one priority: users, or the values of a label. Whoever uses least for their weight has their
// next element begun, one at a time. Use is the vCPUs of what runs now; nothing is remembered of what ran before, so that there is nothing to write
// down, and a restart changes nobody's turn.
//
// A large job of one could so wait for ever while small ones of others begin and end, since room for it never comes together. So a group that waits for
// room while something of another's begins that needs less has the turn from then on, one group at a priority: it comes before all others of the
// priority, and room for one job of it is kept on the instance that has most, until one has begun. What room has come together for one serves all that
// ask for the same, so of those with equal jobs the turn is whose who uses least for their weight.

// sharing reports whether there are shares.
func (e *Engine) sharing() bool { return e.s.Settings.Shares.By != "" }

// sharer is whose share the jobs of a group are of: a user, or a label's value; empty for those without.
func (e *Engine) sharer(key GroupKey) string {
	label := e.s.Settings.Shares.By.Label()
	if label == "" {
		return key.User
	}
	for line := range strings.SplitSeq(key.Labels, "\n") {
		if value, has := strings.CutPrefix(line, label+"="); has {
			return value
		}
	}
	return ""
}

// occupy has an attempt take its room of an instance, and of its sharer's share; vacate gives both back.
func (e *Engine) occupy(in *fleet.Member, a *Attempt) {
	need := e.need(a)
	in.Take(need)
	delete(e.backfill.spare, in)
	e.changed(in)
	e.charge(a, need.CPU)
}

func (e *Engine) vacate(in *fleet.Member, a *Attempt) {
	need := e.need(a)
	e.forgetEnd(a)
	in.Give(need)
	delete(e.backfill.spare, in)
	e.changed(in)
	e.charge(a, -need.CPU)
}

// charge counts vCPUs that an attempt takes, or gives back.
func (e *Engine) charge(a *Attempt, cpu drover.MilliCPU) {
	if !e.sharing() || cpu == 0 {
		return
	}
	name := e.sharer(e.queue.KeyOf(e.job(a.ID.Job.Number)))
	if e.used[name] += cpu; e.used[name] == 0 {
		delete(e.used, name)
	}
}

// recount counts anew what runs: what is used by whoever has shares now, and what is mixed.
func (e *Engine) recount() {
	e.used, e.runs = map[string]drover.MilliCPU{}, map[GroupKey]runs{}
	for _, in := range e.fleet.All() {
		for _, a := range in.Load {
			e.countMix(in, a, 1)
			e.charge(a, e.need(a).CPU)
		}
	}
}

// byShare compares whose turn it is of two groups of one priority.
func (e *Engine) byShare(a, b *group) int {
	switch {
	case !e.sharing():
		return 0
	case a.Turn != b.Turn && a.Turn:
		return -1
	case a.Turn != b.Turn:
		return 1
	}
	return e.queueOf(a).against(e.queueOf(b))
}

// shareQueue is the groups of one sharer at one priority, and what the sharer uses.
type shareQueue struct {
	name   string
	used   drover.MilliCPU
	weight int
	groups []*group
}

// queueOf is a queue with one group.
func (e *Engine) queueOf(g *group) shareQueue {
	name := e.sharer(g.Key)
	return shareQueue{name: name, used: e.used[name], weight: e.s.Settings.Shares.Weight(name), groups: []*group{g}}
}

// against compares what two sharers use for their weights. Weights end at a million, and vCPUs long before the product is too large.
func (q shareQueue) against(o shareQueue) int {
	return cmp.Compare(int64(q.used)*int64(o.weight), int64(o.used)*int64(q.weight))
}

// before compares two queues: who uses less goes first and, if that is equal, what would go first without shares.
func (q shareQueue) before(o shareQueue) int {
	a, b := q.groups[0], o.groups[0]
	return cmp.Or(q.against(o), cmp.Compare(b.narrow, a.narrow), cmp.Compare(a.First(), b.First()))
}

// placeByShares is place for groups in order of service, where sharers take turns.
func (e *Engine) placeByShares(groups []*group, r *fleet.Index) {
	for len(groups) > 0 {
		n := slices.IndexFunc(groups, func(g *group) bool { return g.Key.Priority != groups[0].Key.Priority })
		if n < 0 {
			n = len(groups)
		}
		e.placeLevel(groups[:n], r)
		groups = groups[n:]
	}
}

// queues are the groups of one priority by their sharers. The one that has the turn comes first in its own.
func (e *Engine) queues(groups []*group) (all []shareQueue) {
	at := map[string]int{}
	for _, g := range groups {
		q := e.queueOf(g)
		i, known := at[q.name]
		if !known {
			at[q.name] = len(all)
			all = append(all, q)
			continue
		}
		all[i].groups = append(all[i].groups, g)
		if g.Turn {
			last := len(all[i].groups) - 1
			all[i].groups = slices.Insert(all[i].groups[:last], 0, g)
		}
	}
	return all
}

// placeLevel begins what there is room for of one priority's groups, an element at a time.
func (e *Engine) placeLevel(level []*group, r *fleet.Index) {
	turn, begun := e.turnOf(level), []*group{}
	for queues := e.queues(level); len(queues) > 0; {
		at, least := next(queues), leastUsed(queues)
		q := &queues[at]
		g := q.groups[0]
		if e.placeOne(g) {
			q.used = e.used[q.name]
			if g.Turn {
				g.Turn, turn = false, nil
			}
			if !slices.Contains(begun, g) {
				begun = append(begun, g)
			}
			continue
		}
		if turn == nil && e.passedOver(g, begun) {
			turn = e.firstOfEqual(level, g)
			turn.Turn = true
		}
		e.reserveRest(g, r, true, g.Turn && at != least)
		if q.groups = q.groups[1:]; len(q.groups) == 0 {
			queues = slices.Delete(queues, at, at+1)
		}
	}
}

// passedOver reports whether a group waits for room while what has just begun of others would not have left it enough.
func (e *Engine) passedOver(g *group, begun []*group) bool {
	smaller := func(o *group) bool {
		return e.sharer(o.Key) != e.sharer(g.Key) && !o.Key.Shape.Need.Fits(g.Key.Shape.Need)
	}
	return slices.ContainsFunc(begun, smaller) && e.waitsForRoom(g)
}

// turnOf is the group of one priority that has the turn, nil if none has. One that waits for room no longer loses it.
func (e *Engine) turnOf(level []*group) (turn *group) {
	for _, g := range level {
		if g.Turn && turn == nil && e.waitsForRoom(g) {
			turn = g
		}
		g.Turn = false
	}
	if turn != nil {
		turn = e.firstOfEqual(level, turn)
		turn.Turn = true
	}
	return turn
}

// firstOfEqual is, of the groups that wait for as much room as one of them does, the one whose sharer uses least.
func (e *Engine) firstOfEqual(level []*group, g *group) *group {
	first := e.queueOf(g)
	for _, o := range level {
		if o.Key.Shape != g.Key.Shape || o.Key.Gang != g.Key.Gang || !e.waitsForRoom(o) {
			continue
		}
		if q := e.queueOf(o); q.against(first) < 0 {
			first = q
		}
	}
	return first.groups[0]
}

// waitsForRoom reports whether elements of the group wait for nothing but room on what there is.
func (e *Engine) waitsForRoom(g *group) bool {
	return g.Unschedulable && g.unreserved() > 0 && g.Reason.Cause != verdict.Budget && e.hosted(g)
}

// next is the queue whose turn it is.
func next(queues []shareQueue) int {
	if at := slices.IndexFunc(queues, func(q shareQueue) bool { return q.groups[0].Turn }); at >= 0 {
		return at
	}
	return leastUsed(queues)
}

func leastUsed(queues []shareQueue) (at int) {
	for i := range queues {
		if queues[i].before(queues[at]) < 0 {
			at = i
		}
	}
	return at
}

// whyShare says whose turn it is, where work of others of the same priority comes before a group's.
func (e *Engine) whyShare(g *group) []Verdict {
	if !e.sharing() {
		return nil
	}
	own, first := e.queueOf(g), e.queueOf(g)
	for _, o := range e.groups {
		if q := e.queueOf(o); o.Key.Priority == g.Key.Priority && o.unreserved() > 0 && q.name != own.name && (o.Turn || !first.groups[0].Turn && q.against(first) < 0) {
			first = q
		}
	}
	if first.name == own.name {
		return nil
	}
	text := fmt.Sprintf("%s goes first, with %v vCPUs running and weight %d; %s has %v running and weight %d",
		e.sharerText(first.name), first.used, first.weight, e.sharerText(own.name), own.used, own.weight)
	if first.groups[0].Turn {
		text = fmt.Sprintf("%s goes first, since room is being saved for job %s", e.sharerText(first.name), first.groups[0].Jobs[0].Name)
	}
	return []Verdict{{Cause: drover.ReasonShare, Text: text, Since: g.Reason.Since}}
}

// sharerText names somebody who has a share.
func (e *Engine) sharerText(name string) string {
	switch label := e.s.Settings.Shares.By.Label(); {
	case label == "":
		return "user " + name
	case name == "":
		return "jobs without label " + label
	default:
		return "label " + label + "=" + name
	}
}
