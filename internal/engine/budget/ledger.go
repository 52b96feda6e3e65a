package budget

import (
	"cmp"
	"slices"

	"drover"
	"drover/internal/engine/timers"
)

// Ledger holds what is spent and committed in each window of each budget. It is not safe for concurrent use: the
// engine's loop owns it.
//
// Of the future windows only the next two can be the fullest: the next one or, since months differ in length, the one
// after. Each budget also has one spare window beyond those: see rollover.
type Ledger struct {
	spent    drover.Money // by instances that are gone
	spending []Spending   // by scope
	turn     drover.Time  // when the first of the current windows ends
	settings Settings
	claim    func(id int64) (Claim, bool) // returns an instance's claim; false if it is gone
	now      drover.Time

	open     bool // the accounts exist
	over     bool // a hard budget of the fleet is exceeded
	accounts []*Account
	entries  []*entry // by instance
	shared   bool     // some budget is of a user or a label
	stale    []*entry // entries whose instance changed
	moving   []*entry
	ends     timers.Timers // when entries start to move, or leap
	at       drover.Time   // moving entries are no older than this
	rate     drover.Money  // how fast they all grow together, per hour
	loose    drover.Money  // plus at most this, since each sum is rounded down to nano-dollars

	turned   int         // counts turns of windows
	filled   int64       // entries up to this instance have the spare accounts
	filledAt drover.Time // when that last grew
}

// Account is one window of a budget or, without a budget, the fleet's whole life.
type Account struct {
	Budget   *Budget // nil: the fleet's whole life
	Window   Window
	From, To drover.Time
	Present  bool
	Limit    drover.Money // 0: none, or the window is a spare

	last      bool          // the last window with a limit
	spare     bool          // some entries are not in it yet, and nothing asks for it
	since     int           // entries made before this turn have nothing in it
	settled   *drover.Money // spent by finished work; nil: nothing can be
	committed drover.Money  // what present instances have cost and will cost

	running drover.Money // what present instances have cost until runAt
	runAt   drover.Time  // Never: not added up yet
	look    drover.Time  // no further limit can be exceeded before this
}

// OfFleet reports whether the account counts what instances cost.
func (a *Account) OfFleet() bool { return a.Budget == nil || a.Budget.OfFleet() }

// Covers reports whether the account counts the payer's jobs.
func (a *Account) Covers(p Payer) bool { return a.Budget == nil || a.Budget.Covers(p) }

// Emptied returns an empty account of the same length that begins at a given time.
func (a *Account) Emptied(now drover.Time) *Account {
	empty := &Account{Budget: a.Budget, Window: a.Window, From: now, To: Never, Limit: a.Limit}
	if a.Budget != nil {
		empty.To = now.Add(a.To.Sub(a.From))
	}
	return empty
}

// entry is an instance's contribution to the accounts.
type entry struct {
	id    int64
	claim Claim
	sums  []drover.Money // in each account
	turn  int            // turned, when the entry was made
	stale bool           // its instance changed
	gone  bool           // its instance is gone
	place int            // its place in moving, from 1; 0: it does not move
	rate  drover.Money   // how fast it moves
	loose drover.Money
	price drover.Money // the instance's current hourly price
	ended drover.Time  // end of its bill
}

// New makes a ledger from its State. claim is called for an instance's claim after it has changed.
func New(spent drover.Money, spending []Spending, turn drover.Time, claim func(id int64) (Claim, bool)) *Ledger {
	return &Ledger{spent: spent, spending: spending, turn: turn, claim: claim}
}

// Configure sets the budgets and the instances, oldest first. The accounts are made when first needed.
func (l *Ledger) Configure(s Settings, instances []int64) {
	l.settings, l.open, l.entries, l.stale = s, false, nil, nil
	for _, id := range instances {
		l.Changed(id)
	}
}

// At sets the current time. It never decreases.
func (l *Ledger) At(now drover.Time) { l.now = now }

// Limited reports whether any limit on spending is set.
func (l *Ledger) Limited() bool { return l.settings.Max > 0 || len(l.settings.Budgets) > 0 }

// Changed tells the ledger that an instance is new, has changed or is gone.
func (l *Ledger) Changed(id int64) {
	if !l.Limited() {
		return
	}
	e, at := l.find(id)
	if e == nil {
		e = &entry{id: id}
		l.entries = slices.Insert(l.entries, at, e)
	}
	if !e.stale {
		e.stale = true
		l.stale = append(l.stale, e)
	}
}

func (l *Ledger) find(id int64) (e *entry, at int) {
	at, known := slices.BinarySearchFunc(l.entries, id, func(e *entry, id int64) int { return cmp.Compare(e.id, id) })
	if known {
		e = l.entries[at]
	}
	return e, at
}

// Claim returns the current claim of an instance. It is valid until the next call of Changed.
func (l *Ledger) Claim(id int64) *Claim {
	l.refresh()
	if e, _ := l.find(id); e != nil {
		return &e.claim
	}
	return &Claim{}
}

// refresh updates the entries, except moving ones: see Most.
func (l *Ledger) refresh() {
	if !l.open {
		l.begin()
	}
	for id := l.ends.Due(l.now); id != 0; id = l.ends.Due(l.now) {
		if e, _ := l.find(id); e != nil {
			l.enter(e)
		}
	}
	for _, e := range l.stale {
		e.stale = false
		l.read(e)
	}
	l.stale = l.stale[:0]
}

// begin opens the accounts and schedules all entries.
func (l *Ledger) begin() {
	l.open, l.accounts, l.shared, l.stale, l.moving, l.ends = true, nil, false, nil, nil, timers.Timers{}
	l.at, l.rate, l.loose, l.turned, l.filled = l.now, 0, 0, 0, lastInstance
	if limit := l.settings.Max; limit > 0 {
		l.accounts = append(l.accounts, &Account{To: Never, Present: true, Limit: limit, settled: &l.spent, runAt: Never})
	}
	for i := range l.settings.Budgets {
		b := &l.settings.Budgets[i]
		l.shared = l.shared || !b.OfFleet()
		l.openAccounts(b)
	}
	for i, e := range l.entries {
		l.entries[i] = &entry{id: e.id, stale: true}
	}
	l.stale = append(l.stale, l.entries...)
}

func (l *Ledger) openAccounts(b *Budget) {
	for w := range windows {
		if l.spendingOf(b.Scope()) == nil || b.Hard.Of(w) == 0 && b.Soft.Of(w) == 0 {
			continue
		}
		from := w.begin(l.now)
		for range b.inSight(w) {
			a := &Account{Budget: b, Window: w, From: from, To: w.end(from)}
			l.setRole(a)
			l.accounts = append(l.accounts, a)
			from = a.To
		}
	}
}

// read reloads the claim of an entry's instance.
func (l *Ledger) read(e *entry) {
	claim, there := l.claim(e.id)
	l.spend(e, -1)
	e.claim, e.gone = claim, !there
	l.spend(e, +1)
	if l.enter(e); e.gone {
		if _, at := l.find(e.id); at < len(l.entries) && l.entries[at] == e {
			l.entries = slices.Delete(l.entries, at, at+1)
		}
	}
}

// enter replaces what an entry adds to the accounts.
func (l *Ledger) enter(e *entry) {
	l.leave(e)
	until := l.sumUp(e)
	e.turn = l.turned
	for i, sum := range e.sums {
		l.accounts[i].committed += sum
	}
	moves := until <= l.now
	if moves {
		n := e.claim.bound()
		e.rate = e.claim.maxTariff().Price * drover.Money(1+n)
		e.loose = 2 * drover.Money(1+len(e.claim.Uses)+n)
	}
	l.rate, l.loose = l.rate+e.rate, l.loose+e.loose
	l.move(e, moves)
	switch {
	case moves:
		until = e.claim.leaps(l.now)
	case until == Never:
		until = 0
	}
	l.ends.Set(e.id, until)
	l.price(e)
}

// leave removes an entry from the accounts.
func (l *Ledger) leave(e *entry) {
	for i, sum := range e.sums {
		if a := l.accounts[i]; a.since <= e.turn {
			a.committed -= sum
		}
	}
	l.rate, l.loose = l.rate-e.rate, l.loose-e.loose
	e.rate, e.loose = 0, 0
}

// move adds an entry to moving, or removes it.
func (l *Ledger) move(e *entry, moves bool) {
	switch at := e.place; {
	case moves && at == 0:
		l.moving = append(l.moving, e)
		e.place = len(l.moving)
	case !moves && at > 0:
		last := l.moving[len(l.moving)-1]
		l.moving[at-1], last.place = last, at
		l.moving = l.moving[:len(l.moving)-1]
		e.place = 0
	}
}

// price records what an instance costs now. If that has grown, a limit may be exceeded earlier than expected.
func (l *Ledger) price(e *entry) {
	price, ended := e.price, e.ended
	e.price, e.ended = 0, e.claim.Ended
	if !e.gone {
		e.price = e.claim.costsNow(l.now)
	}
	if e.price <= price && e.ended <= ended {
		return
	}
	l.lookAgain()
}

// lookAgain makes the next Watch add up the spending of every account.
func (l *Ledger) lookAgain() {
	for _, a := range l.accounts {
		a.look = 0
	}
}

// sumUp computes what an instance adds to each account, and returns until when that holds.
func (l *Ledger) sumUp(e *entry) (until drover.Time) {
	e.sums = e.sums[:0]
	if e.gone {
		return Never
	}
	end := e.claim.CommittedUntil(l.now)
	for _, a := range l.accounts {
		e.sums = append(e.sums, e.claim.committed(a, l.now, end))
	}
	return e.claim.staysUntil(l.now, end, l.shared)
}
