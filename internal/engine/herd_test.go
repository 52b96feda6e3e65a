package engine

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"drover"
	"drover/internal/pack"
)

// herd is a fleet at its limit: every instance is as full as the jobs' shapes allow, unless the herd has room, and many
// more jobs of all shapes wait.
type herd struct {
	t     testing.TB
	e     *Engine
	dice  *rand.Rand
	now   drover.Time
	next  int64 // job
	lists int64 // the list call in flight
	took  []time.Duration
	gang  int // the gang size of the waiting jobs, 0 if they are not arrays
}

// size is the size of a herd. With room, that is about how many jobs each instance runs; otherwise as many as fit. With
// types, its cloud has this many more, and allows twice the instances.
type size struct{ instances, jobs, shapes, gang, room, types int }

func herdShape(n int) drover.Shape {
	dice := rand.New(rand.NewPCG(uint64(n), 7))
	cpu := drover.MilliCPU(250 * (1 + dice.IntN(16)*dice.IntN(4)))
	memory := drover.Bytes(cpu) * drover.MiB * drover.Bytes(1+dice.IntN(6))
	return drover.Shape{Need: drover.Resources{CPU: cpu, Memory: memory + drover.Bytes(n)*drover.MiB/16, Disk: drover.GiB}, Spot: drover.SpotPrefer}
}

// herdTypes are the types of the herd's cloud.
func herdTypes() (all []drover.Offering) {
	for i, cpu := range []drover.MilliCPU{16000, 32000, 48000, 64000} {
		name := fmt.Sprint("t", i)
		all = append(all, drover.Offering{
			Cloud: "c", Zone: "z", Market: drover.OnDemand, Price: drover.Money(cpu) * drover.Dollar / 20000,
			Type: drover.InstanceType{Name: name, ProviderType: name, Resources: drover.Resources{CPU: cpu, Memory: drover.Bytes(cpu) * drover.MiB * 4, Disk: 500 * drover.GiB, Arch: "amd64"}},
		})
	}
	return all
}

// wideTypes are n types of many sizes.
func wideTypes(n int) (all []drover.Offering) {
	dice := rand.New(rand.NewPCG(3, 3))
	for i := range n {
		cpu := drover.MilliCPU(2000 * (1 + dice.IntN(32)))
		name := fmt.Sprint("w", i)
		all = append(all, drover.Offering{
			Cloud: "c", Zone: "z", Market: drover.OnDemand, Price: drover.Money(cpu) * drover.Dollar / drover.Money(15000+dice.IntN(10000)),
			Type: drover.InstanceType{Name: name, ProviderType: name, Resources: drover.Resources{CPU: cpu, Memory: drover.Bytes(cpu) * drover.MiB * drover.Bytes(2+dice.IntN(6)), Disk: 500 * drover.GiB, Arch: "amd64"}},
		})
	}
	return all
}

func newHerd(t testing.TB, s size, settings Settings) *herd {
	h := &herd{t: t, dice: rand.New(rand.NewPCG(1, 1)), now: drover.Time(1e18), gang: s.gang}
	cloud := CloudSettings{Name: "c", MaxInstances: s.instances, MaxCreating: 10, ListInterval: time.Minute, OffersInterval: 100 * time.Hour}
	if len(settings.Clouds) > 0 {
		cloud.Limits = settings.Clouds[0].Limits
	}
	settings.Clouds = []CloudSettings{cloud}
	settings.Lifecycle = Lifecycle{
		BootTimeout: 10 * time.Minute, ProbeInterval: time.Hour, ProbeTimeout: time.Hour, IdleTimeout: time.Minute, TermTimeout: time.Minute, ShutdownTimeout: time.Minute,
		Sharing: settings.Lifecycle.Sharing,
	}
	state := State{
		Version: StateVersion, Fleet: "f", Nonce: "n", Now: h.now, Looking: h.now, LastInstance: int64(s.instances), Settings: settings,
		Clouds: []Cloud{{Catalogue: Catalogue{Name: "c", Known: true, Offerings: Sorted(herdTypes())}, Listed: h.now, NextList: h.now.Add(time.Minute), NextOffer: h.now.Add(100 * time.Hour)}},
	}
	if s.types > 0 {
		state.Clouds[0].Offerings = Sorted(append(herdTypes(), wideTypes(s.types)...))
		state.Settings.Clouds[0].MaxInstances *= 2
	}
	for _, b := range settings.Budgets {
		state.Spending = append(state.Spending, NewSpending(b, h.now))
	}
	h.fill(&state, s)
	for n := range s.jobs {
		state.Jobs = append(state.Jobs, h.waiting(herdShape(n%s.shapes)))
	}
	state.LastJob = h.next
	var err error
	if h.e, err = New(state); err != nil {
		t.Fatal(err)
	}
	h.hear(Ticked{})
	return h
}

// tighten leaves the herd's first budget a thousandth of a dollar.
func (h *herd) tighten() {
	settings := h.e.s.Settings
	settings.Budgets = slices.Clone(settings.Budgets)
	settings.Budgets[0].Hard.Hourly = h.e.ledger.Sum(h.e.ledger.Accounts()[0]) + drover.Dollar/1000
	h.hear(Configured{Settings: settings})
}

func (h *herd) job(shape drover.Shape) Job {
	h.next++
	return Job{Number: h.next, Name: fmt.Sprint("job-", h.next), User: "ada", Shape: shape, Priority: 1, Attempts: 3, Timeout: 30 * time.Minute, Queued: Ranges{{First: -1, Last: -1}}}
}

// waiting returns a waiting job: of two gangs, if the herd has gangs.
func (h *herd) waiting(shape drover.Shape) Job {
	j := h.job(shape)
	if h.gang > 0 {
		j.Gang, j.Array = h.gang, drover.Array{Last: 2*h.gang - 1, Set: true}
		j.Queued = Ranges{{First: 0, Last: j.Array.Last}}
	}
	return j
}

// fill adds instances to the State, and running jobs to each until none of a few shapes fits.
func (h *herd) fill(state *State, s size) {
	types := herdTypes()
	for i := range s.instances {
		o := types[h.dice.IntN(len(types))]
		in := Instance{
			ID: int64(i + 1), Name: fmt.Sprintf("f-n-%d", i+1), Cloud: "c", ProviderID: fmt.Sprint("p-", i+1), Zone: o.Zone, Type: o.Type, Resources: o.Type.Resources, Price: o.Price,
			Market: o.Market, State: drover.InstanceRunning, Idle: drover.IdleRun, Begun: true, Used: true, Seen: true,
			Asked: h.now.Add(-time.Hour), Created: h.now.Add(-time.Hour), Ready: h.now.Add(-time.Hour), HostKey: "k",
			Observed: Observed{Listed: true, Heard: true, Connected: true, Known: h.now},
		}
		free := in.Resources
		for range 3 * s.shapes {
			shape := herdShape(h.dice.IntN(s.shapes))
			if s.room > 0 && h.dice.IntN(s.room) == 0 {
				break
			}
			if !free.Fits(shape.Need) {
				continue
			}
			free = free.Minus(shape.Need, 1)
			j := h.job(shape)
			j.Queued, j.Tried = nil, []Element{{Index: -1, Number: 1}}
			id := drover.AttemptID{Job: drover.JobID{Number: j.Number, Index: -1}, Number: 1}
			state.Jobs = append(state.Jobs, j)
			state.Attempts = append(state.Attempts, Attempt{ID: id, Instance: in.ID, State: drover.AttemptRunning, Started: h.now.Add(-time.Duration(h.dice.IntN(1000)) * time.Second)})
		}
		state.Instances = append(state.Instances, in)
	}
}

// hear applies an event, and then the answers to its effects.
func (h *herd) hear(body Body) {
	for _, answer := range h.answers(h.decide(body)) {
		h.hear(answer)
	}
}

// decide measures the time of one decision.
func (h *herd) decide(body Body) Decision {
	h.now = h.now.Add(time.Millisecond)
	began := time.Now()
	d := h.e.Apply(Event{At: h.now, Body: body})
	h.took = append(h.took, time.Since(began))
	return d
}

func (h *herd) answers(d Decision) (all []Body) {
	for _, f := range d.Effects {
		switch {
		case f.Start != nil:
			all = append(all, Started{Effect: f.ID, Attempt: f.Start.Attempt})
		case f.Collect != nil:
			all = append(all, Collected{Effect: f.ID, Attempt: f.Collect.Attempt})
		case f.Create != nil:
			all = append(all, Created{Effect: f.ID, Instance: f.Create.Instance, ProviderID: fmt.Sprint("p-", f.Create.Instance), Taken: f.Create.Candidates[0]})
		case f.Connect != nil:
			if in := h.e.fleet.Member(f.Connect.Instance); in != nil && in.Ready == 0 {
				all = append(all, Connected{Effect: f.ID, Instance: in.ID, HostKey: "k"})
			} else {
				all = append(all, ConnectFailed{Effect: f.ID, Instance: f.Connect.Instance, Err: drover.Errorf(drover.KindUnreachable, "no answer")})
			}
		case f.ListInstances != nil:
			h.lists = f.ID
		case f.Solve != nil:
			all = append(all, Solved{Effect: f.ID, Plan: pack.Solve(*f.Solve)})
		}
	}
	return all
}

// submit adds a waiting job.
func (h *herd) submit() {
	h.hear(Submitted{Jobs: []Job{h.waiting(herdShape(int(h.next) % 997))}})
}

// finish ends a running job.
func (h *herd) finish() {
	for {
		in := h.e.fleet.All()[h.dice.IntN(h.e.fleet.Len())]
		if len(in.Load) > 0 && in.Load[0].State == drover.AttemptRunning {
			h.hear(Exited{Instance: in.ID, Attempt: in.Load[0].ID})
			return
		}
	}
}

// lose makes an instance vanish: its connection breaks, and two lists lack it.
func (h *herd) lose() {
	in := h.e.fleet.All()[h.dice.IntN(h.e.fleet.Len())]
	h.hear(Disconnected{Instance: in.ID, Heard: h.now, Text: "gone"})
	for range 3 {
		for h.lists == 0 {
			h.now = h.now.Add(2 * time.Second)
			h.hear(Ticked{})
		}
		ev := Listed{Effect: h.lists, Cloud: "c", Began: h.now}
		if h.lists = 0; in.Listed {
			ev.Removed = []string{in.ProviderID}
		}
		h.hear(ev)
	}
	if h.e.fleet.Member(in.ID) != nil {
		h.t.Fatalf("instance %s is still there: %+v", in.Name, in.Instance)
	}
}

// BenchmarkHerd measures decisions on the events of a large herd: a job is submitted; a job ends, its output is stored
// and another starts; an instance is lost, its jobs wait again and another instance is rented. The solver's time is
// excluded, since it runs elsewhere.
func BenchmarkHerd(b *testing.B) {
	if testing.Short() {
		b.Skip("takes a minute to set up")
	}
	full := size{instances: 10_000, jobs: 1_000_000, shapes: 1000}
	larger, gangs := full, full
	larger.instances, gangs.gang = 16_000, 10
	for _, kind := range []struct {
		name     string
		size     size
		settings Settings
	}{
		{"", full, Settings{}}, {"budgets/", full, features["budgets"]}, {"all/", full, features["all"]}, {"all-gangs/", gangs, features["all"]},
		{"all-1000/", size{instances: 1000, jobs: 10_000, shapes: 1000}, features["all"]}, {"all-4000/", size{instances: 4000, jobs: 10_000, shapes: 1000}, features["all"]},
		{"all-16000/", larger, features["all"]},
		{"room/", size{instances: 10_000, shapes: 100, room: 50}, Settings{}}, {"room-gangs/", size{instances: 1000, shapes: 100, gang: 20, room: 50}, Settings{}},
		{"room-poor/", size{instances: 10_000, jobs: 500, shapes: 100, room: 50}, features["poor"]},
		{"wide-poor/", size{instances: 1000, jobs: 1000, shapes: 1000, types: 1000}, features["poor"]},
		{"room-tight/", size{instances: 10_000, shapes: 100, room: 50}, features["tight"]},
	} {
		h := newHerd(b, kind.size, kind.settings)
		if kind.name == "room-tight/" {
			h.tighten()
			for range 100 {
				h.submit()
			}
		}
		for _, c := range []struct {
			name  string
			event func()
		}{{"submitted", h.submit}, {"finished", h.finish}, {"lost", h.lose}} {
			b.Run(kind.name+c.name, func(b *testing.B) {
				h.t = b
				h.took = nil
				for b.Loop() {
					c.event()
				}
				h.report(b)
			})
		}
	}
}

// budgeted returns settings that limit what the fleet and its user spend per hour and, at many times that, per day.
func budgeted(hourly drover.Money) Settings {
	return Settings{Budgets: []Budget{{Hard: Amounts{Hourly: hourly, Daily: 10 * hourly}}, {User: "ada", Hard: Amounts{Daily: 10 * hourly}}}}
}

// report reports how long decisions took and how much memory is in use.
func (h *herd) report(b *testing.B) {
	slices.Sort(h.took)
	at := func(permille int) float64 {
		return float64(h.took[min(len(h.took)-1, len(h.took)*permille/1000)].Nanoseconds()) / 1000
	}
	b.ReportMetric(at(500), "p50-µs")
	b.ReportMetric(at(990), "p99-µs")
	b.ReportMetric(at(1000), "max-µs")
	b.ReportMetric(0, "ns/op")
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.HeapAlloc>>20), "heap-MiB")
}
