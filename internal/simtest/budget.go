package simtest

import (
	"fmt"
	"strings"
	"time"

	"drover"
	"drover/internal/billing"
	"drover/internal/engine"
	"drover/internal/engine/fleet"
)

// The world reckons for itself what is spent, and promised to what runs, of each budget in each hour, day and month:
// from what was written down of instances and attempts, and never from what the engine counts. Where a decision binds
// money, all windows that this touches must hold it.

// calendar is the kinds of windows in which money is counted, as budgets name them.
var calendar = []struct {
	limit       func(engine.Amounts) drover.Money
	begin, next func(time.Time) time.Time
}{
	{
		func(a engine.Amounts) drover.Money { return a.Hourly },
		func(t time.Time) time.Time { return t.Truncate(time.Hour) },
		func(t time.Time) time.Time { return t.Add(time.Hour) },
	},
	{
		func(a engine.Amounts) drover.Money { return a.Daily },
		func(t time.Time) time.Time { return t.Truncate(24 * time.Hour) },
		func(t time.Time) time.Time { return t.AddDate(0, 0, 1) },
	},
	{
		func(a engine.Amounts) drover.Money { return a.Monthly },
		func(t time.Time) time.Time { return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC) },
		func(t time.Time) time.Time { return t.AddDate(0, 1, 0) },
	},
}

// span is one window of a budget.
type span struct {
	scope string
	kind  int // of calendar
	begin drover.Time
}

// claim is what has cost money in a budget's name, or will: an instance, what an attempt has of one, or what a job that
// waits for one will have.
type claim struct {
	bill  billing.Bill
	use   *billing.Use
	waits bool // it begins within the use, and takes most
	most  time.Duration
}

// cost is what the claim comes to in a stretch of time.
func (c claim) cost(from, to drover.Time) drover.Money {
	switch {
	case c.use == nil:
		return c.bill.Cost(from, to)
	case c.waits: // wherever it may fall
		within := min(to, c.use.Ended).Sub(max(from, c.use.Started))
		return c.bill.Tariff.Price.For(min(within, c.most)).Part(int64(min(c.use.CPU, c.bill.CPU)), int64(c.bill.CPU))
	}
	return c.bill.Share(*c.use, from, to)
}

// end is when the claim does.
func (c claim) end() drover.Time {
	if c.use == nil {
		return c.bill.End
	}
	return c.use.Ended
}

// spend adds a claim that is over to the windows of a scope in which it fell.
func (d *Disk) spend(scope string, c claim) { d.count(scope, c, 1) }

// unspend takes that back.
func (d *Disk) unspend(scope string, c claim) { d.count(scope, c, -1) }

func (d *Disk) count(scope string, c claim, times drover.Money) {
	begin := c.bill.Created
	if c.use != nil {
		begin = c.use.Started
	}
	for kind, windows := range calendar {
		for from := windows.begin(begin.Std()); drover.TimeOf(from) < c.end(); from = windows.next(from) {
			d.spent[span{scope, kind, drover.TimeOf(from)}] += times * c.cost(drover.TimeOf(from), drover.TimeOf(windows.next(from)))
		}
	}
}

// spendShare adds what an attempt had that has ended to the budgets of its job's user and labels.
func (d *Disk) spendShare(a engine.Attempt, use billing.Use) {
	in, j := d.instances[a.Instance], d.jobs[a.ID.Job.Number]
	end := in.Ended
	if end == 0 {
		end = a.Ended
	}
	c := claim{bill: billing.Bill{Tariff: in.Tariff(), Created: in.Created, End: end, CPU: in.Resources.CPU}, use: &use}
	if j.User != "" {
		d.spend("user "+j.User, c)
	}
	for name, value := range j.Labels {
		d.spend("label "+name+"="+value, c)
	}
}

// binding is a decision that binds money: an instance as it is to be, or an attempt that is to begin.
type binding struct {
	instance *engine.Instance
	waits    []fleet.Reservation // for what it is, of that what is new
	begun    *engine.Attempt
}

func (b binding) String() string {
	if b.begun != nil {
		return fmt.Sprintf("attempt %v", b.begun.ID)
	}
	return "instance " + b.instance.Name
}

// fine is what sums may be off by, since each is cut to nano-dollars.
const fine = 1000

// withinBudgets checks that a decision that binds money leaves each hard budget that it touches with enough for what is
// spent and promised, now and in each window to come. Prices that move, and what another store named, may pass one
// without a decision: then nothing more may be decided on.
func (w *World) withinBudgets(of binding) {
	for _, b := range w.controller.settings.Budgets {
		if b.Hard == (engine.Amounts{}) || !w.touches(of, b) {
			continue
		}
		claims, last := w.claims(of, b), drover.Time(0)
		for _, c := range claims {
			last = max(last, c.end())
		}
		for kind, windows := range calendar {
			limit := windows.limit(b.Hard)
			for from := windows.begin(w.controller.decides.Std()); limit > 0 && drover.TimeOf(from) < last; from = windows.next(from) {
				window := span{b.Scope(), kind, drover.TimeOf(from)}
				sum := w.sum(window, claims)
				if sum > limit+fine && w.binds(sum, window, b) {
					w.fail("%v would have %v of the %s spent and promised from %v on, with a budget of %v", of, sum, b.Scope(), from, limit)
				}
			}
		}
	}
}

// sum is what is spent in a window, and claimed of it.
func (w *World) sum(of span, claims []claim) drover.Money {
	sum, next := w.Disk.spent[of], drover.TimeOf(calendar[of.kind].next(of.begin.Std()))
	for _, c := range claims {
		sum += c.cost(of.begin, next)
	}
	return sum
}

// binds reports whether a decision that leaves a window with such a sum may not be taken when that is too much: in the
// present one none may, and in one to come none that adds to it. An instance that is promised to a job up to its end
// costs no more by a second, whatever its price has become.
func (w *World) binds(sum drover.Money, of span, b engine.Budget) bool {
	return of.begin <= w.controller.decides || sum > w.sum(of, w.claims(binding{}, b))
}

// touches reports whether a decision binds money of a budget.
func (w *World) touches(of binding, b engine.Budget) bool {
	switch {
	case b.Scope() == "fleet":
		return true
	case of.begun != nil:
		return mine(b, w.Disk.jobs[of.begun.ID.Job.Number])
	}
	for _, bound := range of.waits {
		if ours(b, bound.Group) {
			return true
		}
	}
	return false
}

// mine reports whether a job is one of those whose money a user's or a label's budget is.
func mine(b engine.Budget, j engine.Job) bool {
	if b.User != "" {
		return b.User == j.User
	}
	name, value, _ := strings.Cut(b.Label, "=")
	is, has := j.Labels[name]
	return has && is == value
}

// ours reports the same of a group of jobs.
func ours(b engine.Budget, key engine.GroupKey) bool {
	if b.User != "" {
		return b.User == key.User
	}
	return strings.Contains("\n"+key.Labels+"\n", "\n"+b.Label+"\n")
}

// claims are those of a budget on what is there, as one decision leaves it.
func (w *World) claims(of binding, b engine.Budget) (all []claim) {
	for _, in := range w.Disk.instances {
		if of.instance != nil && in.ID == of.instance.ID {
			continue
		}
		all = append(all, w.claimsOn(in, of.begun, b)...)
	}
	if of.instance != nil {
		all = append(all, w.claimsOn(*of.instance, nil, b)...)
	}
	return all
}

// claimsOn are the claims of a budget on one instance, up to the end of what was admitted to it.
func (w *World) claimsOn(in engine.Instance, begun *engine.Attempt, b engine.Budget) (all []claim) {
	var load []engine.Attempt
	for _, a := range w.Disk.attempts {
		if a.Instance == in.ID {
			load = append(load, a)
		}
	}
	if begun != nil && begun.Instance == in.ID {
		load = append(load, *begun)
	}
	if b.Scope() == "fleet" {
		return []claim{{bill: w.promised(in, load)}}
	}
	for _, a := range load {
		if j := w.Disk.jobs[a.ID.Job.Number]; mine(b, j) {
			use := billing.Use{Started: a.Started, Ended: w.endOf(a), CPU: j.Shape.Need.CPU}
			end := use.Ended
			if a.State == drover.AttemptCollecting && in.Ended != 0 {
				end = min(end, in.Ended)
			}
			all = append(all, claim{bill: billing.Bill{Tariff: in.Tariff(), Created: in.Created, End: end, CPU: in.Resources.CPU}, use: &use})
		}
	}
	for _, bound := range in.Reservations {
		for range bound.Count {
			if ours(b, bound.Group) {
				all = append(all, w.waiting(in, bound.Group))
			}
		}
	}
	return all
}

// endOf is when an attempt has ended, at the latest.
func (w *World) endOf(a engine.Attempt) drover.Time {
	if a.State == drover.AttemptCollecting {
		return a.Ended
	}
	return max(w.controller.decides, a.Started.Add(horizonOf(w.Disk.jobs[a.ID.Job.Number].Timeout)))
}

// promised is an instance's bill up to the end of the longest job on it, or of the bill: after that it costs nothing,
// even while nobody can say of the attempts on it that they have ended.
func (w *World) promised(in engine.Instance, load []engine.Attempt) billing.Bill {
	bill := billing.Bill{Tariff: in.Tariff(), Created: in.Created, End: in.Ended}
	if bill.Created == 0 {
		bill.Created = in.Asked
	}
	if bill.End != 0 {
		return bill
	}
	bill.End = w.controller.decides
	for _, o := range in.Candidates {
		bill.Tariff.Price = max(bill.Tariff.Price, o.Price)
	}
	for _, a := range load {
		if a.State != drover.AttemptCollecting {
			bill.End = max(bill.End, w.endOf(a))
		}
	}
	for _, b := range in.Reservations {
		bill.End = max(bill.End, in.Asked.Add(w.settings.Lifecycle.BootTimeout+horizonOf(b.Group.Timeout)))
	}
	if in.Created != 0 {
		bill.End = w.billing(in.Cloud).PaidUntil(in.Created, bill.End)
	} else {
		bill.End = w.billing(in.Cloud).Latest(bill.End)
	}
	return bill
}

// waiting is the claim of a job that is bound to an instance, by the dearest that this may be.
func (w *World) waiting(in engine.Instance, key engine.GroupKey) (most claim) {
	now, takes := w.controller.decides, horizonOf(key.Timeout)
	use := billing.Use{Started: now, Ended: max(now, in.Asked.Add(w.settings.Lifecycle.BootTimeout)).Add(takes), CPU: key.Shape.Need.CPU}
	offers := in.Candidates
	if len(offers) == 0 {
		offers = []drover.Offering{{Type: drover.InstanceType{Resources: in.Resources}, Price: in.Price}}
	}
	for _, o := range offers {
		c := claim{bill: billing.Bill{Tariff: drover.Tariff{Price: o.Price}, CPU: o.Type.Resources.CPU}, use: &use, waits: true, most: takes}
		if most.use == nil || c.cost(use.Started, use.Ended) > most.cost(use.Started, use.Ended) {
			most = c
		}
	}
	return most
}

func horizonOf(timeout time.Duration) time.Duration {
	if timeout == 0 {
		return time.Hour
	}
	return timeout
}

// mayBind checks an instance to which more is bound than before, or that is asked for only now.
func (w *World) mayBind(was, in engine.Instance) {
	asked := in.Begun && !was.Begun
	var more []fleet.Reservation
	for _, b := range in.Reservations {
		before := 0
		for _, o := range was.Reservations {
			if o.Group == b.Group {
				before = o.Count
			}
		}
		if asked || b.Count > before {
			more = append(more, b)
		}
	}
	if asked || len(more) > 0 {
		w.withinBudgets(binding{instance: &in, waits: more})
	}
}

// addsUp checks that what the controller has written down as spent is what was.
func (w *World) addsUp() {
	for scope, s := range w.Disk.spending {
		for kind, window := range s.Windows {
			if is := w.Disk.spent[span{scope, kind, window.Begin}]; window.Cost != is {
				w.fail("%v is written down as spent by the %s from %v on, and it was %v", window.Cost, scope, window.Begin, is)
			}
		}
	}
}
