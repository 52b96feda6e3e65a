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

// The world computes for itself what each budget has spent and promised in each hour, day and month. It uses the
// written records of instances and attempts, never the engine's own sums. When a decision commits money, every window
// it touches must have enough left.

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
	kind  int // index into calendar
	begin drover.Time
}

// claim is something that has cost or will cost a budget money: an instance, an attempt's part of one, or the part that
// a job waiting for one will use.
type claim struct {
	bill  billing.Bill
	use   *billing.Use
	waits bool // the job begins sometime within use and takes at most most
	most  time.Duration
}

// cost is what the claim costs in a stretch of time.
func (c claim) cost(from, to drover.Time) drover.Money {
	switch {
	case c.use == nil:
		return c.bill.Cost(from, to)
	case c.waits: // whenever it runs
		within := min(to, c.use.Ended).Sub(max(from, c.use.Started))
		return c.bill.Tariff.Price.For(min(within, c.most)).Part(int64(min(c.use.CPU, c.bill.CPU)), int64(c.bill.CPU))
	}
	return c.bill.Share(*c.use, from, to)
}

// end is when the claim ends.
func (c claim) end() drover.Time {
	if c.use == nil {
		return c.bill.End
	}
	return c.use.Ended
}

// spend adds a finished claim to the windows of a scope in which it fell.
func (d *Disk) spend(scope string, c claim) { d.count(scope, c, 1) }

// unspend reverts spend.
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

// spendShare adds what an ended attempt used to the budgets of its job's user and labels.
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

// binding is a decision that commits money: an instance in its future state, or an attempt about to begin.
type binding struct {
	instance *engine.Instance
	waits    []fleet.Reservation // the instance's new reservations
	begun    *engine.Attempt
}

func (b binding) String() string {
	if b.begun != nil {
		return fmt.Sprintf("attempt %v", b.begun.ID)
	}
	return "instance " + b.instance.Name
}

// fine is the tolerance of sums, since each term is cut to nano-dollars.
const fine = 1000

// withinBudgets checks that a decision that commits money leaves every hard budget it touches enough for what is spent
// and promised, now and in each coming window. Moving prices and instances that another store named may exceed a budget
// without a decision. After that nothing more may be committed.
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

// sum is what is spent and claimed in a window.
func (w *World) sum(of span, claims []claim) drover.Money {
	sum, next := w.Disk.spent[of], drover.TimeOf(calendar[of.kind].next(of.begin.Std()))
	for _, c := range claims {
		sum += c.cost(of.begin, next)
	}
	return sum
}

// binds reports whether a decision is forbidden that brings a window to this sum, which is over its limit. In the
// present window every decision is; in a coming one only a decision that adds to the sum. An instance that is already
// promised to a job until the job's end costs no more for a second job, whatever its price now.
func (w *World) binds(sum drover.Money, of span, b engine.Budget) bool {
	return of.begin <= w.controller.decides || sum > w.sum(of, w.claims(binding{}, b))
}

// touches reports whether a decision commits money of a budget.
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

// mine reports whether a user's or a label's budget pays for a job.
func mine(b engine.Budget, j engine.Job) bool {
	if b.User != "" {
		return b.User == j.User
	}
	name, value, _ := strings.Cut(b.Label, "=")
	is, has := j.Labels[name]
	return has && is == value
}

// ours reports whether it pays for a group of jobs.
func ours(b engine.Budget, key engine.GroupKey) bool {
	if b.User != "" {
		return b.User == key.User
	}
	return strings.Contains("\n"+key.Labels+"\n", "\n"+b.Label+"\n")
}

// claims returns a budget's claims on all instances, as they are after a decision.
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

// claimsOn returns a budget's claims on one instance, until the end of what was admitted to it.
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

// endOf is the latest time at which an attempt ends.
func (w *World) endOf(a engine.Attempt) drover.Time {
	if a.State == drover.AttemptCollecting {
		return a.Ended
	}
	return max(w.controller.decides, a.Started.Add(horizonOf(w.Disk.jobs[a.ID.Job.Number].Timeout)))
}

// promised is an instance's bill until the end of the longest job on it, or of the bill. After that it costs nothing,
// even while the controller cannot tell whether its attempts have ended.
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

// waiting is the claim of a job that waits for an instance, at the most expensive candidate.
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

// mayBind checks an instance that gets more reservations, or that is requested only now.
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

// addsUp checks that the recorded spending equals the actual spending.
func (w *World) addsUp() {
	for scope, s := range w.Disk.spending {
		for kind, window := range s.Windows {
			if is := w.Disk.spent[span{scope, kind, window.Begin}]; window.Cost != is {
				w.fail("%v is written down as spent by the %s from %v on, and it was %v", window.Cost, scope, window.Begin, is)
			}
		}
	}
}
