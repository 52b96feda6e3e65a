package engine

import (
	"math"

	"drover"
	"drover/internal/ledger"
)

// Books are what is spent and what is committed, in each window of each budget. They are kept from decision to decision: what an instance adds to
// the accounts is its entry, which is made anew when the instance is, so that a decision costs what has changed and not what there is.
//
// What is committed is what runs: an instance up to the end of the longest job admitted to it, an attempt up to its own. As time goes on most
// entries stay as they are. Those move that are of what is idle, on its way, or takes longer than it was taken to: they are as of a moment, since
// when each has grown by no more than its instance's price, and are made anew only where that could make a difference.
//
// Of the windows that are still to come, only the next two can be the fullest: the next, or, since months differ, the one after. Beyond them each
// budget has a spare one: see rollover.
type books struct {
	accounts []account
	shared   bool         // there are budgets of users or labels
	stale    []*instance  // whose entries are to be made anew
	moving   []*instance  // whose entries move
	ends     timers       // when entries begin to
	at       drover.Time  // as of when the moving entries are, at least
	rate     drover.Money // by which all of them grow, an hour
	loose    drover.Money // and at most beside that, since each sum is cut to nano-dollars
	entered  int          // how often an entry was made

	turned   int         // how often windows have ended
	filled   int64       // the last instance that was looked at for whether its entry is older than that
	filledAt drover.Time // when it was
}

// account is one window of a budget, or with no budget the fleet's whole life.
type account struct {
	budget    *Budget
	window    window
	from, to  drover.Time
	present   bool
	last      bool          // of those with a limit
	spare     bool          // entries may lack in it, and nothing asks for it
	since     int           // entries from before windows had ended so often have nothing in it
	limit     drover.Money  // 0: none, or it is spare
	settled   *drover.Money // spent by what is over; nil where that can be nothing: later than in the next window
	committed drover.Money  // beside that, to what is there: what it has cost, and will

	spent   drover.Money // up to spentAt, with as many entries as entered says
	spentAt drover.Time
	entered int
	look    drover.Time // no limit is passed before this that is not passed already
}

// entry is what an instance adds to the accounts.
type entry struct {
	sums  []drover.Money // by account
	turn  int            // how often windows had ended when it was made
	stale bool           // it is among those to be made anew
	place int            // among those that move, from 1; 0 if it does not
	rate  drover.Money   // by which it does
	loose drover.Money
	paid  drover.Money // what the instance costs an hour now
	ended drover.Time  // up to when it is paid
}

// never is beyond all times.
const never = drover.Time(math.MaxInt64)

// book is the books as of what there is now. Entries that move may be older, see most.
func (e *Engine) book() *books {
	if e.books == nil {
		e.books = e.openBooks()
	}
	b := e.books
	for in := b.ends.due(e.s.Now); in != nil; in = b.ends.due(e.s.Now) {
		e.enter(b, in)
	}
	for _, in := range b.stale {
		in.entry.stale = false
		e.enter(b, in)
	}
	b.stale = b.stale[:0]
	return b
}

// openBooks begins books in which every instance is still to be entered.
func (e *Engine) openBooks() *books {
	b := &books{at: e.s.Now, filled: lastInstance}
	if limit := e.s.Settings.MaxCost; limit > 0 {
		b.accounts = append(b.accounts, account{to: never, present: true, limit: limit, settled: &e.s.Spent})
	}
	for i := range e.s.Settings.Budgets {
		budget := &e.s.Settings.Budgets[i]
		b.shared = b.shared || !budget.ofFleet()
		e.openAccounts(b, budget)
	}
	for _, in := range e.instances {
		in.entry = entry{stale: true}
	}
	b.stale = append(b.stale, e.instances...)
	return b
}

func (e *Engine) openAccounts(b *books, budget *Budget) {
	for w := range windows {
		if e.spending(budget.Scope()) == nil || budget.Hard.of(w) == 0 && budget.Soft.of(w) == 0 {
			continue
		}
		from := w.begin(e.s.Now)
		for range budget.inSight(w) {
			a := account{budget: budget, window: w, from: from, to: w.end(from)}
			e.situate(&a)
			b.accounts = append(b.accounts, a)
			from = a.to
		}
	}
}

// rebook has an instance's entry made anew, since something of it has changed.
func (e *Engine) rebook(in *instance) {
	if e.books != nil && !in.entry.stale {
		in.entry.stale = true
		e.books.stale = append(e.books.stale, in)
	}
}

// enter makes an instance's entry anew.
func (e *Engine) enter(b *books, in *instance) {
	was := &in.entry
	for i, sum := range was.sums {
		if a := &b.accounts[i]; a.since <= was.turn {
			a.committed -= sum
		}
	}
	b.rate, b.loose = b.rate-was.rate, b.loose-was.loose
	until := e.figure(b, in)
	was.turn = b.turned
	for i, sum := range was.sums {
		b.accounts[i].committed += sum
	}
	moves := until <= e.s.Now
	was.rate, was.loose = 0, 0
	if moves {
		sums := drover.Money(1 + len(in.load) + in.bound())
		was.rate, was.loose = e.dearest(in).Price*drover.Money(1+in.bound()), 2*sums
	}
	b.rate, b.loose = b.rate+was.rate, b.loose+was.loose
	b.move(in, moves)
	if moves || until == never {
		until = 0
	}
	b.ends.set(in, until)
	e.paid(b, in)
	b.entered++
}

// move puts an instance among those whose entries move, or takes it out.
func (b *books) move(in *instance, moves bool) {
	switch at := in.entry.place; {
	case moves && at == 0:
		b.moving = append(b.moving, in)
		in.entry.place = len(b.moving)
	case !moves && at > 0:
		last := b.moving[len(b.moving)-1]
		b.moving[at-1], last.entry.place = last, at
		b.moving = b.moving[:len(b.moving)-1]
		in.entry.place = 0
	}
}

// paid notes what an instance costs now, and up to when. Once that is more, limits may be passed earlier than was thought.
func (e *Engine) paid(b *books, in *instance) {
	price, ended := in.entry.paid, in.entry.ended
	in.entry.paid, in.entry.ended = 0, in.Ended
	if in.Created != 0 && (in.Ended == 0 || in.Ended > e.s.Now) && in.State != drover.InstanceGone { // in a period that is paid, attempts go on
		in.entry.paid = in.Price
	}
	if in.entry.paid <= price && in.Ended <= ended {
		return
	}
	for i := range b.accounts {
		b.accounts[i].look = 0
	}
}

// figure sums up what an instance has cost and will, in each account, and returns until when that stays so.
func (e *Engine) figure(b *books, in *instance) (until drover.Time) {
	sums := in.entry.sums[:0]
	if in.State == drover.InstanceGone {
		in.entry.sums = sums
		return never
	}
	begin, end, tariff := e.paidFrom(in), e.committedUntil(in), e.dearest(in)
	switch until = end; {
	case in.Ended != 0:
		until = never
	case in.Created == 0: // as long as that is not known, its bill may begin now
		until = e.s.Now
	}
	var uses []sharer
	if b.shared {
		uses = e.sharers(in)
	}
	for i := range b.accounts {
		a, sum := &b.accounts[i], drover.Money(0)
		switch {
		case a.from >= max(end, e.s.Now) && len(in.Bound) == 0: // it is over by then
		case a.fleets():
			sum = tariff.Cost(begin, a.from, min(a.to, end))
		default:
			sum = e.shares(a, in, uses)
		}
		sums = append(sums, sum)
	}
	in.entry.sums = sums
	for _, s := range uses {
		until = min(until, s.until)
	}
	return until
}

// sharer is an attempt, or what is bound, that has part of an instance.
type sharer struct {
	key   GroupKey
	bill  ledger.Bill
	use   ledger.Use
	bound int         // so many are bound, and have yet to begin
	until drover.Time // up to when what it has stays so
}

// sharers is what has part of an instance.
func (e *Engine) sharers(in *instance) (all []sharer) {
	for _, t := range in.load {
		j := e.job(t.ID.Job.Number)
		s := sharer{key: e.keyOf(j), bill: e.bill(in), use: useOf(t, j), until: never}
		s.use.Ended = orNow(t.Ended, e.s.Now)
		if t.State != drover.AttemptCollecting {
			s.until = t.Started.Add(horizon(j.Timeout))
			s.use.Ended = max(s.use.Ended, s.until)
			s.bill.End = max(s.bill.End, s.use.Ended)
		}
		all = append(all, s)
	}
	for _, b := range in.Bound {
		all = append(all, sharer{key: b.Group, bound: b.Count})
	}
	return all
}

// shares is what of an instance is in the name of an account's budget.
func (e *Engine) shares(a *account, in *instance, all []sharer) (sum drover.Money) {
	for _, s := range all {
		switch {
		case !a.budget.covers(s.key):
		case s.bound > 0:
			sum += a.part(in.offers(), s.key, e.s.Now, in.Asked.Add(e.life().BootTimeout)) * drover.Money(s.bound)
		default:
			sum += s.bill.Share(s.use, a.from, a.to)
		}
	}
	return sum
}

// sum is what is spent and committed, of which what moves may be older than now.
func (a *account) sum() drover.Money {
	if a.settled == nil {
		return a.committed
	}
	return *a.settled + a.committed
}

// most is no less than what is spent and committed now, and less effort.
func (e *Engine) most(b *books, a *account) drover.Money {
	if b.at == e.s.Now {
		return a.sum()
	}
	return a.sum() + b.rate.For(e.s.Now.Sub(b.at)) + b.loose
}

// least is no more than what is spent and committed now: what is bound to an instance on its way may ask for less of a window as that goes on.
func (e *Engine) least(b *books, a *account) drover.Money { return 2*a.sum() - e.most(b, a) }

// renew makes the entries that move anew, after which sum is as of now.
func (e *Engine) renew(b *books) {
	if b.at == e.s.Now {
		return
	}
	b.at = e.s.Now
	for i := 0; i < len(b.moving); {
		in := b.moving[i]
		if e.enter(b, in); i < len(b.moving) && b.moving[i] == in {
			i++
		}
	}
}

// exceeds reports whether so much more than what is spent and committed passes a limit.
func (e *Engine) exceeds(b *books, a *account, more, limit drover.Money) bool {
	switch {
	case e.most(b, a)+more <= limit:
		return false
	case e.least(b, a)+more > limit:
		return true
	}
	e.renew(b)
	return a.sum()+more > limit
}

// allows is how many of what costs so much each a limit leaves money for, beside so much that others of the same decision take.
func (e *Engine) allows(b *books, a *account, each, taken drover.Money) int {
	left := func(sum drover.Money) int { return int(max(0, a.limit-sum-taken) / each) }
	if n := left(e.most(b, a)); n == left(e.least(b, a)) {
		return n
	}
	e.renew(b)
	return left(a.sum())
}

// spentOf is what is spent in an account up to now.
func (e *Engine) spentOf(b *books, a *account) drover.Money {
	if a.settled == nil {
		return 0
	}
	if a.spentAt == e.s.Now && a.entered == b.entered {
		return a.spent
	}
	a.spent, a.spentAt, a.entered = *a.settled, e.s.Now, b.entered
	for _, in := range e.instances {
		a.spent += e.hasSpent(a, in)
	}
	return a.spent
}

// hasSpent is what an instance has cost, or what the budget's attempts had of it, in an account.
func (e *Engine) hasSpent(a *account, in *instance) (spent drover.Money) {
	if in.Created == 0 {
		return 0
	}
	bill := e.bill(in)
	if a.fleets() {
		return bill.Cost(a.from, a.to)
	}
	for _, t := range in.load {
		if j := e.job(t.ID.Job.Number); a.budget.covers(e.keyOf(j)) {
			u := useOf(t, j)
			u.Ended = orNow(t.Ended, e.s.Now)
			spent += bill.Share(u, a.from, a.to)
		}
	}
	return spent
}
