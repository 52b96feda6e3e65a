package simulate

import (
	"slices"
	"time"

	"drover"
	"drover/internal/engine"
)

// meter measures a simulation under any policy, and changes prices as time passes.
type meter struct {
	market *market
	steps  int // of the market
	begin  drover.Time
	now    drover.Time
	last   drover.Time // when a job was last submitted, started or ended

	waits     []time.Duration // from submission to first start, of the jobs that have started
	done      int
	failed    int
	refused   int
	lost      int // attempts lost with their instances
	end       drover.Time
	used      float64 // vCPU-seconds of jobs that ended
	had       float64 // vCPU-seconds of paid instances
	instances int
	hires     []*hire // existing instances
	gone      []*hire // instances that are gone but still being paid
	billing   map[string]drover.Billing
	reserved  map[string][]engine.Reservation // by cloud
	peak      int
	bills     map[drover.Market]*bill
	parts     Parts
	pools     []Pool
	stuck     string // why the first unfinished job has not ended

	state  sample // the current state
	series series
}

// bill is the cost of one market's instances.
type bill struct {
	instances   int
	interrupted int
	time        time.Duration
	cost        drover.Money
}

func newMeter(in Input) *meter {
	begin := in.Begin()
	m := &meter{
		market: newMarket(in.Models, in.Offerings), begin: begin, now: begin, last: begin, end: begin, bills: map[drover.Market]*bill{}, series: series{width: time.Minute},
		billing: map[string]drover.Billing{}, reserved: map[string][]engine.Reservation{},
	}
	for _, c := range in.Settings.Clouds {
		if m.billing[c.Name] = c.Billing; len(c.Reserved) > 0 {
			m.reserved[c.Name] = c.Reserved
		}
	}
	return m
}

// at advances the time. Everything that is reported afterwards happens at this time.
func (m *meter) at(now drover.Time) {
	for next := m.begin.Add(priceStep * time.Duration(m.steps+1)); next <= now; next = next.Add(priceStep) {
		m.settle(next)
		m.pass(next)
		m.steps++
		m.market.step()
		m.reprice()
	}
	m.settle(now)
	m.pass(now)
}

// finish advances the time until the bills of all instances that are gone have ended.
func (m *meter) finish() {
	for _, h := range m.gone {
		m.at(max(m.now, h.until))
	}
}

func (m *meter) pass(now drover.Time) {
	if now > m.now {
		m.series.add(m.now.Sub(m.begin), now.Sub(m.begin), m.state)
		m.now = now
	}
}

func (m *meter) submitted(n int) {
	m.last = m.now
	m.state.queued += float64(n)
}

// waited records how long a job waited for its first start.
func (m *meter) waited(wait time.Duration) { m.waits = append(m.waits, wait) }

// began records that a job started.
func (m *meter) began(h *hire, need drover.Resources) {
	m.last = m.now
	m.state.queued--
	m.use(h, vcpus(need))
}

// ended records that a job ended.
func (m *meter) ended(h *hire, need drover.Resources, took time.Duration) {
	m.last, m.end = m.now, m.now
	m.use(h, -vcpus(need))
	m.used += vcpus(need) * took.Seconds()
	m.done++
}

// again records that a job waits again because it lost its instance.
func (m *meter) again(h *hire, need drover.Resources, ran time.Duration) {
	m.last = m.now
	m.use(h, -vcpus(need))
	h.lost(need, ran)
	m.state.queued++
	m.lost++
}

func (m *meter) use(h *hire, vcpus float64) {
	h.count(m.now)
	h.used += vcpus
	m.state.used += vcpus
}

// ready records that an instance takes work from now on.
func (m *meter) ready(h *hire) {
	h.count(m.now)
	h.ready = true
}

// refuse counts jobs that never start.
func (m *meter) refuse(n int) {
	m.state.queued -= float64(n)
	m.refused += n
}

func (m *meter) bill(o drover.Offering) *bill {
	b := m.bills[o.Market]
	if b == nil {
		b = &bill{}
		m.bills[o.Market] = b
	}
	return b
}

// rented starts the bill of an instance.
func (m *meter) rented(o drover.Offering) *hire {
	m.last = m.now
	h := &hire{offering: o, since: m.now, counted: m.now, tariff: drover.Tariff{Price: m.market.price(o)}, parts: &m.parts}
	m.hires = append(m.hires, h)
	m.instances++
	m.peak = max(m.peak, len(m.hires))
	m.bill(o).instances++
	m.state.instances++
	m.state.had += vcpus(o.Type.Resources)
	m.state.hourly += h.tariff.Price.USD()
	m.share(o)
	return h
}

// reprice gives running instances their current prices: to the oldest on-demand ones of a type those of its cloud's
// reservations, as the engine does, and to the others the market's.
func (m *meter) reprice() {
	left := map[string][]engine.Reservation{}
	for cloud, reserved := range m.reserved {
		left[cloud] = slices.Clone(reserved)
	}
	for _, h := range m.hires {
		if h.off {
			continue
		}
		price, some := m.market.price(h.offering), left[h.offering.Cloud]
		at := slices.IndexFunc(some, func(r engine.Reservation) bool { return r.Count > 0 && covers(r, h.offering) })
		if at >= 0 {
			some[at].Count--
			price = some[at].Price
		}
		m.charge(h, price)
	}
}

// share reprices the instances after their number has changed, if they share reservations.
func (m *meter) share(o drover.Offering) {
	if o.Market == drover.OnDemand && len(m.reserved[o.Cloud]) > 0 {
		m.reprice()
	}
}

// covers reports whether a reservation is for instances of an offering.
func covers(r engine.Reservation, o drover.Offering) bool {
	return o.Market == drover.OnDemand && o.Type.Name == r.Type
}

// charge makes an instance cost a price from now on.
func (m *meter) charge(h *hire, price drover.Money) {
	m.state.hourly += (price - h.tariff.Price).USD()
	h.count(m.now)
	h.tariff = h.tariff.Changed(price, m.now)
}

// pause makes an instance cost nothing, or its full price again.
func (m *meter) pause(h *hire, off bool) {
	price, up := m.market.price(h.offering), 1.0
	if h.off = off; off {
		price, up, h.stopped = 0, -1, m.now
	} else {
		h.rested += m.now.Sub(h.stopped)
	}
	m.state.instances += up
	m.state.had += up * vcpus(h.offering.Type.Resources)
	m.charge(h, price)
	m.share(h.offering)
}

// returned records that an instance is gone, and ends its bill according to its cloud's billing.
func (m *meter) returned(h *hire, interrupted bool) {
	m.last = m.now
	h.count(m.now)
	m.hires = slices.DeleteFunc(m.hires, func(o *hire) bool { return o == h })
	if interrupted {
		m.bill(h.offering).interrupted++
	}
	h.until = m.billing[h.offering.Cloud].PaidUntil(h.since, m.now)
	at := slices.IndexFunc(m.gone, func(o *hire) bool { return o.until > h.until })
	if at < 0 {
		at = len(m.gone)
	}
	m.gone = slices.Insert(m.gone, at, h)
	m.settle(m.now)
	m.share(h.offering)
}

// settle ends the bills that end by this time.
func (m *meter) settle(by drover.Time) {
	for len(m.gone) > 0 && m.gone[0].until <= by {
		h := m.gone[0]
		m.gone = m.gone[1:]
		m.pass(h.until)
		h.count(h.until)
		b, took := m.bill(h.offering), h.ran(h.until)
		b.time += took
		b.cost += h.tariff.Cost(h.since, h.since, h.until)
		has := h.offering.Type.Resources
		m.had += vcpus(has) * took.Seconds()
		if !h.off {
			m.state.instances--
			m.state.had -= vcpus(has)
		}
		m.state.hourly -= h.tariff.Price.USD()
	}
}

func vcpus(r drover.Resources) float64 { return float64(r.CPU) / 1000 }
