package engine

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"drover"
	"drover/internal/engine/budget"
)

// Check compares all that the engine keeps beside its State with what follows from it, and says what differs. Tests call it after each event; it costs as
// much as there is.
func (e *Engine) Check() error {
	for _, wrong := range []func() string{e.wrongLoads, e.wrongLedger, e.wrongCounts, e.wrongIndex, e.wrongPools} {
		if text := wrong(); text != "" {
			return errors.New(text)
		}
	}
	return nil
}

// wrongLoads says what does not add up of what runs on instances and is bound to them.
func (e *Engine) wrongLoads() string {
	live := map[drover.JobID]bool{}
	bound := map[GroupKey]int{}
	for _, in := range e.instances {
		used, room := drover.Resources{}, drover.Resources{}
		for _, a := range in.load {
			if live[a.ID.Job] || e.attempts[a.ID.Job] != a {
				return fmt.Sprintf("job %v has two live attempts", a.ID.Job)
			}
			live[a.ID.Job] = true
			used = used.Plus(e.need(a), 1)
			if j := e.job(a.ID.Job.Number); j == nil || j.Queued.Has(a.ID.Job.Index) {
				return fmt.Sprintf("attempt %v is live, and its job waits, or is final", a.ID)
			}
		}
		for _, b := range in.Bound {
			bound[b.Group] += b.Count
			room = room.Plus(b.Group.Shape.Need, b.Count)
			if b.Count <= 0 {
				return fmt.Sprintf("instance %s is bound to %d", in.Name, b.Count)
			}
		}
		used.Arch, room.Arch = in.Resources.Arch, in.Resources.Arch
		switch {
		case in.free.Plus(used, 1) != in.Resources:
			return fmt.Sprintf("instance %s has %+v: free %+v and used %+v", in.Name, in.Resources, in.free, used)
		case in.room.Plus(room, 1) != in.stretched():
			return fmt.Sprintf("instance %s has %+v: room %+v and bound %+v", in.Name, in.stretched(), in.room, room)
		case in.State == drover.InstanceIdle && len(in.load) > 0, in.State == drover.InstanceRunning && len(in.load) == 0:
			return fmt.Sprintf("instance %s is %s with %d attempts", in.Name, in.State, len(in.load))
		}
	}
	if len(live) != len(e.attempts) {
		return fmt.Sprintf("%d attempts are live, and %d are on instances", len(e.attempts), len(live))
	}
	return e.wrongGroups(bound)
}

// wrongCounts says what is counted otherwise than it runs.
func (e *Engine) wrongCounts() string {
	used, runs := e.used, e.runs
	switch e.recount(); {
	case !reflect.DeepEqual(used, e.used):
		return fmt.Sprintf("%v is used by those who have shares, and %v was counted", e.used, used)
	case !reflect.DeepEqual(runs, e.runs):
		return fmt.Sprintf("%v runs of what is mixed, and %v was counted", e.runs, runs)
	}
	return e.wrongInventory()
}

// wrongInventory says what is not as the inventory has it.
func (e *Engine) wrongInventory() string {
	kinds := func(all *inventory) map[likeness]int {
		of := map[likeness]int{}
		for _, k := range all.kinds {
			of[k.one.likeness()] = k.takers
		}
		return of
	}
	kept, now := e.inventory(), e.takeInventory()
	switch {
	case !reflect.DeepEqual(kept.limitsLeft, now.limitsLeft):
		return fmt.Sprintf("limits leave %v, and %v by the inventory", now.limitsLeft, kept.limitsLeft)
	case !reflect.DeepEqual(kept.owned, now.owned):
		return fmt.Sprintf("instances are of %v, and of %v by the inventory", now.owned, kept.owned)
	case !reflect.DeepEqual(kinds(kept), kinds(now)):
		return fmt.Sprintf("there are %v, and %v by the inventory", kinds(now), kinds(kept))
	case !slices.Equal(kept.losers, now.losers):
		return "others have lost jobs than by the inventory"
	}
	return ""
}

// wrongLedger says where the ledger has something else than one that is made anew, and which limit is passed and will not be told of.
func (e *Engine) wrongLedger() string {
	if !e.limited() {
		return ""
	}
	anew := e.ledgerAnew()
	for _, fresh := range anew.Accounts() {
		a := e.accountLike(fresh)
		if fresh.Limit == 0 && !fresh.Present { // it may still be filled
			continue
		}
		sum, most, least := anew.Sum(fresh), e.ledger.Most(a), e.ledger.Least(a)
		if most < sum || least > sum {
			return fmt.Sprintf("%v to %v is booked from %v to %v, and %v is promised", least, most, a.From, a.To, sum)
		}
		if a.Budget == nil || !a.Present {
			continue
		}
		_, spending, _ := e.ledger.State()
		at := slices.IndexFunc(spending, func(s Spending) bool { return s.Scope == a.Budget.Scope() })
		spell, soft, spent := spending[at].Spells[a.Window], a.Budget.Soft.Of(a.Window), e.ledger.Spent(a)
		unknown := soft > 0 && spent > soft && !spell.Warned || a.Limit > 0 && spent > a.Limit && !spell.Passed
		if unknown && !e.ledger.Due(a) { // else the next decision tells
			return fmt.Sprintf("%v is spent of the %s budget of the %s, which nobody was told", spent, a.Window, a.Budget.Scope())
		}
		if e.s.LastEffect%3 == 0 && e.ledger.Sum(a) != sum {
			return fmt.Sprintf("%v is booked from %v to %v, and %v is promised", e.ledger.Sum(a), a.From, a.To, sum)
		}
	}
	return ""
}

// ledgerAnew is a ledger of what there is now.
func (e *Engine) ledgerAnew() *budget.Ledger {
	spent, spending, turn := e.ledger.State()
	kept := e.ledger
	e.ledger = budget.New(spent, spending, turn, e.claimOf)
	e.ledger.At(e.s.Now)
	e.trackSpending()
	anew := e.ledger
	e.ledger = kept
	return anew
}

// accountLike is the ledger's account of the same window.
func (e *Engine) accountLike(o *budget.Account) *budget.Account {
	all := e.ledger.Accounts()
	at := slices.IndexFunc(all, func(a *budget.Account) bool { return a.Budget == o.Budget && a.Window == o.Window && a.From == o.From })
	if at < 0 {
		return &budget.Account{}
	}
	return all[at]
}

// wrongIndex says what of the index is not as it would be if it were made anew.
func (e *Engine) wrongIndex() string {
	r, fresh := e.refreshIndex(), fleetIndex{}
	for _, in := range e.instances {
		fresh.count(in.Cloud, 1)
		was := in.on
		in.on = enrolled{}
		fresh.enrol(in)
		in.on = was
	}
	for _, roll := range []struct {
		name       string
		kept, anew []*instance
	}{
		{"ready", r.ready, fresh.ready}, {"coming", r.coming, fresh.coming}, {"bound", r.bound, fresh.bound},
		{"creating", r.creating, fresh.creating}, {"idle", r.idle, fresh.idle}, {"ending", r.ending, fresh.ending}, {"taken", r.taken, fresh.taken},
	} {
		if !slices.Equal(slices.SortedFunc(slices.Values(roll.kept), byID), slices.SortedFunc(slices.Values(roll.anew), byID)) {
			return fmt.Sprintf("%d instances are on the roll of those %s, and %d should be", len(roll.kept), roll.name, len(roll.anew))
		}
	}
	if r.takers != fresh.takers {
		return fmt.Sprintf("%d instances are said to take work, and %d do", r.takers, fresh.takers)
	}
	for _, c := range e.clouds {
		if r.in[c.Name] != fresh.in[c.Name] {
			return fmt.Sprintf("%d instances are said to be in %s, and %d are", r.in[c.Name], c.Name, fresh.in[c.Name])
		}
	}
	for _, g := range e.groups {
		for _, in := range r.ready {
			if _, known := slices.BinarySearchFunc(g.fits, in, fit.compare); g.knows && in.holds(g) && !known && !slices.Contains(r.news, in) {
				return fmt.Sprintf("instance %s has room for a group that does not know of it", in.Name)
			}
		}
	}
	return ""
}

func (e *Engine) wrongGroups(bound map[GroupKey]int) string {
	for _, g := range e.groups {
		queued := 0
		for _, j := range g.Jobs {
			n := j.WaitingIn(g.Key)
			if queued += n; n <= 0 {
				return fmt.Sprintf("job %d waits in a group with %d elements", j.Number, n)
			}
		}
		switch {
		case g.bound != bound[g.Key]:
			return fmt.Sprintf("%d of a group are bound, %d by instances", g.bound, bound[g.Key])
		case g.Queued != queued:
			return fmt.Sprintf("%d of a group wait, %d by jobs", g.Queued, queued)
		case g.Unmet < 0 || g.Standby < 0 || g.Coming < 0:
			return fmt.Sprintf("a group has %d unmet, %d standing by, %d coming", g.Unmet, g.Standby, g.Coming)
		}
		delete(bound, g.Key)
	}
	if len(bound) > 0 {
		return fmt.Sprintf("instances are bound to groups that are not there: %v", bound)
	}
	for j := range e.queue.All() {
		if len(j.Queued)+len(e.attemptsOf(j)) == 0 {
			return fmt.Sprintf("job %d neither waits nor runs, and is not final", j.Number)
		}
		if wrong := e.wrongPostponed(j); wrong != "" {
			return wrong
		}
		for _, grown := range j.Grown {
			if len(grown.Waiting.Without(j.Queued)) > 0 {
				return fmt.Sprintf("job %d has grown elements that do not wait: %v of %v", j.Number, grown.Waiting, j.Queued)
			}
		}
	}
	return ""
}

// wrongPostponed says where an element is held to be postponed, or not to be, otherwise than it is.
func (e *Engine) wrongPostponed(j *Job) string {
	room := j.MaxRunning - len(e.attemptsOf(j)) // of what is due
	for _, run := range j.Queued {
		for i := run.First; i <= run.Last; i++ {
			first, last, torn := i, i, false
			if j.Gang > 0 {
				first, last = j.GangOf(i)
				torn = len(e.gangLive(j, i)) > 0
			}
			late := slices.ContainsFunc(j.Tried, func(el Element) bool {
				return el.Index >= first && el.Index <= last && j.Queued.Has(el.Index) && el.Until > e.s.Now
			})
			beyond := j.MaxRunning > 0 && j.Gang == 0 && room <= 0
			if want := torn || late || beyond; want != j.Postponed.Has(i) {
				return fmt.Sprintf("element %d of job %d waits; postponed is %v, and it should be: %v", i, j.Number, j.Postponed, want)
			}
			if !late {
				room--
			}
		}
	}
	if left := j.Postponed.Without(j.Queued); len(left) > 0 {
		return fmt.Sprintf("job %d has postponed elements that do not wait: %v", j.Number, left)
	}
	return ""
}
