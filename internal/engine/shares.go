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

// Shares divide the fleet among work of one priority, by user or by the value of a label. The sharer with the least use
// for its weight starts the next element. Use is the vCPUs running now; nothing earlier counts, so nothing is stored
// and a restart changes nobody's turn.
//
// A sharer's large job could wait forever while other sharers' small ones start and end, since room for it never
// accumulates. So a group that waits for room while another sharer's smaller job starts gets the turn, one group per
// priority: it goes before all others of the priority, and room for one of its jobs is held on the instance with the
// most room, until one has started. The room held serves any equal request, so among equal jobs the turn belongs to the
// sharer with the least use for its weight.

// sharing reports whether shares are configured.
func (e *Engine) sharing() bool { return e.s.Settings.Shares.By != "" }

// sharer returns whose share a group's jobs use: a user, or a label's value; empty without the label.
func (e *Engine) sharer(key *GroupKey) string {
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

// occupy deducts an attempt from its instance's room and its sharer's share; vacate returns both.
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

// charge adds an attempt's vCPUs to its sharer's use; a negative number returns them.
func (e *Engine) charge(a *Attempt, cpu drover.MilliCPU) {
	if !e.sharing() || cpu == 0 {
		return
	}
	key := e.queue.KeyOf(e.job(a.ID.Job.Number))
	name := e.sharer(&key)
	if e.used[name] += cpu; e.used[name] == 0 {
		delete(e.used, name)
	}
}

// recount recomputes the use of shares and of the mix from what runs.
func (e *Engine) recount() {
	e.used, e.runs = map[string]drover.MilliCPU{}, map[GroupKey]runs{}
	for _, in := range e.fleet.All() {
		for _, a := range in.Load {
			e.countMix(in, a, 1)
			e.charge(a, e.need(a).CPU)
		}
	}
}

// byShare compares two groups of one priority by turn and share.
func (e *Engine) byShare(a, b *group) int {
	switch {
	case !e.sharing():
		return 0
	case a.Turn != b.Turn && a.Turn:
		return -1
	case a.Turn != b.Turn:
		return 1
	}
	x, y := e.sharer(&a.Key), e.sharer(&b.Key)
	if x == y {
		return 0
	}
	return e.queueFor(x).against(e.queueFor(y))
}

// shareQueue is the groups of one sharer at one priority, and the sharer's use.
type shareQueue struct {
	name   string
	used   drover.MilliCPU
	weight int
	groups []*group
}

// queueOf returns a queue with one group.
func (e *Engine) queueOf(g *group) shareQueue { return e.queueFor(e.sharer(&g.Key), g) }

// queueFor returns a sharer's queue with these groups.
func (e *Engine) queueFor(name string, groups ...*group) shareQueue {
	return shareQueue{name: name, used: e.used[name], weight: e.s.Settings.Shares.Weight(name), groups: groups}
}

// against compares two sharers' use for their weights. Weights are at most a million, so the products do not overflow.
func (q shareQueue) against(o shareQueue) int {
	return cmp.Compare(int64(q.used)*int64(o.weight), int64(o.used)*int64(q.weight))
}

// before orders queues: least use first, then the order without shares.
func (q shareQueue) before(o shareQueue) int {
	a, b := q.groups[0], o.groups[0]
	return cmp.Or(q.against(o), cmp.Compare(b.constraints, a.constraints), cmp.Compare(a.First(), b.First()))
}

// placeByShares places groups like place, with sharers taking turns.
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

// queues splits the groups of one priority by sharer. The group with the turn comes first in its queue.
func (e *Engine) queues(groups []*group) (all []shareQueue) {
	at := map[string]int{}
	for _, g := range groups {
		name := e.sharer(&g.Key)
		i, known := at[name]
		if !known {
			at[name] = len(all)
			all = append(all, e.queueFor(name, g))
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

// placeLevel starts what fits of one priority's groups, an element at a time.
func (e *Engine) placeLevel(level []*group, r *fleet.Index) {
	turn, begun := e.turnOf(level), []*group{}
	for queues := e.queues(level); len(queues) > 0; {
		at, least := next(queues)
		q := &queues[at]
		g := q.groups[0]
		if e.placeNext(g) {
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

// passedOver reports whether a group waits for room while other sharers' smaller jobs have just started.
func (e *Engine) passedOver(g *group, begun []*group) bool {
	smaller := func(o *group) bool {
		return e.sharer(&o.Key) != e.sharer(&g.Key) && !o.Key.Shape.Need.Fits(g.Key.Shape.Need)
	}
	return slices.ContainsFunc(begun, smaller) && e.waitsForRoom(g)
}

// turnOf returns the group with the turn, nil if none. A group that no longer waits for room loses it.
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

// firstOfEqual returns, of the groups that wait for as much room as g, the one whose sharer uses least.
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

// waitsForRoom reports whether elements of the group wait only for room on existing instances.
func (e *Engine) waitsForRoom(g *group) bool {
	return g.Unschedulable && g.unreserved() > 0 && g.Reason.Cause != verdict.Budget && e.hosted(g)
}

// next returns the queue whose turn it is, and the one whose sharer uses least.
func next(queues []shareQueue) (at, least int) {
	for i := 1; i < len(queues); i++ {
		if queues[i].before(queues[least]) < 0 {
			least = i
		}
	}
	if at = slices.IndexFunc(queues, func(q shareQueue) bool { return q.groups[0].Turn }); at < 0 {
		at = least
	}
	return at, least
}

// whyShare explains whose turn it is, if another sharer's work of the same priority goes before a group's.
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
		text = fmt.Sprintf("%s goes first, since room is being reserved for job %s", e.sharerText(first.name), first.groups[0].Jobs[0].Name)
	}
	return []Verdict{{Cause: drover.ReasonShare, Text: text, Since: max(g.Reason.Since, g.Jobs[0].Since, first.groups[0].Jobs[0].Since)}}
}

// sharerText names a sharer.
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
