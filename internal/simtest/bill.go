package simtest

import (
	"cmp"
	"slices"

	"drover"
	"drover/internal/billing"
	"drover/internal/engine"
)

// book is what a controller was told of an instance's bill, by its own clock.
type book struct {
	known   drover.Time   // when it first heard that the instance is there
	accepts []drover.Time // when it heard that its destruction is accepted
	tried   drover.Time   // when a destroy may last have been carried out for all it knows: it heard that one failed, or one was under way when it was told of a list that lacks it
	call    int64         // the destroy that is not answered yet; 0: none is
	again   bool          // a list had it again after one that lacked it, or one was not heeded: the last destroy may be held to have ended it
	seen    drover.Time   // when the first of the lists began since then that show no more that it goes on; 0: the last shows it
	seer    *controller   // that was told so
	by      *controller   // whose list it was that showed it last
	said    *controller   // that was told by its cloud when it ended
	lacked  drover.Time   // when the first list began that lacked it, of those that were told; 0 once one a lag later has it
	settled drover.Time   // up to when it has paid; 0: it has not
}

// told notes what a controller that lives on was told of bills.
func (c *controller) told(ev engine.Event) {
	switch b := ev.Body.(type) {
	case engine.Created:
		if c.w.Disk.instances[b.Instance].ProviderID == b.ProviderID { // else it is a twin, which a list will show
			c.w.known(b.ProviderID, ev.At)
		}
	case engine.Listed:
		if b.Effect <= c.lists[b.Cloud] {
			return // once more
		}
		c.lists[b.Cloud] = b.Effect
		c.toldOf(b)
		for _, s := range b.Added {
			c.w.known(s.ProviderID, ev.At)
		}
	case engine.Destroyed:
		if v := c.accepted[b.Effect]; v != nil {
			v.book.accepts = append(v.book.accepts, c.now()) // it asks for what it does next no sooner
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

// toldOf notes which instances a list that is told lacks. One that failed tells of none.
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

// settle compares the bill of an instance that is gone with its cloud's. The cloud bills from its accepting the create
// to the destroy that takes effect, and the rest of the period in which that was; the controller knows of either only
// what it is told, so its bill begins between the first and its being told, and likewise ends. Where it was told, its
// bill begins and ends no later than that. Of one that ended by itself it knows that lists lack it; and where the cloud
// has said when one ended, that is when its bill ends, as long as the clocks agree.
func (w *World) settle(in engine.Instance, end engine.InstanceEnd) {
	v := w.vmOf(in)
	switch {
	case in.Created == 0:
		if end.Cost != 0 {
			w.fail("instance %s, which never was, cost %v", in.Name, end.Cost)
		}
		return
	case v == nil && w.older: // it went before the copy was put back
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
	case in.Created < b.settled && !w.over && w.Disk.named(in.Name): // what another store named, this one cannot know to have paid
		w.fail("instance %s is paid from %v on, and was paid until %v before", in.Name, in.Created, b.settled)
	}
	*b = book{settled: min(end.At, w.controller.now())} // a period may be begun anew
	w.divide(in, end)
}

// vanished is when a controller may hold an instance to have ended at the earliest: once lists lack it, and with the
// last destroy before that if there was one; or by a list that lacked it before, which a newer one that shows it takes
// back only beyond the lag. Of one that ended by itself it may take a destroy before for the cause, which had been
// accepted.
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

// before is when the last destruction was accepted before a time; that time if none was.
func (b *book) before(at drover.Time) drover.Time {
	last := drover.Time(0)
	for _, accept := range b.accepts {
		if accept <= at {
			last = max(last, accept)
		}
	}
	return cmp.Or(last, at)
}

// heeded reports whether a controller has seen all that there was to see of an instance's end: one that began in
// between does not know which of the destroys before took effect.
func (b *book) heeded(c *controller) bool {
	return b.by == c && (len(b.accepts) == 0 || c.looks < b.accepts[0])
}

// show takes note of whether a list that began at a time shows that the instance goes on.
func (b *book) show(c *controller, goesOn bool, began drover.Time) {
	switch {
	case goesOn:
		b.seen, b.by = 0, c
	case (b.seen == 0 || b.seer != c) && len(b.accepts) > 0 && began >= b.accepts[0]:
		b.seen, b.seer = began, c
	}
}

// last is the latest that a controller may hold its destruction to have taken effect: as long after a list that shows
// it as the next may take.
func (b *book) last() drover.Time {
	last := max(b.accepts[0], b.tried)
	if b.seen == 0 || b.again {
		last = max(last, slices.Max(b.accepts))
	}
	if b.seen != 0 {
		last = max(last, b.seen.Add(3*slowest)) // the next list, and the one after that may be slow, too
	}
	return last
}

// billing is how a cloud bills.
func (w *World) billing(cloud string) drover.Billing {
	for _, c := range w.settings.Clouds {
		if c.Name == cloud {
			return c.Billing
		}
	}
	return drover.Billing{}
}

// share is what an attempt had of its instance.
type share struct {
	attempt drover.AttemptID
	use     billing.Use
}

// mayCost checks what an attempt that has ended is said to have cost. Prices from before may be folded into one later,
// and it costs that all the same.
func (w *World) mayCost(row engine.AttemptRow) {
	a := row.Attempt
	in := w.Disk.instances[a.Instance]
	bill := billing.Bill{Tariff: in.Tariff(), Created: in.Created, End: in.Ended, CPU: in.Resources.CPU}
	if bill.End == 0 {
		bill.End = a.Ended
	}
	use := billing.Use{Started: a.Started, Ended: a.Ended, CPU: w.Disk.jobs[a.ID.Job.Number].Shape.Need.CPU}
	whole := bill.Share(use, use.Started, use.Ended)
	if in.Pool != "" { // which pays for it
		whole = 0
	}
	if row.Cost != whole {
		w.fail("attempt %v is said to have cost %v, and had %v of %s", a.ID, row.Cost, whole, in.Name)
	}
}

// pay notes what an attempt had that has ended.
func (d *Disk) pay(row engine.AttemptRow) {
	a := row.Attempt
	use := billing.Use{Started: a.Started, Ended: a.Ended, CPU: d.jobs[a.ID.Job.Number].Shape.Need.CPU}
	use.Lost = a.State == drover.AttemptLost || a.State == drover.AttemptInterrupted
	d.had[a.Instance] = append(d.had[a.Instance], share{a.ID, use})
	d.spendShare(a, use)
}

// divide checks that a settled bill can be divided up: all attempts had no more than the instance cost.
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
