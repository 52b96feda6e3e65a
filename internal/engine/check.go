package engine

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"drover/internal/engine/budget"
)

// Check compares all derived data with the State, and returns the first difference. Tests call it after each event; its
// cost is linear in the State.
func (e *Engine) Check() error {
	if err := e.fleet.Check(e.need); err != nil {
		return err
	}
	for _, wrong := range []func() string{e.wrongLoads, e.wrongLedger, e.wrongCounts, e.wrongFits, e.wrongPools} {
		if text := wrong(); text != "" {
			return errors.New(text)
		}
	}
	return nil
}

// wrongLoads compares jobs with the attempts and reservations on instances.
func (e *Engine) wrongLoads() string {
	bound := map[GroupKey]int{}
	for _, in := range e.fleet.All() {
		for _, a := range in.Load {
			if j := e.job(a.ID.Job.Number); j == nil || j.Queued.Has(a.ID.Job.Index) {
				return fmt.Sprintf("attempt %v is live, but its job is waiting or final", a.ID)
			}
		}
		for _, b := range in.Reservations {
			bound[b.Group] += b.Count
		}
	}
	return e.wrongGroups(bound)
}

// wrongCounts compares the counts of use, of the mix and of limits with recomputed ones.
func (e *Engine) wrongCounts() string {
	used, runs := e.used, e.runs
	switch e.recount(); {
	case !reflect.DeepEqual(used, e.used):
		return fmt.Sprintf("users with shares use %v, but %v was counted", e.used, used)
	case !reflect.DeepEqual(runs, e.runs):
		return fmt.Sprintf("running jobs by group are %v, but %v was counted", e.runs, runs)
	}
	if kept, now := e.limitsLeft(), e.takeLimits(e.fleet.Census()); !reflect.DeepEqual(kept, now) {
		return fmt.Sprintf("the limits leave %v, but %v was cached", now, kept)
	}
	return ""
}

// wrongLedger compares the ledger with a rebuilt one, and finds exceeded limits that will not be reported.
func (e *Engine) wrongLedger() string {
	if !e.limited() {
		return ""
	}
	anew := e.rebuildLedger()
	for _, fresh := range anew.Accounts() {
		a := e.sameAccount(fresh)
		if fresh.Limit == 0 && !fresh.Present { // it may still be filled
			continue
		}
		sum, most, least := anew.Sum(fresh), e.ledger.Most(a), e.ledger.Least(a)
		if most < sum || least > sum {
			return fmt.Sprintf("between %v and %v is booked for the period from %v to %v, but %v is committed", least, most, a.From, a.To, sum)
		}
		if a.Budget == nil || !a.Present {
			continue
		}
		_, spending, _ := e.ledger.State()
		at := slices.IndexFunc(spending, func(s Spending) bool { return s.Scope == a.Budget.Scope() })
		window, soft, spent := spending[at].Windows[a.Window], a.Budget.Soft.Of(a.Window), e.ledger.Spent(a)
		unknown := soft > 0 && spent > soft && !window.Warned || a.Limit > 0 && spent > a.Limit && !window.Passed
		if now := anew.Spent(fresh); spent != now {
			return fmt.Sprintf("%v of the %s budget of %s has been spent, but %v was counted", now, a.Window, a.Budget.Whose(), spent)
		}
		if unknown && !e.ledger.Due(a) { // otherwise the next decision reports it
			return fmt.Sprintf("%v of the %s budget of %s has been spent, but this was not reported", spent, a.Window, a.Budget.Whose())
		}
		if e.s.LastEffect%3 == 0 && e.ledger.Sum(a) != sum {
			return fmt.Sprintf("%v is booked for the period from %v to %v, but %v is committed", e.ledger.Sum(a), a.From, a.To, sum)
		}
	}
	return ""
}

// rebuildLedger builds a ledger from the State.
func (e *Engine) rebuildLedger() *budget.Ledger {
	spent, spending, turn := e.ledger.State()
	kept := e.ledger
	e.ledger = budget.New(spent, spending, turn, e.claimOf)
	e.ledger.At(e.s.Now)
	e.trackSpending()
	anew := e.ledger
	e.ledger = kept
	return anew
}

// sameAccount returns the ledger's account of the same window.
func (e *Engine) sameAccount(o *budget.Account) *budget.Account {
	all := e.ledger.Accounts()
	at := slices.IndexFunc(all, func(a *budget.Account) bool { return a.Budget == o.Budget && a.Window == o.Window && a.From == o.From })
	if at < 0 {
		return &budget.Account{}
	}
	return all[at]
}

// wrongFits finds a group that misses an instance with room for it.
func (e *Engine) wrongFits() string {
	r := e.fleet.Index()
	for _, g := range e.groups {
		for _, in := range r.Ready {
			if _, known := slices.BinarySearchFunc(g.fits, in, fit.compare); in.ID <= g.examined && in.Holds(&g.demand) && !known && !slices.Contains(r.News, in) {
				return fmt.Sprintf("instance %s reserves room for a group that does not list it", in.Name)
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
				return fmt.Sprintf("job %d is waiting in a group with %d elements", j.Number, n)
			}
		}
		switch {
		case g.reserved != bound[g.Key]:
			return fmt.Sprintf("a group has %d reservations, but instances have %d for it", g.reserved, bound[g.Key])
		case g.Queued != queued:
			return fmt.Sprintf("%d elements of a group are waiting, but its jobs have %d waiting", g.Queued, queued)
		case g.Unmet < 0 || g.Standby < 0 || g.Coming < 0:
			return fmt.Sprintf("a group has %d unmet elements, %d on standby and %d booting", g.Unmet, g.Standby, g.Coming)
		}
		delete(bound, g.Key)
	}
	if len(bound) > 0 {
		return fmt.Sprintf("instances are reserved for groups that do not exist: %v", bound)
	}
	for j := range e.queue.All() {
		if len(j.Queued)+len(e.attemptsOf(j)) == 0 {
			return fmt.Sprintf("job %d is neither waiting, running nor final", j.Number)
		}
		if wrong := e.wrongPostponed(j); wrong != "" {
			return wrong
		}
		for _, grown := range j.Grown {
			if len(grown.Waiting.Without(j.Queued)) > 0 {
				return fmt.Sprintf("job %d has elements with increased memory that are not waiting: %v of %v", j.Number, grown.Waiting, j.Queued)
			}
		}
	}
	return ""
}

// wrongPostponed compares the postponed elements of a job with recomputed ones.
func (e *Engine) wrongPostponed(j *Job) string {
	room := j.MaxRunning - len(e.attemptsOf(j)) // for elements that are due
	order := slices.Clone(j.Queued)             // least memory first
	for _, grown := range j.Grown {
		order = order.Without(grown.Waiting)
	}
	for _, grown := range j.Grown {
		order = append(order, grown.Waiting...)
	}
	for _, run := range order {
		for i := run.First; i <= run.Last; i++ {
			first, last := j.GangOf(i)
			incomplete := j.Gang > 0 && len(e.gangLive(j, i)) > 0
			late := slices.ContainsFunc(j.Tried, func(el Element) bool {
				return el.Index >= first && el.Index <= last && j.Queued.Has(el.Index) && el.Until > e.s.Now
			})
			beyond := j.MaxRunning > 0 && j.Gang == 0 && room <= 0
			if want := incomplete || late || beyond; want != j.Postponed.Has(i) {
				return fmt.Sprintf("element %d of job %d is waiting; postponed is %v, but it should be %v", i, j.Number, j.Postponed, want)
			}
			if !late {
				room--
			}
		}
	}
	if left := j.Postponed.Without(j.Queued); len(left) > 0 {
		return fmt.Sprintf("job %d has postponed elements that are not waiting: %v", j.Number, left)
	}
	return ""
}
