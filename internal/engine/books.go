package engine

import (
	"fmt"
	"math"
	"time"

	"drover"
	"drover/internal/ledger"
)

// Books are what is spent and what is pledged, in each window of each budget, as of one decision. They are made when a decision first needs them,
// and again when something may have been freed. What a decision binds beside that is entered as it is bound, so that one decision's many
// purchases stay within their budgets together.
//
// What is pledged is what runs: an instance up to the end of the longest job admitted to it, an attempt up to its own. It only shrinks as time
// goes on, so of the windows that are still to come, only the next two can be the fullest: the next, or, since months differ, the one after.
type books struct {
	accounts []account
	last     []drover.Money // what the pledge that was looked at last adds to each
}

// account is one window of a budget, or with no budget the fleet's whole life.
type account struct {
	budget   *Budget
	window   window
	from, to drover.Time
	present  bool
	limit    drover.Money // 0: none
	spent    drover.Money
	sum      drover.Money // spent and pledged
}

// ahead is how many windows after the present one are looked at.
const ahead = 2

func (e *Engine) book() *books {
	if e.books == nil {
		e.books = e.newBooks()
	}
	return e.books
}

func (e *Engine) newBooks() *books {
	b := &books{}
	if limit := e.s.Settings.MaxCost; limit > 0 {
		b.accounts = append(b.accounts, account{to: math.MaxInt64, present: true, limit: limit, spent: e.s.Spent, sum: e.s.Spent})
	}
	for i := range e.s.Settings.Budgets {
		e.openAccounts(b, &e.s.Settings.Budgets[i])
	}
	for i := range b.accounts {
		a := &b.accounts[i]
		for _, in := range e.instances {
			e.enter(a, in)
		}
	}
	b.last = make([]drover.Money, len(b.accounts))
	return b
}

func (e *Engine) openAccounts(b *books, budget *Budget) {
	s := e.spending(budget.Scope())
	for w := range windows {
		hard, soft := budget.Hard.of(w), budget.Soft.of(w)
		if s == nil || hard == 0 && soft == 0 {
			continue
		}
		a := account{budget: budget, window: w, from: w.begin(e.s.Now), present: true, limit: hard, spent: s.Spells[w].Cost, sum: s.Spells[w].Cost}
		a.to = w.end(a.from)
		b.accounts = append(b.accounts, a)
		for n := 0; hard > 0 && n < ahead; n++ {
			a = account{budget: budget, window: w, from: a.to, to: w.end(a.to), limit: hard}
			b.accounts = append(b.accounts, a)
		}
	}
}

// fleets reports whether the account is of what instances cost.
func (a *account) fleets() bool { return a.budget == nil || a.budget.ofFleet() }

// enter adds what an instance that is not gone has cost and will, or what the budget's attempts have of it.
func (e *Engine) enter(a *account, in *instance) {
	if a.fleets() {
		begin := e.paidFrom(in)
		tariff := e.dearest(in)
		a.sum += tariff.Cost(begin, a.from, min(a.to, e.pledgedUntil(in)))
		if in.Created != 0 {
			a.spent += e.bill(in).Cost(a.from, a.to)
		}
		return
	}
	for _, t := range in.load {
		if j := e.job(t.ID.Job.Number); a.budget.covers(e.keyOf(j)) {
			u := useOf(t, j)
			bill := e.bill(in)
			u.Ended = orNow(t.Ended, e.s.Now)
			a.spent += bill.Share(u, a.from, a.to)
			if t.State != drover.AttemptCollecting {
				u.Ended = max(u.Ended, t.Started.Add(horizon(j.Timeout)))
				bill.End = max(bill.End, u.Ended)
			}
			a.sum += bill.Share(u, a.from, a.to)
		}
	}
	for _, b := range in.Bound {
		if a.budget.covers(b.Group) {
			begin := in.Asked.Add(e.life().BootTimeout)
			a.sum += a.part(in.offers(), b.Group, e.s.Now, begin) * drover.Money(b.Count)
		}
	}
}

// part is what a job of a group has of an instance, from now until its end if it begins at the latest: the most, of what the instance may be.
func (a *account) part(offers []drover.Offering, key GroupKey, now, begin drover.Time) (most drover.Money) {
	u := ledger.Use{Started: now, Ended: max(begin, now).Add(horizon(key.Timeout)), CPU: key.Shape.Need.CPU}
	for _, o := range offers {
		bill := ledger.Bill{Tariff: drover.Tariff{Price: o.Price}, Created: now, End: math.MaxInt64, CPU: o.Type.Resources.CPU}
		most = max(most, bill.Share(u, a.from, a.to))
	}
	return most
}

// offers is what the instance may be: its candidates, or what it is.
func (in *instance) offers() []drover.Offering {
	if len(in.Candidates) > 0 {
		return in.Candidates
	}
	return []drover.Offering{in.offering()}
}

// pledge is money that a decision would bind: an instance kept for longer, or rented, for so many jobs more.
type pledge struct {
	in     *instance         // nil: one that is to be rented
	offers []drover.Offering // that it may be of
	boots  time.Duration     // until its jobs can begin, at most
	loads  []wanted
}

// longest is the horizon of the longest of the pledge's jobs.
func (p pledge) longest() (most time.Duration) {
	for _, w := range p.loads {
		most = max(most, w.g.horizon())
	}
	return most
}

// refuses is the account that a pledge would overdraw, if what instances are freed were gone: of several the one that is so for longest. It is
// nil if there is none; then bound enters the pledge.
func (e *Engine) refuses(p pledge, freed ...*instance) (worst *account) {
	b := e.book()
	for i := range b.accounts {
		a := &b.accounts[i]
		b.last[i] = e.adds(a, p)
		touched := b.last[i] > 0 || a.present && a.fleets()
		if a.limit == 0 || !touched || a.sum+b.last[i]-e.relief(a, freed) <= a.limit {
			continue
		}
		if worst == nil || a.to > worst.to {
			worst = a
		}
	}
	return worst
}

// within is how many of the pledge's jobs of each group the budgets of users and labels allow, and which of them would be overdrawn by one more; nil if
// that is all.
func (e *Engine) within(p pledge) (allowed []wanted, worst *account) {
	b := e.book()
	taken := make([]drover.Money, len(b.accounts))
	for _, w := range p.loads {
		n := w.count
		for i := range b.accounts {
			a := &b.accounts[i]
			one := p
			one.loads = []wanted{{w.g, 1}}
			if a.fleets() || a.limit == 0 || !a.budget.covers(w.g.key) {
				continue
			}
			if each := e.adds(a, one); each > 0 && a.sum+taken[i]+each*drover.Money(n) > a.limit {
				n, worst = int(max(0, a.limit-a.sum-taken[i])/each), a
			}
		}
		for i := range b.accounts {
			if a := &b.accounts[i]; !a.fleets() && a.budget.covers(w.g.key) {
				one := p
				one.loads = []wanted{{w.g, n}}
				taken[i] += e.adds(a, one)
			}
		}
		if n > 0 {
			allowed = append(allowed, wanted{w.g, n})
		}
	}
	return allowed, worst
}

// bound enters the pledge that was looked at last.
func (e *Engine) bound() {
	b := e.book()
	for i := range b.accounts {
		b.accounts[i].sum += b.last[i]
	}
}

// adds is what a pledge adds to an account.
func (e *Engine) adds(a *account, p pledge) (more drover.Money) {
	until, offers := e.s.Now.Add(p.boots+p.longest()), p.offers
	if p.in != nil {
		offers = p.in.offers()
	}
	switch {
	case a.fleets() && p.in != nil:
		now := e.pledgedUntil(p.in)
		return e.dearest(p.in).Cost(e.paidFrom(p.in), max(a.from, now), min(a.to, max(now, until)))
	case a.fleets():
		return drover.Tariff{Price: dearestOf(offers)}.Cost(e.s.Now, a.from, min(a.to, until))
	}
	for _, w := range p.loads {
		if a.budget.covers(w.g.key) {
			more += a.part(offers, w.g.key, e.s.Now, e.s.Now.Add(p.boots)) * drover.Money(w.count)
		}
	}
	return more
}

// relief is what would no longer be pledged if instances went now.
func (e *Engine) relief(a *account, freed []*instance) (less drover.Money) {
	for _, in := range freed {
		if a.fleets() {
			less += e.dearest(in).Cost(e.paidFrom(in), max(a.from, e.s.Now), min(a.to, e.pledgedUntil(in)))
		}
	}
	return less
}

// pledgedUntil is when the longest job admitted to the instance has ended, of which those that say no timeout count as an hour.
func (e *Engine) pledgedUntil(in *instance) drover.Time {
	end := orNow(in.Ended, e.s.Now)
	for _, a := range in.load {
		if a.State != drover.AttemptCollecting {
			end = max(end, a.Started.Add(horizon(e.job(a.ID.Job.Number).Timeout)))
		}
	}
	if len(in.Bound) > 0 {
		end = max(end, in.Asked.Add(e.life().BootTimeout+boundHorizon(in)))
	}
	return end
}

// why says what an account refuses, and until when.
func (e *Engine) why(a *account) drover.Reason {
	if a.budget == nil {
		return e.reason(drover.ReasonBudget, "more would pass the limit of %v: %v is spent", a.limit, a.spent)
	}
	text := fmt.Sprintf("more would pass the %s budget of the %s", a.window, a.budget.Scope())
	if a.present {
		text += fmt.Sprintf(", %v: %v is spent, %v is promised to what runs and %v is left", a.limit, a.spent, max(0, a.sum-a.spent), max(0, a.limit-a.sum))
	} else {
		text += fmt.Sprintf(", %v, in the window that begins at %v: %v of it is promised already", a.limit, a.from, a.sum)
	}
	why := e.reason(drover.ReasonBudget, "%s; raise it, or wait until it begins anew", text)
	why.Until = a.to
	return why
}

func orNow(at, now drover.Time) drover.Time {
	if at == 0 {
		return now
	}
	return at
}
