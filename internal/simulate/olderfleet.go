package simulate

import (
	"slices"
	"time"

	"drover"
	"drover/internal/engine"
)

// place puts a job on an instance or into the queue.
func (o *older) place(p *placed) {
	if !o.placed(p) {
		o.queue.add(p)
	}
}

// placed puts a job on an existing instance or on one that it rents, and reports whether it could.
func (o *older) placed(p *placed) bool {
	if o.policy == FirstFit {
		for _, r := range o.fleet {
			if r.user == p.user && p.shape.Accepts(r.offering) && r.free.Fits(p.shape.Need) {
				o.put(p, r)
				return true
			}
		}
	}
	at := o.cheapest(p.shape)
	if at < 0 || o.room[o.m.market.offerings[at].Cloud] == 0 {
		at = o.cheapestNow(p.shape, func(c drover.Offering) bool { return o.room[c.Cloud] > 0 })
	}
	if at < 0 {
		return false
	}
	if o.policy == Reuse {
		if r := o.soonFree(p, o.m.market.offerings[at]); r != nil {
			r.line = append(r.line, p)
			o.after(callTime+o.in.Models.Boot, func() { o.tire(p, r) })
			return true
		}
	}
	r := o.rent(o.m.market.offerings[at])
	r.user = p.user
	o.put(p, r)
	return true
}

// soonFree returns the instance of an offering that is expected to be free first, if that is before a new one would
// have booted; otherwise nil.
func (o *older) soonFree(p *placed, of drover.Offering) (first *rented) {
	least := o.now.Add(callTime + o.in.Models.Boot)
	for _, r := range o.fleet {
		if placeOf(r.offering) != placeOf(of) || r.user != p.user {
			continue
		}
		if at := o.frees(r); at >= o.now && at < least {
			first, least = r, at
		}
	}
	return first
}

// frees returns when an instance is expected to be free; 0 if that is unknown.
func (o *older) frees(r *rented) (at drover.Time) {
	if at = r.asked.Add(callTime + o.in.Models.Boot); !r.ready && at < o.now {
		return 0
	}
	for _, p := range slices.Concat(r.jobs, r.line) {
		takes := o.in.Expected.of(p.job)
		if takes == 0 {
			return 0
		}
		at = max(at, p.begun).Add(takes)
	}
	return at
}

// tire ends a job's wait for an instance that is not free at the expected time.
func (o *older) tire(p *placed, r *rented) {
	at := slices.Index(r.line, p)
	if at < 0 || r.gone {
		return
	}
	r.line = slices.Delete(r.line, at, at+1)
	if of := o.cheapest(p.shape); of >= 0 && o.room[o.m.market.offerings[of].Cloud] > 0 {
		r := o.rent(o.m.market.offerings[of])
		r.user = p.user
		o.put(p, r)
		return
	}
	o.queue.add(p)
}

// cheapest returns the index of the cheapest offering that can hold a job, even if it may not be rented; -1 if there is
// none.
func (o *older) cheapest(s drover.Shape) int {
	if o.priced != o.m.steps {
		o.priced = o.m.steps
		clear(o.prices)
	}
	at, known := o.prices[s]
	if !known || len(o.m.reserved) > 0 { // reservations are used up and become free again
		at = o.cheapestNow(s, func(drover.Offering) bool { return true })
		o.prices[s] = at
	}
	return at
}

// cheapestNow returns the index of the first of the cheapest allowed offerings that can hold a shape; -1 if there is
// none.
func (o *older) cheapestNow(s drover.Shape, may func(drover.Offering) bool) int {
	best := -1
	for i, c := range o.m.market.offerings {
		if (best < 0 || o.price(c) < o.price(o.m.market.offerings[best])) && s.Accepts(c) && may(c) {
			best = i
		}
	}
	return best
}

// price returns the price of one more instance of an offering: a reservation's, while any is left.
func (o *older) price(of drover.Offering) drover.Money {
	for _, r := range o.m.reserved[of.Cloud] {
		if covers(r, of) && o.renting(of.Cloud, r) < r.Count {
			return r.Price
		}
	}
	return of.Price
}

// renting returns how many instances use a reservation, or are about to.
func (o *older) renting(cloud string, r engine.Reservation) (n int) {
	for _, in := range o.fleet {
		if in.offering.Cloud == cloud && covers(r, in.offering) {
			n++
		}
	}
	return n
}

// rent requests an instance. It exists once its cloud has answered, and is ready once it has booted.
func (o *older) rent(of drover.Offering) *rented {
	r := &rented{offering: of, free: of.Type.Resources, asked: o.now}
	if r.free.Disk == 0 {
		r.free.Disk = drover.TiB // its volume gets the size that jobs need
	}
	o.made++
	o.room[of.Cloud]--
	o.fleet = append(o.fleet, r)
	boot := o.in.Models.boot(o.made)
	life, ends := o.in.Models.life(o.made)
	if o.in.AsSlow {
		boot += loginTime + 2*messageTime
	}
	o.after(callTime, func() {
		r.hire = o.m.rented(of)
		o.after(boot, func() { o.boots(r) })
		if ends && of.Market == drover.Spot {
			o.after(life, func() { o.taken(r) })
		}
	})
	return r
}

func (o *older) boots(r *rented) {
	if r.gone {
		return
	}
	r.ready = true
	o.m.ready(r.hire)
	for _, p := range r.jobs {
		o.begin(p, r)
	}
}

// put reserves room for a job on an instance, and starts the job if the instance is ready.
func (o *older) put(p *placed, r *rented) {
	r.free = r.free.Minus(p.shape.Need, 1)
	r.jobs = append(r.jobs, p)
	if r.ready {
		o.begin(p, r)
	}
}

func (o *older) begin(p *placed, r *rented) {
	p.begun = o.now
	o.m.began(r.hire, p.shape.Need)
	if !p.tried {
		p.tried = true
		o.m.waited(o.now.Sub(o.m.begin.Add(p.job.Submit)))
	}
	o.after(p.job.Runtime, func() {
		if !r.paid {
			o.finish(p, r)
		}
	})
}

// finish ends a job.
func (o *older) finish(p *placed, r *rented) {
	o.m.ended(r.hire, p.shape.Need, p.job.Runtime)
	r.jobs = slices.DeleteFunc(r.jobs, func(q *placed) bool { return q == p })
	o.slowly(messageTime, func() { o.vacate(p, r) })
}

// slowly does something immediately or, with AsSlow, after the time that Drover would need to notice the end of a job
// or to store its outputs.
func (o *older) slowly(d time.Duration, do func()) {
	if o.in.AsSlow {
		o.after(d, do)
	} else {
		do()
	}
}

// vacate gives a finished job's room to other jobs, or destroys the instance now or after the idle timeout.
func (o *older) vacate(p *placed, r *rented) {
	if r.gone {
		return
	}
	r.free = r.free.Plus(p.shape.Need, 1)
	if len(r.line) > 0 {
		next := r.line[0]
		r.line = r.line[1:]
		o.put(next, r)
		return
	}
	if o.policy != FirstFit {
		o.slowly(storeTime, func() {
			if !r.gone {
				o.destroy(r)
			}
		})
		return
	}
	o.retry()
	if len(r.jobs) > 0 {
		return
	}
	r.idle++
	since := r.idle
	o.after(o.in.Settings.Lifecycle.IdleTimeout, func() {
		if len(r.jobs) == 0 && r.idle == since && !r.gone {
			o.destroy(r)
		}
	})
}

// destroy destroys an instance; its bill ends when its cloud has answered.
func (o *older) destroy(r *rented) {
	o.leave(r)
	o.after(callTime, func() { o.pay(r, false) })
}

// taken interrupts an instance: its cloud reclaims it.
func (o *older) taken(r *rented) {
	if r.paid {
		return
	}
	o.leave(r)
	for _, p := range r.jobs {
		if p.begun != 0 {
			o.m.again(r.hire, p.shape.Need, o.now.Sub(p.begun))
			p.begun = 0
		}
		o.queue.add(p)
	}
	for _, p := range r.line {
		o.queue.add(p)
	}
	o.pay(r, true)
}

// leave removes an instance from the fleet.
func (o *older) leave(r *rented) {
	r.gone = true
	o.fleet = slices.DeleteFunc(o.fleet, func(f *rented) bool { return f == r })
}

// pay ends an instance's bill, so that another instance may be rented.
func (o *older) pay(r *rented, taken bool) {
	if r.paid {
		return
	}
	r.paid = true
	o.m.returned(r.hire, taken)
	o.room[r.offering.Cloud]++
	o.retry()
}

// retry places the waiting jobs that can be placed now, in order.
func (o *older) retry() {
	stuck := map[kind]bool{}
	for {
		p := o.queue.first(stuck)
		if p == nil {
			return
		}
		if !o.placed(p) {
			stuck[p.kind] = true
			continue
		}
		o.queue.drop(p)
	}
}

// queue contains the jobs without an instance, by kind and then in order of arrival: if one job cannot be placed, the
// others of its kind cannot be placed either.
type queue map[kind][]*placed

func (q queue) add(p *placed) {
	line := q[p.kind]
	at, _ := slices.BinarySearchFunc(line, p.seq, func(o *placed, seq int) int { return o.seq - seq })
	q[p.kind] = slices.Insert(line, at, p)
}

// first returns the oldest job whose kind is not stuck; nil if there is none.
func (q queue) first(stuck map[kind]bool) (first *placed) {
	for k, line := range q {
		if !stuck[k] && (first == nil || line[0].seq < first.seq) {
			first = line[0]
		}
	}
	return first
}

// drop removes the first job of its kind.
func (q queue) drop(p *placed) {
	if line := q[p.kind]; len(line) > 1 {
		line[0] = nil
		q[p.kind] = line[1:]
	} else {
		delete(q, p.kind)
	}
}
