package engine

import (
	"fmt"
	"math"
	"time"

	"drover"
	"drover/internal/ledger"
)

// A commitment is money that a decision would bind. It is refused if an account would be overdrawn by it. Once it is made, the entry of its instance
// has it.

// fleets reports whether the account is of what instances cost.
func (a *account) fleets() bool { return a.budget == nil || a.budget.ofFleet() }

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

// bound is how many jobs the instance is on its way for.
func (in *instance) bound() (n int) {
	for _, b := range in.Bound {
		n += b.Count
	}
	return n
}

// commitment is money that a decision would bind: an instance kept for longer, or rented, for so many jobs more.
type commitment struct {
	in     *instance         // nil: one that is to be rented
	offers []drover.Offering // that it may be of
	boots  time.Duration     // until its jobs can begin, at most
	loads  []wanted
}

// longest is the horizon of the longest of the commitment's jobs.
func (p commitment) longest() (most time.Duration) {
	for _, w := range p.loads {
		most = max(most, w.g.horizon())
	}
	return most
}

// refuses is the account that a commitment would overdraw, if what instances are freed were gone: of several the one that is so for longest. It is
// nil if there is none.
func (e *Engine) refuses(p commitment, freed ...*instance) (worst *account) {
	return e.refusesAll([]commitment{p}, freed...)
}

// allowsOn reports whether the budgets allow what the group asks for next: a job more on an instance, or a gang on as many like it as that takes.
func (e *Engine) allowsOn(in *instance, g *group) bool {
	if !e.limited() {
		return true
	}
	n := e.askedBy(g).count
	per := max(1, in.Resources.Times(g.Key.Shape.Need, in.atOnce(n))) // none, if its volume has yet to grow
	p := commitment{in: in, loads: []wanted{{g, n}}}
	return e.worst(func(_ int, a *account) (more, less drover.Money) {
		more = e.adds(a, p)
		if a.fleets() {
			more *= drover.Money((n + per - 1) / per)
		}
		return more, 0
	}) == nil
}

// refusesAll is refuses of several together, each of another instance.
func (e *Engine) refusesAll(commitments []commitment, freed ...*instance) (worst *account) {
	return e.worst(func(_ int, a *account) (more, less drover.Money) {
		return e.addsAll(a, commitments), e.relief(a, freed)
	})
}

// addsAll is what several commitments add to an account, each of another instance.
func (e *Engine) addsAll(a *account, commitments []commitment) (more drover.Money) {
	for _, p := range commitments {
		more += e.adds(a, p)
	}
	return more
}

// worst is, of the accounts that would be overdrawn by what is added to each, and taken from it, the one that is so for longest; nil if none would be.
func (e *Engine) worst(change func(i int, a *account) (more, less drover.Money)) (worst *account) {
	b := e.book()
	for i := range b.accounts {
		a := &b.accounts[i]
		if a.limit == 0 || worst != nil && a.to <= worst.to {
			continue
		}
		more, less := change(i, a)
		touched := more > 0 || a.present && a.fleets() || a.last && a.fleets() && addsAfter(a, i, change) > 0
		if touched && e.exceeds(b, a, more-less, a.limit) {
			worst = a
		}
	}
	return worst
}

// addsAfter is what a change adds after an account's window. Where prices have risen and the window is overdrawn, later windows may be overdrawn, too:
// they hold the same commitments.
func addsAfter(a *account, i int, change func(i int, a *account) (more, less drover.Money)) drover.Money {
	later := *a
	later.from, later.to = a.to, never
	more, _ := change(i, &later)
	return more
}

// overdrawn is the account that an instance overdraws as it is now, of several the one that is overdrawn for longest; nil if there is none.
func (e *Engine) overdrawn(in *instance) *account {
	return e.worst(func(i int, _ *account) (more, less drover.Money) { return in.entry.sums[i], in.entry.sums[i] })
}

// within is how many of the commitment's jobs of each group the budgets of users and labels allow, and which of them would be overdrawn by one more; nil if
// that is all.
func (e *Engine) within(p commitment) (allowed []wanted, worst *account) {
	b := e.book()
	taken := make([]drover.Money, len(b.accounts))
	for _, w := range p.loads {
		n := w.count
		for i := range b.accounts {
			a := &b.accounts[i]
			one := p
			one.loads = []wanted{{w.g, 1}}
			if a.fleets() || a.limit == 0 || !a.budget.covers(w.g.Key) {
				continue
			}
			if each := e.adds(a, one); each > 0 && e.exceeds(b, a, taken[i]+each*drover.Money(n), a.limit) {
				n, worst = e.allows(b, a, each, taken[i]), a
			}
		}
		for i := range b.accounts {
			if a := &b.accounts[i]; !a.fleets() && a.budget.covers(w.g.Key) {
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

// adds is what a commitment adds to an account.
func (e *Engine) adds(a *account, p commitment) (more drover.Money) {
	ends, offers := e.s.Now.Add(p.boots+p.longest()), p.offers
	if p.in != nil {
		offers = p.in.offers()
	}
	switch {
	case a.fleets() && p.in != nil:
		now := e.committedUntil(p.in)
		return e.dearest(p.in).Cost(e.paidFrom(p.in), max(a.from, now), min(a.to, max(now, e.paidUntil(p.in, ends))))
	case a.fleets():
		until := e.limits(offers[0].Cloud).Billing.Latest(ends)
		return drover.Tariff{Price: dearestOf(offers)}.Cost(e.s.Now, a.from, min(a.to, until))
	}
	for _, w := range p.loads {
		if a.budget.covers(w.g.Key) {
			more += a.part(offers, w.g.Key, e.s.Now, e.s.Now.Add(p.boots)) * drover.Money(w.count)
		}
	}
	return more
}

// relief is what would no longer be committed if instances went now.
func (e *Engine) relief(a *account, freed []*instance) (less drover.Money) {
	for _, in := range freed {
		if a.fleets() {
			less += e.dearest(in).Cost(e.paidFrom(in), max(a.from, e.paidUntil(in, e.s.Now)), min(a.to, e.committedUntil(in)))
		}
	}
	return less
}

// committedUntil is up to when the instance is paid at least: when the longest job admitted to it has ended, of which those that say no timeout count as
// an hour, and what its cloud bills beyond that.
func (e *Engine) committedUntil(in *instance) drover.Time {
	end := orNow(in.Ended, e.s.Now)
	for _, a := range in.load {
		if a.State != drover.AttemptCollecting {
			end = max(end, a.Started.Add(horizon(e.job(a.ID.Job.Number).Timeout)))
		}
	}
	if len(in.Bound) > 0 {
		end = max(end, in.Asked.Add(e.life().BootTimeout+boundHorizon(in)))
	}
	if in.Ended != 0 {
		return end
	}
	return e.paidUntil(in, end)
}

// why says what an account refuses, and until when.
func (e *Engine) why(a *account) drover.Reason {
	b := e.book()
	e.renew(b)
	spent := e.spentOf(b, a)
	if a.budget == nil {
		return e.reason(drover.ReasonBudget, "more would pass %s: %v is spent, and %v is promised to what runs; raise it", a.words(), spent, max(0, a.sum()-spent))
	}
	text := fmt.Sprintf("more would pass the %s budget of the %s", a.window, a.budget.Scope())
	if a.present {
		text += fmt.Sprintf(", %v: %v is spent, %v is promised to what runs and %v is left", a.limit, spent, max(0, a.sum()-spent), max(0, a.limit-a.sum()))
	} else {
		text += fmt.Sprintf(", %v, in the window that begins at %v: %v of it is promised already", a.limit, a.from, a.sum())
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
