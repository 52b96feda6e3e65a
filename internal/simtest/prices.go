package simtest

import (
	"fmt"
	"slices"
	"time"

	"drover"
	"drover/internal/engine"
)

// catalogue is a modelled cloud's offerings over time.
type catalogue struct {
	now     []drover.Offering
	version int
	before  map[string][]drover.Offering // by hash: every version that somebody was given
}

func newCatalogue(c engine.CloudSettings) catalogue {
	all := engine.Sorted(Offerings(c.Name))
	for i := range all {
		if c.GrowDisk {
			all[i].Type.Resources.Disk, all[i].DiskPrice = 0, gibPrice
		}
	}
	return catalogue{now: all, before: map[string][]drover.Offering{}}
}

func (c *catalogue) hash() string { return fmt.Sprint("v", c.version) }

// move moves some prices to between half and twice their first values.
func (c *catalogue) move(w *World) {
	first := engine.Sorted(Offerings(c.now[0].Cloud))
	c.now = engine.Sorted(c.now)
	for i := range c.now {
		if w.roll(2) == 0 {
			c.now[i].Price = first[i].Price * drover.Money(50+w.roll(151)) / 100
		}
	}
	c.version++
}

// offer gives a controller a cloud's present offerings, if possible as changes from the version that it has.
func (c *controller) offer(effect int64, f engine.ListOfferings) {
	cl := c.w.cloud(f.Cloud)
	p := &cl.prices
	ev := engine.Offered{Effect: effect, Cloud: cl.name, Offerings: p.now, Hash: p.hash()}
	if was, known := p.before[f.Have]; known {
		ev.Base = f.Have
		ev.Offerings, ev.Removed = engine.Changes(was, p.now)
	}
	p.before[p.hash()] = p.now
	if cl.rages(Outage) || c.w.happens(OffersFail) {
		ev = engine.Offered{Effect: effect, Cloud: cl.name, Err: drover.Errorf(drover.KindTransient, "no answer")}
	}
	c.reply(time.Second, ev)
}

// mayReserve checks that no more instances are rented at a reservation's price than it covers.
func (w *World) mayReserve(in engine.Instance) {
	if len(in.Candidates) == 0 || !in.Candidates[0].Reserved {
		return
	}
	there := 1
	for _, o := range w.Disk.instances {
		if o.Cloud == in.Cloud && o.Type.Name == in.Type.Name && o.Market == in.Market && o.Ended == 0 && !resting(o) {
			there++
		}
	}
	for _, c := range w.settings.Clouds {
		for _, r := range c.Reserved {
			if c.Name == in.Cloud && r.Type == in.Type.Name && there > r.Count {
				w.fail("instance %s is to be the %dth at a price that is reserved for %d", in.Name, there, r.Count)
			}
		}
	}
}

// pricesTold is what a controller was given of a cloud's prices.
type pricesTold struct {
	last int64             // the last effect that was answered
	now  []drover.Offering // by the last answer
	ever map[engine.OfferingKey]map[drover.Money]bool
}

// priced records the prices that a controller is given, unless it was given them before.
func (c *controller) priced(b engine.Offered) {
	t := c.prices[b.Cloud]
	if t == nil {
		t = &pricesTold{ever: map[engine.OfferingKey]map[drover.Money]bool{}}
		c.prices[b.Cloud] = t
	}
	if b.Effect <= t.last || b.Err != nil {
		return
	}
	t.last, t.now = b.Effect, c.w.cloud(b.Cloud).prices.before[b.Hash]
	for _, o := range t.now {
		key := engine.KeyOf(o)
		if t.ever[key] == nil {
			t.ever[key] = map[drover.Money]bool{}
		}
		t.ever[key][o.Price] = true
	}
}

// reservation returns the reservation of an instance's type, by the settings that the controller was given; nil if
// there is none.
func (c *controller) reservation(in engine.Instance) *engine.Reservation {
	for _, cl := range c.settings.Clouds {
		for _, r := range cl.Reserved {
			if cl.Name == in.Cloud && r.Type == in.Type.Name && in.Market == drover.OnDemand {
				return &r
			}
		}
	}
	return nil
}

// mayReprice checks that an instance's new price is one that its controller was given, and that what was paid stays
// paid. A stopped instance that runs again first costs its old price by its record, since the controller may have no
// prices yet, or others.
func (w *World) mayReprice(was, in engine.Instance) {
	c, at := w.controller, in.Created
	if n := len(in.Rates); n > 0 {
		at = in.Rates[n-1].Until
	}
	switch paid := was.Tariff().Cost(was.Created, was.Created, at); {
	case was.Created == 0:
	case at > c.now():
		w.fail("instance %s is to cost %v from %v on, which is still to come", in.Name, in.Price, at)
	case in.Tariff().Cost(in.Created, in.Created, at) != paid:
		w.fail("instance %s has cost %v, and with its price it would be another sum", in.Name, paid)
	case w.settledOtherwise(was, in, at):
	case resting(in):
		c.mayRestAt(was, in)
	case was.StopAccepted && in.Price == was.RunPrice:
	case !c.toldPrice(in, in.Price):
		w.fail("instance %s is to cost %v, of which its controller was never told", in.Name, in.Price)
	}
}

// toldPrice reports whether a controller was ever given this price for the instance's offering, or has it as a
// reservation's price.
func (c *controller) toldPrice(in engine.Instance, price drover.Money) bool {
	if r := c.reservation(in); r != nil && r.Price == price {
		return true
	}
	t := c.prices[in.Cloud]
	return t != nil && t.ever[engine.OfferingKey{Type: in.Type.Name, Zone: in.Zone, Market: in.Market}][price-c.volumePrice(in)]
}

// settledOtherwise reports a failure if a price change alters what an instance has cost so far in the present windows
// or since its attempts began.
func (w *World) settledOtherwise(was, in engine.Instance, at drover.Time) bool {
	differs := func(begin, from drover.Time) bool {
		return was.Tariff().Cost(begin, from, at) != in.Tariff().Cost(begin, from, at)
	}
	for _, windows := range calendar {
		if from := drover.TimeOf(windows.begin(at.Std())); differs(in.Created, from) {
			w.fail("instance %s has cost another sum since %v, once its price is to be another", in.Name, from)
			return true
		}
	}
	for _, a := range w.Disk.attempts {
		if a.Instance == in.ID && a.Started <= at && differs(a.Started, a.Started) {
			w.fail("what an attempt has had of instance %s is another sum, once its price is to be another", in.Name)
			return true
		}
	}
	return false
}

// glancePrices checks that each instance has the latest price that its controller was given, and that reservations are
// used up before other prices are paid.
func (c *controller) glancePrices() {
	used, others := map[string]int{}, map[string]bool{}
	for _, in := range c.loop.Engine.Instances() {
		t := c.prices[in.Cloud]
		if in.Created == 0 || in.Ended != 0 || t == nil || t.now == nil {
			continue
		}
		r, listed := c.reservation(in), drover.Money(-1)
		for _, o := range t.now {
			if o.Type.Name == in.Type.Name && o.Zone == in.Zone && o.Market == in.Market {
				listed = o.Price
			}
		}
		if c.glanceStopped(in, listed); resting(in) {
			continue
		}
		kind := in.Cloud + "/" + in.Type.Name
		switch {
		case r != nil && in.Price == r.Price:
			used[kind]++
		case listed >= 0 && in.Price != listed+c.volumePrice(in):
			c.w.fail("instance %s costs %v, and its cloud asks %v and %v for its volume", in.Name, in.Price, listed, c.volumePrice(in))
		default:
			others[kind] = others[kind] || r != nil
		}
		if r != nil && (used[kind] > r.Count || others[kind] && used[kind] < r.Count) {
			c.w.fail("instance %s costs %v, and of %d reserved %d are in use", in.Name, in.Price, r.Count, used[kind])
		}
	}
}

// told records that a controller learns of an interruption.
func (v *vm) told() {
	if v != nil {
		v.w.interruptions[v.provider] = v.offering
	}
}

// mayBeRestless checks that no block is made for only one or two interruptions.
func (w *World) mayBeRestless(b engine.Block) {
	if b.Reason.Cause != drover.ReasonInterrupted || slices.ContainsFunc(w.Disk.blocks, func(was engine.Block) bool { return was.Subject() == b.Subject() }) {
		return
	}
	n := 0
	for _, o := range w.interruptions {
		if b.Covers(o) {
			n++
		}
	}
	if n < 3 {
		w.fail("%s is left alone after %d interruptions", b.Subject(), n)
	}
}

// idleFor is how long an instance has been idle, by the controller's records.
func (c *controller) idleFor(in engine.Instance) time.Duration {
	was := c.w.Disk.instances[in.ID]
	if was.IdleSince == 0 {
		return 0
	}
	return c.now().Sub(was.IdleSince)
}
