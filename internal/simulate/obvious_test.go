package simulate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"drover"
	"drover/internal/engine"
	"drover/internal/trace"
)

// obvious models a simpler policy a second time, as simply as possible: it searches everything for the time of the next
// event, carries out that event, and then goes through all waiting jobs.
type obvious struct {
	in     Input
	policy Policy
	now    drover.Time
	jobs   []*plainJob
	fleet  []*plainInstance // all instances ever, oldest first
}

type plainJob struct {
	submit  drover.Time
	runtime time.Duration
	shape   drover.Shape
	known   bool
	on      *plainInstance
	ends    drover.Time // 0: it is not running
	done    bool
	waited  time.Duration // from submission to its first start; -1: it has not started
}

type plainInstance struct {
	offering drover.Offering
	accepted drover.Time
	ready    drover.Time
	taken    drover.Time // when its cloud reclaims it; 0: never
	empty    drover.Time // since when it has no job; 0: it has one
	leaves   drover.Time // when its destroy is accepted; 0: it was not requested
	gone     bool
	until    drover.Time
}

func (o *obvious) jobsOn(in *plainInstance) (list []*plainJob) {
	for _, j := range o.jobs {
		if j.on == in && !j.done {
			list = append(list, j)
		}
	}
	return list
}

// times returns when something may happen.
func (o *obvious) times() (list []drover.Time) {
	for _, j := range o.jobs {
		if !j.known {
			list = append(list, j.submit)
		}
		if j.ends != 0 && !j.done {
			list = append(list, j.ends)
		}
	}
	for _, in := range o.fleet {
		if in.gone {
			continue
		}
		if in.ready > o.now {
			list = append(list, in.ready)
		}
		list = append(list, in.taken, in.leaves)
		if in.empty != 0 && in.leaves == 0 {
			list = append(list, in.empty.Add(o.in.Settings.Lifecycle.IdleTimeout))
		}
	}
	return slices.DeleteFunc(list, func(at drover.Time) bool { return at == 0 })
}

func (o *obvious) run() (cost drover.Money, waits []time.Duration) {
	for times := o.times(); len(times) > 0; times = o.times() {
		o.now = slices.Min(times)
		o.happen()
		o.place()
	}
	for _, in := range o.fleet {
		cost += o.cost(in)
	}
	for _, j := range o.jobs {
		waits = append(waits, j.waited)
	}
	return cost, waits
}

func (o *obvious) happen() {
	for _, j := range o.jobs {
		if j.submit == o.now {
			j.known = true
		}
		if j.ends == o.now && !j.done {
			j.done = true
			if len(o.jobsOn(j.on)) == 0 {
				j.on.empty = o.now
				if o.policy == OnePerJob {
					j.on.leaves = o.now.Add(callTime)
				}
			}
		}
	}
	for _, in := range o.fleet {
		switch {
		case in.gone:
		case in.taken == o.now, in.leaves == o.now:
			in.gone, in.until = true, o.now
			for _, j := range o.jobsOn(in) {
				j.on, j.ends = nil, 0
			}
		case in.ready == o.now:
			for _, j := range o.jobsOn(in) {
				o.begin(j)
			}
		case in.empty != 0 && in.leaves == 0 && in.empty.Add(o.in.Settings.Lifecycle.IdleTimeout) == o.now:
			in.leaves = o.now.Add(callTime)
		}
	}
}

func (o *obvious) begin(j *plainJob) {
	j.ends = o.now.Add(j.runtime)
	if j.waited < 0 {
		j.waited = o.now.Sub(j.submit)
	}
}

func (o *obvious) place() {
	for _, j := range o.jobs {
		if !j.known || j.done || j.on != nil {
			continue
		}
		if in := o.find(j); in != nil {
			j.on, in.empty = in, 0
			if in.ready <= o.now {
				o.begin(j)
			}
		}
	}
}

// find returns the instance for a job: an existing one, or a new one if another is allowed.
func (o *obvious) find(j *plainJob) *plainInstance {
	there := 0
	for _, in := range o.fleet {
		if in.gone {
			continue
		}
		there++
		left := in.offering.Type.Resources
		left.Disk = drover.TiB
		for _, other := range o.jobsOn(in) {
			left = left.Minus(other.shape.Need, 1)
		}
		if o.policy == FirstFit && in.leaves == 0 && j.shape.Accepts(in.offering) && left.Fits(j.shape.Need) {
			return in
		}
	}
	if there == o.in.Settings.Clouds[0].MaxInstances {
		return nil
	}
	var best drover.Offering
	for _, c := range o.offerings(o.now) {
		if j.shape.Accepts(c) && (best.Price == 0 || c.Price < best.Price) {
			best = c
		}
	}
	n := len(o.fleet) + 1
	accepted := o.now.Add(callTime)
	in := &plainInstance{offering: best, accepted: accepted, ready: accepted.Add(o.in.Models.boot(n))}
	if life, ends := o.in.Models.life(n); ends && best.Market == drover.Spot {
		in.taken = accepted.Add(life)
	}
	o.fleet = append(o.fleet, in)
	return in
}

// offerings returns the offerings at a time.
func (o *obvious) offerings(at drover.Time) []drover.Offering {
	k := newMarket(o.in.Models, o.in.Offerings)
	for next := o.in.Begin().Add(priceStep); next <= at; next = next.Add(priceStep) {
		k.step()
	}
	return k.offerings
}

// cost returns an instance's bill, adding up periods of equal price.
func (o *obvious) cost(in *plainInstance) (sum drover.Money) {
	price := func(at drover.Time) drover.Money {
		for _, c := range o.offerings(at) {
			if placeOf(c) == placeOf(in.offering) {
				return c.Price
			}
		}
		panic("the offering does not exist")
	}
	from, until := in.accepted, in.until
	if period := o.in.Settings.Clouds[0].Billing.Period; period > 0 {
		for until = in.accepted; until <= in.until; {
			until = until.Add(period)
		}
	}
	until = max(until, in.accepted.Add(time.Minute)) // the minimum is always billed
	for from < until {
		step := from.Sub(o.in.Begin())/priceStep + 1
		to := min(until, o.in.Begin().Add(step*priceStep))
		for to < until && (to >= in.until || price(to) == price(from)) { // join periods of equal price; after its end, an instance keeps its last price
			to = min(until, to.Add(priceStep))
		}
		sum += price(from).For(to.Sub(from))
		from = to
	}
	return sum
}

// input returns a small workload in which no two events coincide, except jobs submitted together. With a limit, it has
// no arrays, since jobs that end at the same time would free room in no particular order.
func input(seed uint64, limit int) Input {
	dice := rand.New(rand.NewPCG(seed, 9))
	m := Models{Seed: seed, Boot: 45 * time.Second, Interrupted: 0.2}
	var list []trace.Price
	for n := range 5 {
		cpu := drover.MilliCPU(1000 << n)
		list = append(list, trace.Price{
			Type:     drover.InstanceType{Name: fmt.Sprintf("t%d", n), Resources: drover.Resources{CPU: cpu, Memory: drover.Bytes(cpu) * 4 * drover.MiB}},
			OnDemand: drover.Money(cpu) * drover.Dollar / 20_000,
		})
	}
	t := &trace.Trace{Name: "small"}
	at := time.Duration(0)
	for range 60 {
		at += time.Duration(dice.IntN(2)) * time.Duration(dice.Int64N(int64(40*time.Minute)))
		count := 1 + dice.IntN(3)*dice.IntN(2)
		if limit > 0 {
			count = 1
		}
		t.Jobs = append(t.Jobs, trace.Job{
			Submit: at, Runtime: time.Duration(dice.Int64N(int64(time.Hour))), Count: count,
			Need: drover.Resources{CPU: drover.MilliCPU(500 * (1 + dice.IntN(20)))}, Spot: []drover.SpotPolicy{"", drover.SpotNever}[dice.IntN(2)],
		})
	}
	return Input{
		Trace: t, Models: m, MemoryPerCPU: 2 * drover.GiB, Offerings: m.Offerings("c", []string{"a", "b"}, list),
		Settings: engine.Settings{
			Clouds: []engine.CloudSettings{{Name: "c", MaxInstances: limit, MaxCreating: 10, ListInterval: time.Minute, Billing: drover.Billing{Least: LeastBilled}}},
			Lifecycle: engine.Lifecycle{
				BootTimeout: 10 * time.Minute, ProbeInterval: 10 * time.Second, ProbeTimeout: 2 * time.Minute, IdleTimeout: time.Minute,
				TermTimeout: 2 * time.Minute, ShutdownTimeout: 10 * time.Second,
			},
		},
	}
}

func TestSimplerPoliciesMatchAnObviousModel(t *testing.T) {
	interrupted := 0
	for seed := range uint64(6) {
		for _, limit := range []int{0, 2} {
			for _, p := range []Policy{OnePerJob, FirstFit} {
				in := input(seed, limit)
				in.Settings.Clouds[0].Billing.Period = time.Duration(seed%2) * 20 * time.Minute
				r, err := Run(t.Context(), in, p)
				if err != nil {
					t.Fatal(err)
				}
				o := &obvious{in: in, policy: p}
				if limit == 0 {
					o.in.Settings.Clouds[0].MaxInstances = 1000
				}
				for _, j := range in.Trace.Jobs {
					for range j.Count {
						o.jobs = append(o.jobs, &plainJob{submit: in.Begin().Add(j.Submit), runtime: j.Runtime, shape: in.shape(j), waited: -1})
					}
				}
				cost, waits := o.run()
				if want := Summarize(waits); r.Money != cost || r.Wait != want || r.Instances != len(o.fleet) || r.Done != r.Jobs {
					t.Errorf("seed %d, at most %d, %s: %v with %d instances and waits %+v, %d of %d done; the obvious model has %v, %d, %+v",
						seed, limit, p, r.Money, r.Instances, r.Wait, r.Done, r.Jobs, cost, len(o.fleet), want)
				}
				interrupted += r.Lost
			}
		}
	}
	if interrupted == 0 {
		t.Error("nothing was interrupted, so interruptions were not compared")
	}
}
