package budget

import (
	"cmp"
	"slices"

	"drover"
	"drover/internal/engine/timers"
)

// Ledger is what is spent and committed, in each window of each budget. It is not safe for concurrent use: the engine's loop owns it.
//
// Of the windows that are still to come, only the next two can be the fullest: the next, or, since months differ, the one after. Beyond them each
// budget has a spare one: see rollover.
type Ledger struct {
	spent    drover.Money // by instances that are gone
	spending []Spending   // by scope
	turn     drover.Time  // when the first of the present windows ends
	settings Settings
	claim    func(id int64) (Claim, bool) // of an instance; false if it is gone
	now      drover.Time

	open     bool // the accounts are made
	over     bool // a hard budget of the fleet is passed
	accounts []Account
	entries  []*entry // by instance
	shared   bool     // there are budgets of users or labels
	stale    []*entry // that are to be made anew
	moving   []*entry
	ends     timers.Timers // when entries begin to move
	at       drover.Time   // as of when the moving entries are, at least
	rate     drover.Money  // by which all of them grow, an hour
	loose    drover.Money  // and at most beside that, since each sum is cut to nano-dollars
	entered  int           // how often an entry was made

	turned   int         // how often windows have ended
	filled   int64       // the last instance that was looked at for whether its entry is older than that
	filledAt drover.Time // when it was
}

// Account is one window of a budget, or with no budget the fleet's whole life.
type Account struct {
	Budget   *Budget // nil: the fleet's whole life
	Window   Window
	From, To drover.Time
	Present  bool
	Limit    drover.Money // 0: none, or nothing asks for it

	last      bool          // of those with a limit
	spare     bool          // entries may lack in it, and nothing asks for it
	since     int           // entries from before windows had ended so often have nothing in it
	settled   *drover.Money // spent by what is over; nil where that can be nothing: later than in the next window
	committed drover.Money  // beside that, to what is there: what it has cost, and will

	spent   drover.Money // up to spentAt, with as many entries as entered says
	spentAt drover.Time
	entered int
	look    drover.Time // no limit is passed before this that is not passed already
}

// OfFleet reports whether the account is of what instances cost.
func (a *Account) OfFleet() bool { return a.Budget == nil || a.Budget.OfFleet() }

// Covers reports whether the payer's jobs count in the account.
func (a *Account) Covers(p Payer) bool { return a.Budget == nil || a.Budget.Covers(p) }

// Emptied is an account as long as this one that begins at a time, with nothing in it.
func (a *Account) Emptied(now drover.Time) *Account {
	empty := &Account{Budget: a.Budget, Window: a.Window, From: now, To: Never, Limit: a.Limit}
	if a.Budget != nil {
		empty.To = now.Add(a.To.Sub(a.From))
	}
	return empty
}

// entry is what an instance adds to the accounts.
type entry struct {
	id    int64
	claim Claim
	sums  []drover.Money // by account
	turn  int            // how often windows had ended when it was made
	stale bool           // it is among those to be made anew
	gone  bool           // its instance is
	place int            // among those that move, from 1; 0 if it does not
	rate  drover.Money   // by which it does
	loose drover.Money
	price drover.Money // what the instance costs an hour now
	ended drover.Time  // up to when it is paid
}

// New is a ledger of what was spent before. claim is asked for what an instance costs when that has changed.
func New(spent drover.Money, spending []Spending, turn drover.Time, claim func(id int64) (Claim, bool)) *Ledger {
	return &Ledger{spent: spent, spending: spending, turn: turn, claim: claim}
}

// Configure has the ledger follow these settings, and these instances, the oldest first. The accounts are made when they are needed.
func (l *Ledger) Configure(s Settings, instances []int64) {
	l.settings, l.open, l.entries, l.stale = s, false, nil, nil
	for _, id := range instances {
		l.Changed(id)
	}
}

// At is the time for all that follows. It never decreases.
func (l *Ledger) At(now drover.Time) { l.now = now }

// Limited reports whether anything limits what is spent.
func (l *Ledger) Limited() bool { return l.settings.Max > 0 || len(l.settings.Budgets) > 0 }

// Changed says that an instance is new, not as it was, or gone.
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

// Claim is what an instance costs, as it is now. It is good until the next call of Changed.
func (l *Ledger) Claim(id int64) *Claim {
	l.refresh()
	if e, _ := l.find(id); e != nil {
		return &e.claim
	}
	return &Claim{}
}

// refresh brings the ledger up to what there is now. Entries that move may be older, see most.
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

// begin opens the accounts. Every instance is still to be entered.
func (l *Ledger) begin() {
	l.open, l.accounts, l.shared, l.stale, l.moving, l.ends = true, nil, false, nil, nil, timers.Timers{}
	l.at, l.rate, l.loose, l.turned, l.filled = l.now, 0, 0, 0, lastInstance
	if limit := l.settings.Max; limit > 0 {
		l.accounts = append(l.accounts, Account{To: Never, Present: true, Limit: limit, settled: &l.spent})
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
			a := Account{Budget: b, Window: w, From: from, To: w.end(from)}
			l.situate(&a)
			l.accounts = append(l.accounts, a)
			from = a.To
		}
	}
}

// read has an entry follow its instance.
func (l *Ledger) read(e *entry) {
	claim, there := l.claim(e.id)
	e.claim, e.gone = claim, !there
	if l.enter(e); e.gone {
		if _, at := l.find(e.id); at < len(l.entries) && l.entries[at] == e {
			l.entries = slices.Delete(l.entries, at, at+1)
		}
	}
}

// enter works out anew what an entry adds to the accounts.
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
		e.rate = e.claim.dearest().Price * drover.Money(1+n)
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
	l.entered++
}

// leave takes an entry out of the accounts.
func (l *Ledger) leave(e *entry) {
	for i, sum := range e.sums {
		if a := &l.accounts[i]; a.since <= e.turn {
			a.committed -= sum
		}
	}
	l.rate, l.loose = l.rate-e.rate, l.loose-e.loose
	e.rate, e.loose = 0, 0
}

// move puts an entry among those that move, or takes it out.
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

// price notes what an instance costs now, and up to when. Once that is more, limits may be passed earlier than was thought.
func (l *Ledger) price(e *entry) {
	price, ended := e.price, e.ended
	e.price, e.ended = 0, e.claim.Ended
	if !e.gone {
		e.price = e.claim.costsNow(l.now)
	}
	if e.price <= price && e.ended <= ended {
		return
	}
	for i := range l.accounts {
		l.accounts[i].look = 0
	}
}

// sumUp adds up what an instance has cost and will, in each account, and returns until when that stays so.
func (l *Ledger) sumUp(e *entry) (until drover.Time) {
	e.sums = e.sums[:0]
	if e.gone {
		return Never
	}
	end := e.claim.committedUntil(l.now)
	for i := range l.accounts {
		e.sums = append(e.sums, e.claim.committed(&l.accounts[i], l.now, end))
	}
	return e.claim.staysUntil(l.now, end, l.shared)
}
