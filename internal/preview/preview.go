// Package preview shows what a batch would rent and cost before anything is rented. The engine itself decides, on what
// the clouds offer now.
package preview

import (
	"cmp"
	"slices"
	"time"

	"drover"
	"drover/internal/engine"
	"drover/internal/pack"
)

// Preview is a fleet as the engine would start it: everything rented at once is planned, nothing is created.
type Preview struct {
	engine    *engine.Engine
	settings  engine.Settings
	offerings []drover.Offering
	may       []engine.OfferState // what may be rented at the start
	problems  []drover.Problem
	plans     []drover.Plan
	refused   string // why some jobs were given up at once, if any were
}

// New lets the engine decide about a batch in an empty fleet with the clouds' offerings, until it waits only for
// instances. So the preview follows every limit and setting of the configuration.
func New(s engine.Settings, all []drover.Offering, b drover.Batch) (*Preview, error) {
	s.Pools = nil // pools rent nothing for the batch
	e, err := engine.New(engine.State{Version: engine.StateVersion, Fleet: "plan", Nonce: "plan"})
	if err != nil {
		return nil, err
	}
	f := &Preview{engine: e, settings: s, offerings: all}
	f.apply(engine.Configured{Settings: s})
	f.may = slices.DeleteFunc(e.Offers(), func(o engine.OfferState) bool { return o.Why != nil && o.Why.Code == drover.ReasonLimit })
	f.apply(engine.Submitted{Jobs: engineJobs(b)})
	return f, nil
}

// Offers returns what may be rented, what may not, and why.
func (f *Preview) Offers() []engine.OfferState { return f.engine.Offers() }

// apply lets the engine decide, and answers its requests for catalogues and plans.
func (f *Preview) apply(body engine.Body) {
	d := f.engine.Apply(engine.Event{At: drover.TimeOf(time.Now()), Body: body})
	for _, w := range d.Writes {
		if w.Ended != nil {
			f.refused = w.Ended.Reason.Text
		}
	}
	for _, effect := range d.Effects {
		switch {
		case effect.ListOfferings != nil:
			own := slices.DeleteFunc(slices.Clone(f.offerings), func(o drover.Offering) bool { return o.Cloud != effect.ListOfferings.Cloud })
			f.apply(engine.Offered{Effect: effect.ID, Cloud: effect.ListOfferings.Cloud, Offerings: own})
		case effect.Solve != nil:
			plan := pack.Solve(*effect.Solve)
			f.problems, f.plans = append(f.problems, *effect.Solve), append(f.plans, plan)
			f.apply(engine.Solved{Effect: effect.ID, Plan: plan})
		}
	}
}

// engineJobs returns the jobs of a batch as the engine gets them.
func engineJobs(b drover.Batch) (jobs []engine.Job) {
	number := map[string]int64{}
	for i, spec := range b.Jobs {
		number[spec.Name] = int64(i + 1)
	}
	for i, spec := range b.Jobs {
		j := engine.NewJob(int64(i+1), b.User, spec)
		for _, name := range spec.After {
			j.After = append(j.After, number[name])
		}
		for _, name := range spec.AfterAny {
			j.AfterAny = append(j.AfterAny, number[name])
		}
		jobs = append(jobs, j)
	}
	return jobs
}

// Report returns the preview of a batch.
func (f *Preview) Report(b drover.Batch) Report {
	r := Report{Batch: b.Name, Rent: []Rental{}}
	for _, j := range b.Jobs {
		if len(j.After)+len(j.AfterAny) > 0 {
			r.Later += j.Array.Size()
		} else {
			r.Ready += j.Array.Size()
		}
	}
	r.Waiting = r.Ready
	var hourly, most drover.Money
	now := f.Offers() // at reserved prices, while reservations are left
	for _, in := range f.engine.Instances() {
		p := f.kind(in, now)
		at := slices.IndexFunc(r.Rent, func(o Rental) bool { return o.same(p) })
		if at < 0 {
			at = len(r.Rent)
			r.Rent = append(r.Rent, p)
		}
		jobs, longest := boundJobs(in)
		created := in.Asked
		ends := f.billing(in.Cloud).PaidUntil(created, created.Add(f.settings.Lifecycle.BootTimeout+longest))
		r.Rent[at].Instances++
		r.Rent[at].Jobs += jobs
		hourly += in.Price
		r.Waiting -= jobs
		most += dearest(in).For(ends.Sub(created))
	}
	r.Hourly, r.Most, r.Above = hourly.USD(), most.USD(), f.above(r.Waiting)
	if r.Waiting > 0 {
		r.Why = f.why()
	}
	return r
}

// boundJobs returns how many jobs an instance is rented for, and how long the longest may take.
func boundJobs(in engine.Instance) (n int, longest time.Duration) {
	for _, b := range in.Reservations {
		n += b.Count
		longest = max(longest, cmp.Or(b.Group.Timeout, time.Hour))
	}
	return n, longest
}

// billing returns how a cloud rounds the time that it bills.
func (f *Preview) billing(cloud string) drover.Billing {
	for _, c := range f.settings.Clouds {
		if c.Name == cloud {
			return c.Billing
		}
	}
	return drover.Billing{}
}

// dearest returns the highest price of an instance, which its cloud may create from any of its candidates.
func dearest(in engine.Instance) drover.Money {
	price := in.Price
	for _, o := range in.Candidates {
		price = max(price, o.Price)
	}
	return price
}

// why returns why jobs without a place wait.
func (f *Preview) why() string {
	for _, w := range f.engine.Status().Waiting {
		if w.Reason.Code != drover.ReasonBooting && w.Reason.Code != drover.ReasonDependency {
			return w.Reason.Text
		}
	}
	return f.refused
}

func (p Rental) same(o Rental) bool {
	return p.Cloud == o.Cloud && p.Zone == o.Zone && p.Type == o.Type && p.Market == o.Market && p.Price == o.Price
}

// kind returns what an instance is, and its alternative among these offers.
func (f *Preview) kind(in engine.Instance, offers []engine.OfferState) Rental {
	p := Rental{Cloud: in.Cloud, Zone: in.Zone, Type: in.Type.Name, Market: in.Market, Price: in.Price.USD()}
	for _, s := range offers {
		o := s.Offering
		if o.Type.Resources.Disk == 0 && !o.Reserved {
			o = o.WithVolume(boundDisk(in) - f.problems[0].UsualDisk(o.Cloud))
		}
		another := o.Cloud != in.Cloud || o.Type.Name != in.Type.Name || o.Market != in.Market
		cheaper := p.RunnerUp == nil || o.Price.USD() < p.RunnerUp.Price
		if another && cheaper && holdsBound(o, in) && f.rentable(o) {
			p.RunnerUp = &Alternative{Cloud: o.Cloud, Type: o.Type.Name, Market: o.Market, Price: o.Price.USD()}
		}
	}
	return p
}

// boundDisk returns the disk of all jobs that an instance is rented for.
func boundDisk(in engine.Instance) (sum drover.Bytes) {
	for _, b := range in.Reservations {
		sum += b.Group.Shape.Need.Disk * drover.Bytes(b.Count)
	}
	return sum
}

// rentable reports whether an offering may be rented at the start.
func (f *Preview) rentable(o drover.Offering) bool {
	return slices.ContainsFunc(f.may, func(s engine.OfferState) bool { return s.Name() == o.Name() })
}

// holdsBound reports whether an offering could hold all jobs that an instance is rented for.
func holdsBound(o drover.Offering, in engine.Instance) bool {
	free := o.Type.Resources
	if free.Disk == 0 {
		free.Disk = boundDisk(in) // its volume gets the size that they need
	}
	for _, b := range in.Reservations {
		if !b.Group.Shape.Accepts(o) || free.Times(b.Group.Shape.Need, b.Count) < b.Count {
			return false
		}
		free = free.Minus(b.Group.Shape.Need, b.Count)
	}
	return true
}
