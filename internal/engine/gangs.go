package engine

import (
	"fmt"
	"slices"

	"drover"
)

// The elements of a gang begin together or not at all: so many of an array, one after another. A gang is begun by one decision, which has a place for
// each of its elements that is not final. If one of them is to be tried again, those that still run are ended, and put off like those of a job whose
// priority became 0: nothing is counted against them. Until the last of them has ended, what waits of the gang is torn, and in no group.
//
// What is ready is kept for the next gang of a group while the rest of its places are on their way, or are being chosen. If no more may be rented,
// it is kept only where the instances that there are, with those that may still be rented, can hold all of the gang once what runs there has ended; else
// everything is let go, so that no two gangs keep halves from each other. Gangs are served in the order of their groups, so the first to keep places is the first to begin.

// gangOf is the gang of an element, by its first and its last index.
func (j *Job) gangOf(index int) (first, last int) {
	first = j.Array.First + (index-j.Array.First)/j.Gang*j.Gang
	return first, min(first+j.Gang-1, j.Array.Last)
}

// gangLive is the live attempts of an element's gang.
func (e *Engine) gangLive(j *Job, index int) (live []*Attempt) {
	first, last := j.gangOf(index)
	for i := first; i <= last; i++ {
		if a := e.attempts[drover.JobID{Number: j.Number, Index: i}]; a != nil {
			live = append(live, a)
		}
	}
	return live
}

// mend looks whether what waits of an element's gang is torn. The caller puts the job in its group anew.
func (e *Engine) mend(j *Job, index int) {
	if j.Gang == 0 {
		return
	}
	torn := len(e.gangLive(j, index)) > 0
	first, last := j.gangOf(index)
	for i := first; i <= last; i++ {
		if torn && j.Queued.Has(i) {
			j.Torn.Add(i)
		} else {
			j.Torn.Remove(i)
		}
	}
}

// torn is what waits of a job of the State while others of its gang are live.
func (s State) torn(j Job) (torn Ranges) {
	if j.Gang == 0 {
		return nil
	}
	for _, a := range s.Attempts {
		lives := func(in Instance) bool { return in.ID == a.Instance }
		if a.ID.Job.Number == j.Number && slices.ContainsFunc(s.Instances, lives) {
			for _, i := range j.gangmates(a.ID.Job.Index) {
				torn.Add(i)
			}
		}
	}
	return torn
}

// mended is mend after an attempt has begun or ended.
func (e *Engine) mended(j *Job, index int) {
	before := j.Torn.Count()
	if e.mend(j, index); j.Torn.Count() != before && e.job(j.Number) == j {
		e.regroup(j)
	}
}

// disband ends what still runs of the gang of an element that is to be tried again. While the records may be older, nobody knows whether it began with it.
func (e *Engine) disband(j *Job, index int, why drover.Reason) {
	if j.Gang == 0 || !e.proved() {
		return
	}
	for _, a := range e.gangLive(j, index) {
		if a.Stop == nil {
			e.stopAttempt(a, e.reason(drover.ReasonGang, "begins again together with %s: %s", e.jobName(j, index), why.Text))
		}
	}
}

// nextGang is the elements of the group's next gang, all of which wait.
func (g *group) nextGang() (*Job, []int) {
	j := g.jobs[0]
	return j, j.gangmates(j.waitingRanges(g)[0].First)
}

// gangmates is the elements of a gang that wait.
func (j *Job) gangmates(index int) (waiting []int) {
	first, last := j.gangOf(index)
	for i := first; i <= last; i++ {
		if j.Queued.Has(i) {
			waiting = append(waiting, i)
		}
	}
	return waiting
}

// wholeWithin is how many elements the group's next gangs have, of as many gangs as have no more than n together.
func (g *group) wholeWithin(n int) (sum int) {
	for _, j := range g.jobs {
		next := j.Array.First
		for _, run := range j.waitingRanges(g) {
			for next = max(next, run.First); next <= run.Last; {
				size := len(j.gangmates(next))
				if sum+size > n {
					return sum
				}
				sum += size
				_, last := j.gangOf(next)
				next = last + 1
			}
		}
	}
	return sum
}

// placeGang begins the group's next gang, if there is room for all of it.
func (e *Engine) placeGang(g *group) bool {
	j, members := g.nextGang()
	seats := e.seat(g, len(members))
	e.unseat(g, seats)
	if len(seats) < len(members) || !e.payFor(g, seats) {
		return false
	}
	for i, index := range members {
		j.Queued.Remove(index)
		e.beginElement(j, index, seats[i])
	}
	if g.queued -= len(members); j.waitingIn(g) == 0 {
		*j.blocked(g) = e.blockedFor(g, j)
		g.jobs = cut(g.jobs, 0)
	}
	return true
}

// seat takes room for up to n of the group's elements on what is ready; unseat gives it back, before the rolls are called again.
func (e *Engine) seat(g *group, n int) (seats []*instance) {
	for range n {
		in := e.fullest(g)
		if in == nil {
			break
		}
		in.free = in.free.Minus(g.key.Shape.Need, 1)
		in.seated++
		seats = append(seats, in)
	}
	return seats
}

func (e *Engine) unseat(g *group, seats []*instance) {
	for _, in := range seats {
		in.free = in.free.Plus(g.key.Shape.Need, 1)
		in.seated--
	}
}

// payFor reports whether all budgets are kept if an element of the group begins on each of the seats.
func (e *Engine) payFor(g *group, seats []*instance) bool {
	if !e.limited() {
		return true
	}
	var all []pledge
	for _, in := range seats {
		at := slices.IndexFunc(all, func(p pledge) bool { return p.in == in })
		if at < 0 {
			all = append(all, pledge{in: in, loads: []wanted{{g, 1}}})
			continue
		}
		all[at].loads[0].count++
	}
	if a := e.refusesAll(all); a != nil {
		g.wait(e.why(a))
		return false
	}
	return true
}

// kept is room that is kept for a gang until others were placed.
type kept struct {
	g     *group
	seats []*instance
}

// gather keeps what is ready for the group's next gang, if all of it can come together; else it lets go of everything.
func (e *Engine) gather(g *group, r *rolls, before bool) {
	if g.queued == 0 {
		e.unbindSurplus(g, r)
		return
	}
	_, members := g.nextGang()
	if e.hopelessFor(g, len(members)) {
		e.unbindSome(g, r, g.bound)
		g.unmet, e.gaveUp = g.wants(), true
		return
	}
	seats := e.seat(g, len(members))
	e.kept = append(e.kept, kept{g, seats})
	for _, in := range seats {
		in.standby++
		in.gathers = true
		g.standby++
		e.enlist(in)
	}
	e.unbindSurplus(g, r)
	if g.wants() > 0 {
		e.bindWaiting(g, r)
	}
	if g.stuck && g.wants() > 0 {
		e.takeOver(g, r)
	}
	g.unmet = min(g.unmet, g.wants())
	if g.stuck && g.served > 0 && g.standby+g.bound+g.served >= len(members) {
		e.replan = true // the rest may be rented now
	}
	if left := min(len(members)-len(seats), g.unbound()); left > 0 && g.stuck && before {
		e.claims.wait(g, left)
	}
}

// gatherAnew has gangs that let go of everything keep what is ready again before a plan is made that they may be in.
func (e *Engine) gatherAnew() {
	if e.replan && slices.ContainsFunc(e.groups, func(g *group) bool { return g.key.Gang > 0 && g.stuck }) {
		e.replace = true
	}
}

// unkeep gives back what was kept while others were placed.
func (e *Engine) unkeep() {
	for _, k := range e.kept {
		e.unseat(k.g, k.seats)
		for _, in := range k.seats {
			e.enlist(in)
		}
	}
	e.kept = e.kept[:0]
}

// hopelessFor reports whether so many of the group can come together neither on what may be rented nor on what there is.
func (e *Engine) hopelessFor(g *group, n int) bool {
	if !g.stuck && !e.s.Closing || e.replan && !g.barred || e.s.Solving != nil && slices.Contains(e.s.Solving.Groups, g.key) {
		return false
	}
	return n > g.served && e.hostsOf(g, n) < n-g.served
}

// hosts is how many of a gang's job what there is can hold at once, once all else there has ended.
type hosts struct {
	fleet int   // for which that is known
	job   int64 // of which
	of    int   // no more than so many were looked for
	count int
}

// hostsOf is how many of n of the group's next job there is room for once all else has ended. What it finds is good while the fleet is the same.
func (e *Engine) hostsOf(g *group, n int) int {
	h := hosts{fleet: e.fleet, job: g.jobs[0].Number, of: n}
	if o := g.hosts; o.fleet == h.fleet && o.job == h.job && o.of == h.of {
		return o.count
	}
	for _, in := range e.instances {
		if h.count >= n {
			break
		}
		if e.looks++; in.takes() && in.State != drover.InstanceStopping && in.accepts(&g.key.Shape) && !slices.Contains(in.Lost, h.job) {
			h.count += in.Resources.Times(g.key.Shape.Need, in.atOnce(n))
		}
	}
	g.hosts = h
	return h.count
}

// wholeGangs is a plan's purchases without what would be rented for parts of gangs.
func (e *Engine) wholeGangs(s *Solving, plan drover.Plan) []drover.Purchase {
	if !slices.ContainsFunc(s.Groups, func(k GroupKey) bool { return k.Gang > 0 }) {
		return plan.Purchases
	}
	purchases := slices.Clone(plan.Purchases)
	for i := range purchases {
		purchases[i].Loads = slices.Clone(purchases[i].Loads)
	}
	for _, key := range s.Groups {
		if g := e.byKey[key]; g != nil && key.Gang > 0 {
			e.trim(s, purchases, g)
		}
	}
	for {
		g, why := e.unable(s, purchases)
		if g == nil {
			return purchases
		}
		e.drop(s, purchases, g, why)
	}
}

// trim leaves a gang's group what makes whole gangs together with the places that it has.
func (e *Engine) trim(s *Solving, purchases []drover.Purchase, g *group) {
	served := 0
	for _, p := range purchases {
		served += e.servedBy(s, p, g)
	}
	has := g.standby + g.bound
	left := g.wholeWithin(has+min(served, g.wants())) - has
	if served == 0 {
		return
	}
	if left <= 0 {
		e.drop(s, purchases, g, e.reason(drover.ReasonGang, "not all that begin together can be rented"))
		g.served = served
		return
	}
	for _, p := range purchases {
		for i, l := range p.Loads {
			if e.demanded(s, l.Demand) == g {
				p.Loads[i].Count = min(l.Count, left)
				left -= p.Loads[i].Count
			}
		}
	}
}

func (e *Engine) servedBy(s *Solving, p drover.Purchase, g *group) (n int) {
	for _, l := range p.Loads {
		if e.demanded(s, l.Demand) == g {
			n += max(0, l.Count)
		}
	}
	return n
}

// drop rents nothing for a gang's group. What that leaves may serve others, which are planned for once more, without it.
func (e *Engine) drop(s *Solving, purchases []drover.Purchase, g *group, why drover.Reason) {
	for _, p := range purchases {
		for i, l := range p.Loads {
			if e.demanded(s, l.Demand) == g {
				p.Loads[i].Count = 0
			}
		}
	}
	if g.served = 0; g.queued == 0 {
		return
	}
	if !g.stuck {
		e.stick([]*group{g}, why)
	}
	g.barred, e.replan, e.replace = true, true, true
}

// unable is a gang's group for which one of the purchases cannot be made, and why; nil if all can.
func (e *Engine) unable(s *Solving, purchases []drover.Purchase) (*group, drover.Reason) {
	room, clouds := e.room(), map[string]int{}
	var taken []pledge
	for _, p := range purchases {
		loads := e.stillWanted(s, p.Loads)
		if len(loads) == 0 {
			continue
		}
		gang := slices.IndexFunc(loads, func(w wanted) bool { return w.g.key.Gang > 0 })
		o, ok := e.firstOf(s, p)
		room--
		clouds[o.Cloud]++
		why := e.reason(drover.ReasonGang, "what was to be rented cannot be had any more")
		ok = ok && room >= 0 && clouds[o.Cloud] <= e.cloudRoom(o.Cloud)
		if ok && e.limited() {
			ok, why = e.affords(o, loads, &taken)
		}
		if !ok && gang >= 0 {
			return loads[gang].g, why
		}
	}
	return nil, drover.Reason{}
}

// firstOf is the offering that a purchase is of, if it still may be rented.
func (e *Engine) firstOf(s *Solving, p drover.Purchase) (o drover.Offering, ok bool) {
	if len(p.Candidates) == 0 || p.Candidates[0] < 0 || p.Candidates[0] >= len(s.Problem.Offerings) {
		return o, false
	}
	o = s.Problem.Offerings[p.Candidates[0]]
	return o, e.blockOf(o) == nil && !e.overtaken(o)
}

// affords adds a purchase to those that were taken, if all that they are for may be paid.
func (e *Engine) affords(o drover.Offering, loads []wanted, taken *[]pledge) (bool, drover.Reason) {
	o = e.withVolume(o, e.volume(o, loads))
	all := append(*taken, pledge{offers: []drover.Offering{o}, boots: e.life().BootTimeout, loads: loads})
	if a := e.refusesAll(all); a != nil {
		return false, e.why(a)
	}
	*taken = all
	return true, drover.Reason{}
}

// whyGang says how many of the group's next gang have places.
func (e *Engine) whyGang(g *group) []drover.Reason {
	if g.key.Gang == 0 || g.queued == 0 {
		return nil
	}
	_, members := g.nextGang()
	text := fmt.Sprintf("%d begin together or none: %d have places that are ready, and %d some on their way", len(members), g.standby, min(g.bound, len(members)-g.standby))
	return []drover.Reason{{Code: drover.ReasonGang, Text: text, Since: g.reason.Since}}
}

// whyTorn says what elements wait for while others of their gangs have yet to end.
func (e *Engine) whyTorn(j *Job) []drover.Reason {
	if len(j.Torn) == 0 {
		return nil
	}
	text := fmt.Sprintf("begins again together with others of its gang: %d of them have yet to end", len(e.gangLive(j, j.Torn[0].First)))
	return []drover.Reason{{Code: drover.ReasonGang, Text: text, Since: j.Since}}
}
