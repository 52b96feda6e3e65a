package pack

import (
	"cmp"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"drover"
)

// covers K2
func TestEveryPlanKeepsToItsProblem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		plan := Solve(p)
		checkServed(t, p, plan)
		checkLimits(t, p, plan)
		if diff := gocmp.Diff(plan, Solve(p)); diff != "" {
			t.Fatalf("a second solve differs:\n%s", diff)
		}
	})
}

// covers D1
func TestPlanCostsAtMostPlainPlansAndAtLeastItsBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		p.SpotShare = 0
		plan := Solve(p)
		if plan.Cost < plan.Bound {
			t.Fatalf("the plan costs %v, less than its bound %v", plan.Cost, plan.Bound)
		}
		for name, most := range map[string]int{"one instance for each job": 1, "first-fit": 1 << 30} {
			if cost, ok := firstFit(p, most); ok && plan.Cost > cost {
				t.Fatalf("the plan costs %v, but %s costs %v", plan.Cost, name, cost)
			}
		}
	})
}

func TestConsideringDisksNeverMakesAPlanDearer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		for i := range p.Demands {
			p.Demands[i].Shape.Need.Disk = drover.Bytes(rapid.SampledFrom([]int64{0, 1, 50, 800}).Draw(t, "disk")) * drover.GiB
		}
		for i := range p.Offerings {
			p.Offerings[i].DiskPrice = drover.Money(rapid.SampledFrom([]int64{0, 100_000, 3_000_000}).Draw(t, "disk price"))
			p.Offerings[i].Type.Resources.Disk = drover.Bytes(rapid.SampledFrom([]int64{0, 0, 900}).Draw(t, "has disk")) * drover.GiB
		}
		for i := range p.Clouds {
			p.Clouds[i].Disk = drover.Bytes(rapid.SampledFrom([]int64{0, 30}).Draw(t, "usual disk")) * drover.GiB
		}
		plan, blind := Solve(p), answer(p)
		checkServed(t, p, plan)
		checkLimits(t, p, plan)
		if was, now := jobsUnmet(blind), jobsUnmet(plan); now > was || now == was && paid(p, plan) > paid(p, blind) {
			t.Fatalf("the plan costs %v with %d jobs unmet, but one that ignores disks costs %v with %d", paid(p, plan), now, paid(p, blind), was)
		}
		if plan.Bound > paid(p, plan) {
			t.Fatalf("the plan costs %v, less than its bound %v", paid(p, plan), plan.Bound)
		}
	})
}

func TestFewStepsSufficeForAnAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		p.Steps = rapid.IntRange(0, 3000).Draw(t, "steps")
		plan := Solve(p)
		checkServed(t, p, plan)
		checkLimits(t, p, plan)
		for _, u := range plan.Unmet {
			if u.Code == drover.ReasonPlanning {
				t.Fatalf("%d jobs of demand %d have no place because steps ran out", u.Count, u.Demand)
			}
		}
		p.Steps = 0
		plain := Solve(p)
		unmet := func(plan drover.Plan, demand int) (n int) {
			for _, u := range plan.Unmet {
				if u.Demand == demand {
					n += u.Count
				}
			}
			return n
		}
		for d := range p.Demands {
			if was, now := unmet(plain, d), unmet(plan, d); now != was {
				if now > was {
					t.Fatalf("demand %d has %d jobs without a place, but %d in a plain plan", d, now, was)
				}
				break
			}
		}
	})
}

// TestAPlanCutOffKeepsItsGains cuts a plan off at one step after another. Its saving over a plain plan grows
// gradually and never shrinks, and every job with a place in the plain plan keeps one.
func TestAPlanCutOffKeepsItsGains(t *testing.T) {
	few := 120
	for name, change := range map[string]func(p *drover.Problem){
		"jobs of few shapes":                func(p *drover.Problem) { p.Demands = randomShapes(t, 20, 440, 250, 16_000, false).Demands },
		"jobs of many shapes":               func(*drover.Problem) {},
		"jobs that do not all have a place": func(p *drover.Problem) { p.Offerings, p.Limits = p.Offerings[:200], []drover.Limit{{Instances: &few}} },
		"jobs with different run times":     func(p *drover.Problem) { p.Demands[0].Time, p.Demands[1].Time = time.Minute, time.Minute },
	} {
		t.Run(name, func(t *testing.T) {
			p := randomShapes(t, 220, 440, 250, 16_000, false)
			change(&p)
			best := Solve(p)
			p.Steps = 0
			plain := Solve(p)
			for last := plain; p.Steps < 320_000; p.Steps += 8000 {
				plan := Solve(p)
				if jobsUnmet(plan) > jobsUnmet(plain) {
					t.Fatalf("after %d steps, %d jobs have no place, but %d in a plain plan", p.Steps, jobsUnmet(plan), jobsUnmet(plain))
				}
				saved, most := last.Cost-plan.Cost, plain.Cost-best.Cost
				if jobsUnmet(plain) == 0 && (saved > most/2 || saved < -most/10) {
					t.Fatalf("after %d steps the plan costs %v, after fewer steps %v; the plain plan costs %v, the best %v", p.Steps, plan.Cost, last.Cost, plain.Cost, best.Cost)
				}
				last = plan
			}
		})
	}
}

func TestAShareIsExceededOnlyForJobsThatFitNowhereElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		p.SpotShare = rapid.SampledFrom([]int{10_00, 25_00, 60_00}).Draw(t, "share")
		plan := Solve(p)
		has, n, total := map[spotKey]int64{}, map[spotKey]int{}, vcpus(p, plan)
		for _, r := range p.Rented {
			total += int64(r.CPU)
			if key := (spotKey{r.Cloud, r.Zone, r.Type}); r.Market == drover.Spot {
				has[key], n[key] = has[key]+int64(r.CPU), n[key]+1
			}
		}
		for _, b := range plan.Purchases {
			if o := p.Offerings[b.Candidates[0]]; o.Market == drover.Spot {
				key := spotKey{o.Cloud, o.Zone, o.Type.Name}
				has[key], n[key] = has[key]+int64(o.Type.Resources.CPU), n[key]+1
			}
		}
		for _, b := range plan.Purchases {
			o := p.Offerings[b.Candidates[0]]
			key := spotKey{o.Cloud, o.Zone, o.Type.Name}
			if o.Market == drover.Spot && n[key] > 1 && has[key]*drover.WholeShare > total*int64(p.SpotShare) && othersLeft(p, plan, key) {
				t.Fatalf("%s has %d of %d thousandths of vCPUs, but its new jobs could go elsewhere", o.Name(), has[key], total)
			}
		}
	})
}

// othersLeft reports whether all jobs on a spot offering's new instances could be on demand within the limits.
func othersLeft(p drover.Problem, plan drover.Plan, key spotKey) bool {
	for _, b := range plan.Purchases {
		if o := p.Offerings[b.Candidates[0]]; o.Market != drover.Spot || (spotKey{o.Cloud, o.Zone, o.Type.Name}) != key {
			continue
		}
		for _, l := range b.Loads {
			if !slices.ContainsFunc(p.Offerings, func(o drover.Offering) bool { return onDemandFor(p, plan, o, p.Demands[l.Demand]) }) {
				return false
			}
		}
	}
	return true
}

// onDemandFor reports whether an on-demand offering can hold jobs of a demand, and one more of it may be rented.
func onDemandFor(p drover.Problem, plan drover.Plan, o drover.Offering, d drover.Demand) bool {
	rest, _ := without(p, &drover.Plan{Purchases: plan.Purchases})
	room := rest.Room > 0
	for _, c := range rest.Clouds {
		room = room && (c.Cloud != o.Cloud || c.Room > 0)
	}
	for _, l := range rest.Limits {
		room = room && (!l.Covers(o) || (l.Instances == nil || *l.Instances > 0) && (l.CPU == nil || *l.CPU >= o.Type.Resources.CPU))
	}
	return room && o.Market == drover.OnDemand && d.Shape.Accepts(o) && d.Affords(o)
}

// checkServed checks that each job is unmet or on one instance that can hold it, and that every instance has a job.
func checkServed(t *rapid.T, p drover.Problem, plan drover.Plan) {
	served := map[int]int{}
	for _, u := range plan.Unmet {
		served[u.Demand] += u.Count
	}
	for _, b := range plan.Purchases {
		if len(b.Loads) == 0 {
			t.Fatalf("the plan rents an instance without jobs")
		}
		for _, l := range b.Loads {
			served[l.Demand] += l.Count
		}
		for _, c := range b.Candidates {
			checkHolds(t, p, c, b.Loads)
		}
	}
	for d, demand := range p.Demands {
		if served[d] != demand.Count {
			t.Fatalf("demand %d: %d jobs served or unmet, %d wanted", d, served[d], demand.Count)
		}
	}
}

func checkLimits(t *rapid.T, p drover.Problem, plan drover.Plan) {
	if len(plan.Purchases) > p.Room {
		t.Fatalf("%d instances rented with room for %d", len(plan.Purchases), p.Room)
	}
	limits := p.Limits
	for _, c := range p.Clouds {
		limits = append(limits[:len(limits):len(limits)], drover.Limit{Cloud: c.Cloud, Instances: &c.Room})
	}
	for _, l := range limits {
		n, cpus := 0, drover.MilliCPU(0)
		for _, b := range plan.Purchases {
			if o := p.Offerings[b.Candidates[0]]; l.Covers(o) {
				n++
				cpus += o.Type.Resources.CPU
			}
		}
		if l.Instances != nil && n > *l.Instances || l.CPU != nil && cpus > *l.CPU {
			t.Fatalf("%d instances with %v vCPUs exceed the limit %+v", n, cpus, l)
		}
	}
}

func checkHolds(t *rapid.T, p drover.Problem, offering int, loads []drover.Load) {
	o := p.Offerings[offering]
	var sum drover.Resources
	count := 0
	for _, l := range loads {
		shape := p.Demands[l.Demand].Shape
		if !shape.Accepts(o) {
			t.Fatalf("offering %d does not suit demand %d: %s", offering, l.Demand, shape.Misfit(o))
		}
		if most := p.Demands[l.Demand].Dearest; most > 0 && o.Price > most {
			t.Fatalf("offering %d is too expensive for demand %d", offering, l.Demand)
		}
		if most := p.Demands[l.Demand].VCPU; most > 0 && float64(o.Price)/float64(o.Type.Resources.CPU)*1000 > float64(most)*1.000001 {
			t.Fatalf("the vCPUs of offering %d are too expensive for demand %d", offering, l.Demand)
		}
		sum = sum.Plus(shape.Need, l.Count)
		count += l.Count
	}
	if o.Type.Resources.Disk == 0 {
		sum.Disk = 0
	}
	if !o.Type.Resources.Fits(sum) {
		t.Fatalf("offering %d cannot hold its loads: %s", offering, o.Type.Resources.Misfit(sum))
	}
	if p.UseOnce && count > 1 || p.JobsEach > 0 && count > p.JobsEach {
		t.Fatalf("an instance is given %d jobs", count)
	}
}

// firstFit is a simple model: each job goes to the first instance with room and fewer than most jobs, or else to a new
// one of the cheapest offering that holds it. It returns false if a limit keeps a job from a place.
func firstFit(p drover.Problem, most int) (cost drover.Money, ok bool) {
	type instance struct {
		offering, count int
		longest         time.Duration
		used            drover.Resources
	}
	var fleet []*instance
	for _, d := range p.Demands {
		for range d.Count {
			shape := d.Shape
			fits := func(in *instance) bool {
				o, sum := p.Offerings[in.offering], in.used.Plus(shape.Need, 1)
				sum.Disk, sum.Arch = 0, shape.Need.Arch
				return shape.Accepts(o) && d.Affords(o) && o.Type.Resources.Fits(sum) && in.count < most && (!p.UseOnce || in.count == 0) &&
					(p.JobsEach == 0 || in.count < p.JobsEach)
			}
			var at *instance
			for _, in := range fleet {
				if at == nil && fits(in) {
					at = in
				}
			}
			if at == nil {
				best := -1
				for i, o := range p.Offerings {
					if fits(&instance{offering: i}) && (best < 0 || lasting(p, o, d) < lasting(p, p.Offerings[best], d)) {
						best = i
					}
				}
				if best < 0 {
					return 0, false
				}
				at = &instance{offering: best}
				fleet = append(fleet, at)
			}
			at.count++
			at.used = at.used.Plus(shape.Need, 1)
			at.longest = max(at.longest, cmp.Or(d.Time, time.Hour))
		}
	}
	for _, in := range fleet {
		o := p.Offerings[in.offering]
		cost += o.Price.For(booting(p, o)+in.longest) + p.Fixed
	}
	return cost, len(fleet) <= p.Room && len(p.Limits) == 0 && !bound(p)
}

// lasting returns the cost of an instance of an offering while it boots and runs one job of the demand.
func lasting(p drover.Problem, o drover.Offering, d drover.Demand) drover.Money {
	return o.Price.For(booting(p, o) + cmp.Or(d.Time, time.Hour))
}

// booting returns how long an instance of an offering boots.
func booting(p drover.Problem, o drover.Offering) time.Duration {
	took := p.Boot
	for _, b := range p.Boots {
		if b.Cloud == o.Cloud && b.Type == "" {
			took = b.Time
		}
	}
	for _, b := range p.Boots {
		if b.Cloud == o.Cloud && b.Type == o.Type.Name {
			took = b.Time
		}
	}
	return took
}

// bound reports whether a cloud's room is small enough to matter.
func bound(p drover.Problem) bool {
	jobs := 0
	for _, d := range p.Demands {
		jobs += d.Count
	}
	for _, c := range p.Clouds {
		if c.Room < jobs {
			return true
		}
	}
	return p.Room < jobs
}

func drawProblem(t *rapid.T) drover.Problem {
	offerings := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) drover.Offering {
		o := offering(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "cloud"), rapid.SampledFrom([]string{"t", "u"}).Draw(t, "type"), rapid.Int64Range(1, 16).Draw(t, "cpus"),
			drover.Bytes(rapid.Int64Range(1, 64).Draw(t, "memory"))*drover.GiB, drover.Money(rapid.Int64Range(1, 1000).Draw(t, "price"))*1_000_000)
		o.Market = rapid.SampledFrom([]drover.Market{drover.OnDemand, drover.Spot}).Draw(t, "market")
		o.Type.Resources.GPUs = rapid.SampledFrom([]int{0, 0, 2}).Draw(t, "gpus")
		return o
	}), 0, 6).Draw(t, "offerings")
	demands := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) drover.Demand {
		d := demand(drover.MilliCPU(rapid.Int64Range(0, 9000).Draw(t, "cpu")), drover.Bytes(rapid.Int64Range(0, 40).Draw(t, "memory"))*drover.GiB,
			rapid.IntRange(1, 50).Draw(t, "count"))
		d.Shape.Spot = rapid.SampledFrom([]drover.SpotPolicy{drover.SpotPrefer, drover.SpotPrefer, drover.SpotNever, drover.SpotRequire}).Draw(t, "spot")
		d.Shape.Need.GPUs = rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "gpus")
		d.Dearest = rapid.SampledFrom([]drover.Money{0, 0, 0, 200_000_000}).Draw(t, "dearest")
		d.VCPU = rapid.SampledFrom([]drover.Money{0, 0, 0, 5_000_000, 50_000_000}).Draw(t, "vCPU")
		d.Time = rapid.SampledFrom([]time.Duration{0, 0, time.Minute, 5 * time.Hour}).Draw(t, "time")
		return d
	}), 0, 5).Draw(t, "demands")
	p := problem(offerings, rapid.SampledFrom([]int{0, 1, 12, 1000}).Draw(t, "room"), demands...)
	p.Steps = drover.PlanSteps
	p.UseOnce = rapid.SampledFrom([]bool{false, false, false, true}).Draw(t, "once")
	p.JobsEach = rapid.SampledFrom([]int{0, 0, 3}).Draw(t, "jobs each")
	p.Boot = rapid.SampledFrom([]time.Duration{0, time.Minute}).Draw(t, "boot")
	if rapid.Bool().Draw(t, "some boot longer") {
		p.Boots = []drover.Boot{{Cloud: "a", Time: 4 * time.Minute}, {Cloud: "a", Type: "t", Time: 20 * time.Minute}, {Cloud: "b", Type: "u", Time: 0}}
	}
	p.Fixed = drover.Money(rapid.SampledFrom([]int64{0, 5_000_000}).Draw(t, "fixed"))
	p.SpotShare = rapid.SampledFrom([]int{0, 0, 20_00, 60_00}).Draw(t, "spot share")
	for _, o := range offerings {
		one := drover.Rented{Cloud: o.Cloud, Zone: o.Zone, Type: o.Type.Name, Market: o.Market, CPU: o.Type.Resources.CPU}
		if p.SpotShare > 0 && rapid.Bool().Draw(t, "some there") {
			p.Rented = append(p.Rented, one)
		}
	}
	if rapid.Bool().Draw(t, "limited") {
		n, c := rapid.IntRange(0, 5).Draw(t, "instances"), drover.MilliCPU(rapid.Int64Range(0, 40_000).Draw(t, "vCPUs"))
		p.Limits = []drover.Limit{{Market: drover.Spot, Instances: &n}, {Type: "t", CPU: &c}}
	}
	return p
}
