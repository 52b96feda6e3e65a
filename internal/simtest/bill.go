package simtest

import (
	"cmp"
	"slices"

	"drover"
	"drover/internal/billing"
	"drover/internal/engine"
)

// book is what controllers have learned of an instance's bill, by their own clocks.
type book struct {
	known   drover.Time   // when a controller first heard of the instance
	accepts []drover.Time // when the controller heard that a destroy call was accepted
	tried   drover.Time   // the latest time at which a destroy may have taken effect unconfirmed: one failed, or one was in flight when a list lacked the instance
	call    int64         // the destroy call that is not answered yet; 0: none
	again   bool          // the instance reappeared in a list, or a destroy had no effect, so the last destroy may count as the one that ended it
	seen    drover.Time   // when the first list began that no longer shows it running; 0: the latest list shows it running
	seer    *controller   // the controller that received that list
	by      *controller   // the controller whose list last showed it running
	said    *controller   // the controller that the cloud told when the instance ended
	lacked  drover.Time   // when the first received list that lacks it began; 0 once a list one lag later has it
	settled drover.Time   // until when it is paid; 0: not paid
}

// told records what a living controller has learned of bills.
func (c *controller) told(ev engine.Event) {
	switch b := ev.Body.(type) {
	case engine.Created:
		if c.w.Disk.instances[b.Instance].ProviderID == b.ProviderID { // otherwise it is a twin, which a list will show
			c.w.known(b.ProviderID, ev.At)
		}
	case engine.Listed:
		if b.Effect <= c.lists[b.Cloud] {
			return // a duplicate
		}
		c.lists[b.Cloud] = b.Effect
		c.toldOf(b)
		for _, s := range b.Added {
			c.w.known(s.ProviderID, ev.At)
		}
	case engine.Destroyed:
		if v := c.accepted[b.Effect]; v != nil {
			v.book.accepts = append(v.book.accepts, c.now()) // the next effects come no earlier
		}
		delete(c.accepted, b.Effect)
		if v := c.w.vmOf(c.w.Disk.instances[b.Instance]); v != nil {
			if b.Effect == v.book.call {
				v.book.call = 0
			}
			if b.Err != nil {
				v.book.tried = c.now()
			}
		}
	}
}

// toldOf records which instances a received list lacks. A failed list shows nothing.
func (c *controller) toldOf(b engine.Listed) {
	lacks := c.lack[b.Effect]
	delete(c.lack, b.Effect)
	if b.Err != nil {
		return
	}
	cl := c.w.cloud(b.Cloud)
	for _, v := range cl.vms {
		switch lacked := v.book.lacked; {
		case slices.Contains(lacks, v) && lacked == 0:
			if v.book.lacked = b.Began; v.book.call != 0 {
				v.book.tried = b.Began
			}
		case !slices.Contains(lacks, v) && lacked != 0 && b.Began >= lacked.Add(cl.lag):
			v.book.lacked = 0
		}
	}
}

func (w *World) known(provider string, at drover.Time) {
	for _, cl := range w.clouds {
		if v := cl.provided(provider); v != nil && v.book.known == 0 {
			v.book.known = at
		}
	}
}

// settle compares the bill of a departed instance with its cloud's bill. The cloud bills from when it accepts the
// create until the destroy takes effect, rounded up to the billing period. The controller only learns of both later, so
// its bill may begin and end up to the moment it learns, but no later. If the instance ended by itself, the controller
// only sees that lists lack it. If the cloud reported the end, the bill ends at that time, as long as the clocks agree.
func (w *World) settle(in engine.Instance, end engine.InstanceEnd) {
	v := w.vmOf(in)
	if v != nil && in.Pool == "" && len(v.fence) == 0 {
		w.Unused++
	}
	switch {
	case in.Created == 0:
		if end.Cost != 0 {
			w.fail("instance %s, which never was, cost %v", in.Name, end.Cost)
		}
		return
	case v == nil && w.older: // it was gone before the copy was put back
		return
	case v == nil:
		w.fail("instance %s, which never was, was paid from %v on", in.Name, in.Created)
		return
	}
	b := &v.book
	paid := func(ended drover.Time) drover.Time { return w.billing(in.Cloud).PaidUntil(in.Created, ended) }
	switch now := w.controller.now(); {
	case end.Cost != in.Tariff().Cost(in.Created, in.Created, end.At):
		w.fail("instance %s cost %v for %v at %+v an hour", in.Name, end.Cost, end.At.Sub(in.Created), in.Tariff())
	case in.Created < v.created && b.settled == 0 || b.known != 0 && in.Created > b.known:
		w.fail("the bill of %s begins at %v, but it was created at %v, which was known at %v", in.Name, in.Created, v.created, b.known)
	case v.billed == 0:
		w.fail("the bill of %s ends, and %s goes on", in.Name, v.provider)
	case b.said == w.controller && w.leapt == 0 && in.Created <= v.billed && end.At != paid(v.billed):
		w.fail("the bill of %s ends at %v, and its cloud has said that it ended at %v", in.Name, end.At, v.billed)
	case end.At < paid(v.vanished()) && b.heeded(w.controller) || end.At > paid(now):
		w.fail("the bill of %s ends at %v, but it was destroyed at %v", in.Name, end.At, v.billed)
	case len(b.accepts) > 0 && b.heeded(w.controller) && end.At > paid(b.last()):
		w.fail("the bill of %s ends at %v, but its destruction was known to be accepted at %v", in.Name, end.At, b.last())
	case in.Created < b.settled && !w.over && w.Disk.named(in.Name): // this store cannot know what is paid for an instance that another store named
		w.fail("instance %s is paid from %v on, and was paid until %v before", in.Name, in.Created, b.settled)
	}
	*b = book{settled: min(end.At, w.controller.now())} // a new period may begin
	w.divide(in, end)
}

// vanished is the earliest time at which a controller may assume that the instance ended: when lists lack it, or at the
// last accepted destroy before that. An earlier list that lacked it also counts, until a list at least one lag later
// shows it again. If the instance ended by itself, the controller may attribute that to an earlier accepted destroy.
func (v *vm) vanished() drover.Time {
	end := v.billed.Add(-2 * v.cloud.lag)
	if !v.destroyed {
		end = v.book.before(end)
	}
	if v.book.lacked != 0 {
		return min(end, v.book.before(v.book.lacked))
	}
	return end
}

// before returns when the last destroy before a time was accepted, or that time if none was.
func (b *book) before(at drover.Time) drover.Time {
	last := drover.Time(0)
	for _, accept := range b.accepts {
		if accept <= at {
			last = max(last, accept)
		}
	}
	return cmp.Or(last, at)
}

// heeded reports whether a controller saw all evidence of an instance's end. One that began in between does not know
// which of the earlier destroys took effect.
func (b *book) heeded(c *controller) bool {
	return b.by == c && (len(b.accepts) == 0 || c.looks < b.accepts[0])
}

// show records whether a list that began at a given time shows the instance running.
func (b *book) show(c *controller, goesOn bool, began drover.Time) {
	switch {
	case goesOn:
		b.seen, b.by = 0, c
	case (b.seen == 0 || b.seer != c) && len(b.accepts) > 0 && began >= b.accepts[0]:
		b.seen, b.seer = began, c
	}
}

// last is the latest time at which a controller may assume that the destroy took effect: after a list shows it, as long
// as the next list may take.
func (b *book) last() drover.Time {
	last := max(b.accepts[0], b.tried)
	if b.seen == 0 || b.again {
		last = max(last, slices.Max(b.accepts))
	}
	if b.seen != 0 {
		last = max(last, b.seen.Add(3*slowest)) // the next list and the one after it may both be slow
	}
	return last
}

// billing returns how a cloud bills.
func (w *World) billing(cloud string) drover.Billing {
	for _, c := range w.settings.Clouds {
		if c.Name == cloud {
			return c.Billing
		}
	}
	return drover.Billing{}
}

// share is what one attempt used of its instance.
type share struct {
	attempt drover.AttemptID
	use     billing.Use
}

// mayCost checks the recorded cost of an attempt that has ended. Earlier prices may be folded into one later, which
// does not change the cost.
func (w *World) mayCost(row engine.AttemptRow) {
	a := row.Attempt
	in := w.Disk.instances[a.Instance]
	bill := billing.Bill{Tariff: in.Tariff(), Created: in.Created, End: in.Ended, CPU: in.Resources.CPU}
	if bill.End == 0 {
		bill.End = a.Ended
	}
	use := billing.Use{Started: a.Started, Ended: a.Ended, CPU: w.Disk.jobs[a.ID.Job.Number].Shape.Need.CPU}
	whole := bill.Share(use, use.Started, use.Ended)
	if row.Cost != whole {
		w.fail("attempt %v is said to have cost %v, and had %v of %s", a.ID, row.Cost, whole, in.Name)
	}
}

// pay records what an ended attempt used.
func (d *Disk) pay(row engine.AttemptRow) {
	a := row.Attempt
	use := billing.Use{Started: a.Started, Ended: a.Ended, CPU: d.jobs[a.ID.Job.Number].Shape.Need.CPU}
	use.Lost = a.State == drover.AttemptLost || a.State == drover.AttemptInterrupted
	d.had[a.Instance] = append(d.had[a.Instance], share{a.ID, use})
	d.spendShare(a, use)
}

// divide checks that a settled bill can be divided: the attempts together used no more than the instance cost.
func (w *World) divide(in engine.Instance, end engine.InstanceEnd) {
	bill := billing.Bill{Tariff: in.Tariff(), Created: in.Created, Ready: in.Ready, End: end.At, CPU: in.Resources.CPU, Unused: !in.Used}
	account := bill.Open(in.Created, end.At)
	sum := billing.Parts{}
	for _, s := range w.Disk.had[in.ID] {
		part := account.Charge(s.use)
		if whole := bill.Share(s.use, s.use.Started, s.use.Ended); whole-part.Sum() > fine {
			w.fail("attempt %v had %v of %s, of which only %v was left", s.attempt, whole, in.Name, part.Sum())
		}
		sum = sum.Plus(part)
	}
	if sum = sum.Plus(account.Rest()); sum.Sum() != end.Cost {
		w.fail("instance %s cost %v, and its parts come to %v", in.Name, end.Cost, sum.Sum())
	}
	delete(w.Disk.had, in.ID)
}
