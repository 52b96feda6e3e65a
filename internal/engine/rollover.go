package engine

import (
	"math"
	"time"
)

// When an hour, a day or a month ends, the next one is the present one, and its sums are there already. What is new is the last in sight. It is a spare:
// nothing asks for it before windows end once more, so the entries get their part of it little by little, until half an hour has passed. Making all
// entries of a large fleet anew at once would keep a decision waiting in each hour.

const (
	ahead     = 2 // how many windows after the present one are looked at
	fillLeast = 8 // of so many instances the entries are looked at by one decision, at least
	fillIn    = 30 * time.Minute
)

// lastInstance is beyond all IDs.
const lastInstance = int64(math.MaxInt64)

// inSight is how many windows of a kind the budget has an account for: of one without a hard limit nothing to come is asked.
func (b *Budget) inSight(w window) int {
	if b.Hard.of(w) == 0 {
		return 2
	}
	return 1 + ahead + 1
}

// situate has an account follow from where its window is now.
func (e *Engine) situate(a *account) {
	begin := a.window.begin(e.s.Now)
	last := begin
	for range a.budget.inSight(a.window) - 1 {
		last = a.window.end(last)
	}
	a.present, a.last, a.spare, a.settled, a.limit = a.from == begin, a.to == last, a.from == last, nil, 0
	spell := &e.spending(a.budget.Scope()).Spells[a.window]
	switch {
	case a.present:
		a.settled, a.look, a.spentAt = &spell.Cost, 0, 0
	case a.from == a.window.end(begin):
		a.settled = &spell.Next
	}
	if !a.spare {
		a.limit = a.budget.Hard.of(a.window)
	}
}

// rollover has the accounts of windows that have ended be those of the next ones that come in sight.
func (e *Engine) rollover() {
	b := e.books
	if b == nil {
		return
	}
	e.fill(b, len(e.instances)) // of the time before
	b.turned++
	b.filled, b.filledAt = 0, e.s.Now
	lacking := false
	for i := range b.accounts {
		a := &b.accounts[i]
		if a.budget == nil {
			continue
		}
		for a.to <= e.s.Now {
			for range a.budget.inSight(a.window) {
				a.from, a.to = a.to, a.window.end(a.to)
			}
			a.committed, a.since = 0, b.turned
		}
		e.situate(a)
		lacking = lacking || a.since == b.turned && !a.spare
	}
	if lacking { // nobody looked for longer than a window lasts
		e.fill(b, len(e.instances))
	}
}

// fillSome makes some of the entries anew that lack something of the spare accounts.
func (e *Engine) fillSome(b *books) {
	if b.filled == lastInstance || b.filledAt == e.s.Now {
		return
	}
	due := int(int64(len(e.instances)) * int64(min(e.s.Now.Sub(b.filledAt), fillIn)) / int64(fillIn))
	b.filledAt = e.s.Now
	e.fill(b, max(due, fillLeast))
}

// fill does so of the next so many instances.
func (e *Engine) fill(b *books, n int) {
	at, known := e.at(b.filled)
	if known {
		at++
	}
	rest := e.instances[at:]
	for _, in := range rest[:min(n, len(rest))] {
		if b.filled = in.ID; in.entry.turn < b.turned {
			e.enter(b, in)
		}
	}
	if n >= len(rest) {
		b.filled = lastInstance
	}
}
