package pool

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"drover"
)

const now = drover.Time(1e18)

func place(zone string) Place { return Place{"c", zone} }

// some returns n ready instances in a zone, numbered from first, each requested a minute after the one before.
func some(first int64, n int, zone string) (all []View) {
	for i := range int64(n) {
		all = append(all, View{Place: place(zone), ID: first + i, Template: "new", Asked: now.Add(time.Duration(i) * time.Minute), Ready: true})
	}
	return all
}

func spec(change func(*Spec)) Spec {
	s := Spec{Name: "p", Kind: drover.PoolSize, Clouds: []string{"c"}, Spread: drover.SpreadBalanced, Template: "new", MaxUnavailable: 1, MaxSurge: 1}
	if change != nil {
		change(&s)
	}
	return s
}

func open(names ...string) (all []Zone) {
	for _, name := range names {
		all = append(all, Zone{Place: place(name), Open: true})
	}
	return all
}

func with(views []View, change func(*View)) []View {
	for i := range views {
		change(&views[i])
	}
	return views
}

// covers P1 P2 P3 K3
func TestReconcile(t *testing.T) {
	for name, c := range map[string]struct {
		in       Input
		demands  []string
		releases []int64
		short    int
	}{
		"an empty pool is spread over its zones": {in: Input{Count: 4, Zones: open("a", "b", "c")}, demands: []string{"a", "b", "c", "a"}},
		"a new instance goes to the zone with the fewest": {
			in: Input{Count: 6, Zones: open("a", "b"), Views: slices.Concat(some(1, 3, "a"), some(4, 1, "b"))}, demands: []string{"b", "b"},
		},
		"the cheapest of equally full zones comes first": {
			in: Input{Count: 1, Zones: []Zone{{Place: place("a"), Open: true, Price: 2}, {Place: place("b"), Open: true, Price: 1}}}, demands: []string{"b"},
		},
		"the other zones make up for an exhausted one": {
			in: Input{Count: 4, Zones: []Zone{{Place: place("a"), Open: true, Until: now + 1}, {Place: place("b"), Open: true}}}, demands: []string{"b", "b", "b", "b"},
		},
		"nothing is demanded if no zone is open": {in: Input{Count: 2, Zones: []Zone{{Place: place("a")}}}, short: 2},
		"surplus goes from the zone with the most, youngest first": {
			in: Input{Count: 3, Zones: open("a", "b"), Views: slices.Concat(some(1, 3, "a"), some(4, 2, "b"))}, releases: []int64{3, 5},
		},
		"unready instances go first, then idle ones, then busy ones": {
			in: Input{Count: 1, Views: []View{
				{Place: place("a"), ID: 1, Ready: true}, {Place: place("a"), ID: 2, Ready: true, Busy: 1}, {Place: place("a"), ID: 3},
			}}, releases: []int64{3, 1},
		},
		"the oldest template goes first": {
			in: Input{Count: 1, Spec: spec(nil), Views: slices.Concat(with(some(1, 1, "a"), func(v *View) { v.Template = "old" }), some(2, 1, "a"))}, releases: []int64{1},
		},
		"held instances count and stay": {
			in: Input{Count: 1, Views: with(some(1, 3, "a"), func(v *View) { v.Held = v.ID > 1 })}, releases: []int64{1},
		},
		"a leaving instance does not count": {in: Input{Count: 2, Zones: open("a"), Views: with(some(1, 2, "a"), func(v *View) { v.Going = v.ID == 1 })}, demands: []string{"a"}},
		"a spare pool has its number beyond those in use": {
			in: Input{Spec: spec(func(s *Spec) { s.Kind = drover.PoolSpare }), Count: 2, Zones: open("a"), Views: with(some(1, 2, "a"), func(v *View) { v.Busy = 1 })}, demands: []string{"a", "a"},
		},
		"a spare pool has no more than max": {
			in: Input{Spec: spec(func(s *Spec) { s.Kind, s.Max = drover.PoolSpare, 3 }), Count: 2, Zones: open("a"), Views: with(some(1, 2, "a"), func(v *View) { v.Busy = 1 })}, demands: []string{"a"},
		},
		"a spare pool keeps its surplus for a while": {
			in: Input{Spec: spec(func(s *Spec) { s.Kind = drover.PoolSpare }), Count: 1, Views: with(some(1, 3, "a"), func(v *View) { v.Keep = now + drover.Time(v.ID-2) })}, releases: []int64{2, 1},
		},
		"balance is not restored by destroying instances": {in: Input{Count: 4, Zones: open("a", "b"), Views: some(1, 4, "a")}},
		"with rebalance, the new instance comes first": {
			in: Input{Spec: spec(func(s *Spec) { s.Rebalance = true }), Count: 4, Zones: open("a", "b"), Views: some(1, 4, "a")}, demands: []string{"b"},
		},
		"with rebalance, the old instance waits for the new one": {
			in: Input{Spec: spec(func(s *Spec) { s.Rebalance = true }), Count: 4, Zones: open("a", "b"), Views: append(some(1, 4, "a"), View{Place: place("b"), ID: 5})},
		},
		"with rebalance, the old instance goes once the new one is ready": {
			in: Input{Spec: spec(func(s *Spec) { s.Rebalance = true }), Count: 4, Zones: open("a", "b"), Views: slices.Concat(some(1, 4, "a"), some(5, 1, "b"))}, releases: []int64{4},
		},
		"a changed template replaces instances in steps": {
			in: Input{Count: 3, Zones: open("a"), Views: with(some(1, 3, "a"), func(v *View) { v.Template, v.Busy = "old", int(v.ID)%2 })}, demands: []string{"a", "a"}, releases: []int64{2},
		},
		"without surge, one goes before another is demanded": {
			in: Input{Spec: spec(func(s *Spec) { s.MaxSurge = 0 }), Count: 3, Zones: open("a"), Views: with(some(1, 3, "a"), func(v *View) { v.Template = "old" })}, demands: []string{"a"}, releases: []int64{3},
		},
		"without unavailability, none goes before another is ready": {
			in: Input{Spec: spec(func(s *Spec) { s.MaxUnavailable = 0 }), Count: 3, Zones: open("a"), Views: with(some(1, 3, "a"), func(v *View) { v.Template = "old" })}, demands: []string{"a"},
		},
		"a percentage is of the wanted number": {
			in: Input{Spec: spec(func(s *Spec) {
				s.MaxUnavailable, s.MaxSurge, s.UnavailablePart, s.SurgePart = 0, 0, 20_00, 10_00
			}), Count: 10, Zones: open("a"), Views: with(some(1, 10, "a"), func(v *View) { v.Template = "old" })}, demands: []string{"a", "a", "a"}, releases: []int64{10, 9},
		},
		"a percentage is at least one instance": {
			in: Input{Spec: spec(func(s *Spec) { s.MaxUnavailable, s.MaxSurge, s.UnavailablePart = 0, 0, 20_00 }), Count: 3, Zones: open("a"), Views: with(some(1, 3, "a"), func(v *View) { v.Template = "old" })}, demands: []string{"a"}, releases: []int64{3},
		},
		"replacement stops when it fails": {in: Input{Stuck: true, Count: 3, Zones: open("a"), Views: with(some(1, 3, "a"), func(v *View) { v.Template = "old" })}},
		"a failed replacement goes, not a serving instance": {
			in: Input{Stuck: true, Count: 3, Zones: open("a"), Views: append(with(some(1, 3, "a"), func(v *View) { v.Template = "old" }), View{Place: place("b"), ID: 9, Template: "new"})}, releases: []int64{9},
		},
		"an instance that is too old is replaced": {
			in: Input{Spec: spec(func(s *Spec) { s.MaxAge = time.Hour }), Count: 2, Zones: open("a"), Views: with(some(1, 2, "a"), func(v *View) {
				if v.ID == 1 {
					v.Asked = now.Add(-time.Hour)
				}
			})}, demands: []string{"a"}, releases: []int64{1},
		},
		"instances in a removed zone are replaced at once, and go as others become ready": {
			in: Input{Spec: spec(func(s *Spec) { s.Zones = []string{"b"} }), Count: 3, Zones: open("b"), Views: slices.Concat(some(1, 3, "a"))}, demands: []string{"b", "b", "b"}, releases: []int64{1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.in.Spec.Name == "" {
				c.in.Spec = spec(nil)
			}
			c.in.Now = now
			got := Reconcile(c.in)
			var demands []string
			var releases []int64
			for _, d := range got.Demands {
				demands = append(demands, d.Zone)
			}
			for _, r := range got.Releases {
				releases = append(releases, r.ID)
			}
			if diff := gocmp.Diff(c.demands, demands); diff != "" {
				t.Errorf("demands (-want +got):\n%s", diff)
			}
			if diff := gocmp.Diff(c.releases, releases); diff != "" {
				t.Errorf("releases (-want +got):\n%s", diff)
			}
			if got.Short != c.short {
				t.Errorf("%d instances are short, want %d", got.Short, c.short)
			}
		})
	}
}

// world carries out plans; its instances become ready, vanish and become busy at random.
type world struct {
	t    *testing.T
	dice *rand.Rand
	in   Input
	last int64
}

func newWorld(t *testing.T, seed uint64) *world {
	dice := rand.New(rand.NewPCG(seed, 1))
	w := &world{t: t, dice: dice, in: Input{Now: now, Count: dice.IntN(20), Zones: open("a", "b", "c")}}
	w.in.Spec = spec(func(s *Spec) {
		s.Kind = []drover.PoolKind{drover.PoolSize, drover.PoolFloor, drover.PoolSpare}[dice.IntN(3)]
		s.MaxUnavailable, s.MaxSurge, s.Rebalance = dice.IntN(3), dice.IntN(3), dice.IntN(2) == 0
		if dice.IntN(4) == 0 {
			s.Spread = drover.SpreadCheapest
		}
	})
	return w
}

func (w *world) counts() (all map[Place]int, counted, ready int) {
	all = map[Place]int{}
	for _, v := range w.in.Views {
		if !v.Going && (v.Held || w.in.Spec.Allows(v.Place)) {
			all[v.Place]++
			counted++
		}
		if !v.Going && v.Ready {
			ready++
		}
	}
	return all, counted, ready
}

// staying returns how many instances of each place count and are not to be replaced.
func (w *world) staying() map[Place]int {
	all := map[Place]int{}
	for _, v := range w.in.Views {
		if !v.Going && (v.Held || w.in.Spec.Allows(v.Place)) && (v.Held || w.in.Stuck || v.Template == w.in.Spec.Template && !v.Useless) {
			all[v.Place]++
		}
	}
	return all
}

// settle carries out plans until one asks for nothing.
func (w *world) settle() (p Plan) {
	for range 5 {
		if p = w.step(); len(p.Demands)+len(p.Releases) == 0 {
			return p
		}
	}
	w.t.Fatalf("the plans do not settle: %+v", p)
	return p
}

// step reconciles, checks the plan and carries it out.
func (w *world) step() Plan {
	p := Reconcile(w.in)
	balanced := w.in.Spec.Spread == drover.SpreadBalanced
	for _, r := range p.Releases {
		at := slices.IndexFunc(w.in.Views, func(v View) bool { return v.ID == r.ID })
		v := &w.in.Views[at]
		zones, _, ready := w.counts()
		for _, o := range w.in.Views {
			if balanced && r.Why == Surplus && !w.in.Stuck && !v.Taken && !o.Going && !o.Held && o.Keep <= w.in.Now && (o.Busy == 0 || w.in.Spec.Kind != drover.PoolSpare) && zones[o.Place] > zones[v.Place] && w.in.Spec.Allows(o.Place) {
				w.t.Fatalf("a surplus instance goes from %v, but %v has more", v.Place, o.Place)
			}
		}
		if v.Held || v.Going {
			w.t.Fatalf("%+v is released", v)
		}
		if v.Ready && r.Why != Surplus && ready-1 < p.Wanted-w.in.Spec.MaxUnavailable {
			w.t.Fatalf("%+v is replaced, but only %d of %d are ready", v, ready, p.Wanted)
		}
		v.Going = true
	}
	for _, d := range p.Demands {
		if balanced {
			zones := w.staying()
			for _, z := range w.in.Zones {
				if z.Place == d.Place && (!z.Open || z.Until > w.in.Now) || z.Open && w.in.Spec.Allows(z.Place) && z.Until <= w.in.Now && zones[z.Place] < zones[d.Place] {
					w.t.Fatalf("an instance is demanded in %v, with %v in %+v", d.Place, zones, w.in.Zones)
				}
			}
		} else {
			at := slices.IndexFunc(w.in.Zones, func(z Zone) bool { return z.Open && w.in.Spec.Allows(z.Place) })
			d.Place = w.in.Zones[at].Place
		}
		w.last++
		w.in.Views = append(w.in.Views, View{Place: d.Place, ID: w.last, Template: w.in.Spec.Template, Asked: w.in.Now})
	}
	if _, counted, _ := w.counts(); counted > p.Wanted+max(1, w.in.Spec.MaxSurge) && w.idleSurplus() {
		w.t.Fatalf("%d instances count, of %d wanted", counted, p.Wanted)
	}
	return p
}

// idleSurplus reports whether any instance may be released.
func (w *world) idleSurplus() bool {
	return slices.ContainsFunc(w.in.Views, func(v View) bool { return !v.Going && !v.Held && v.Keep <= w.in.Now })
}

// happen makes random changes.
func (w *world) happen() {
	w.in.Now += drover.Time(w.dice.IntN(int(time.Minute)))
	w.in.Views = slices.DeleteFunc(w.in.Views, func(v View) bool { return v.Going && w.dice.IntN(2) == 0 || w.dice.IntN(60) == 0 })
	for i := range w.in.Views {
		v := &w.in.Views[i]
		v.Ready = v.Ready || w.dice.IntN(3) == 0
		if v.Ready && w.in.Spec.Kind == drover.PoolSpare {
			v.Busy = w.dice.IntN(2)
			v.Taken = v.Taken || v.Busy > 0 && w.dice.IntN(2) == 0
		}
		v.Useless = v.Useless || w.dice.IntN(100) == 0
		if w.dice.IntN(40) == 0 {
			v.Held = !v.Held
		}
	}
	switch z := &w.in.Zones[w.dice.IntN(3)]; w.dice.IntN(12) {
	case 0:
		z.Until = w.in.Now.Add(5 * time.Minute)
	case 1:
		z.Open = !z.Open
	case 2:
		w.in.Count = w.dice.IntN(20)
	case 3:
		w.in.Spec.Template += "'"
	case 4:
		w.in.Spec.Zones = [][]string{nil, {"a", "b"}, {"c/b", "c"}}[w.dice.IntN(3)]
	case 5:
		w.in.Stuck = !w.in.Stuck
	}
}

// covers P2 P3
func TestWhateverHappensAPoolComesToItsNumber(t *testing.T) {
	for seed := range uint64(400) {
		w := newWorld(t, seed)
		for range 100 {
			w.settle()
			w.happen()
		}
		w.in.Stuck, w.in.Spec.Zones, w.in.Zones = false, nil, open("a", "b", "c")
		for i := range w.in.Views {
			w.in.Views[i].Held = false
		}
		var p Plan
		for range 300 {
			if p = w.settle(); p.Settled {
				break
			}
			w.in.Now = w.in.Now.Add(time.Minute)
			w.in.Views = slices.DeleteFunc(w.in.Views, func(v View) bool { return v.Going })
			for i := range w.in.Views {
				w.in.Views[i].Ready = true
			}
		}
		zones, counted, _ := w.counts()
		if !p.Settled || counted != p.Wanted {
			t.Fatalf("seed %d: %d instances count, of %d wanted: %+v", seed, counted, p.Wanted, p)
		}
		if most, least := max(zones[place("a")], zones[place("b")], zones[place("c")]), min(zones[place("a")], zones[place("b")], zones[place("c")]); w.in.Spec.Rebalance && w.in.Spec.Kind != drover.PoolSpare && w.in.Spec.Spread == drover.SpreadBalanced && most-least > 1 {
			t.Fatalf("seed %d: %v", seed, zones)
		}
	}
}

// covers P2
func TestAReplacedPoolStaysBalanced(t *testing.T) {
	for _, steps := range [][2]int{{0, 1}, {0, 2}, {1, 1}, {1, 0}, {2, 3}} {
		for count := 3; count <= 7; count++ {
			w := &world{t: t, in: Input{Now: now, Count: count, Zones: open("a", "b", "c"), Spec: spec(func(s *Spec) { s.MaxUnavailable, s.MaxSurge = steps[0], steps[1] })}}
			w.become()
			w.in.Spec.Template = "newer"
			w.become()
			zones, counted, _ := w.counts()
			if most, least := max(zones[place("a")], zones[place("b")], zones[place("c")]), min(zones[place("a")], zones[place("b")], zones[place("c")]); counted != count || most-least > 1 {
				t.Errorf("max_unavailable %d, max_surge %d: once all %d are replaced, there are %v", steps[0], steps[1], count, zones)
			}
		}
	}
}

// become carries out plans, and lets instances become ready and go, until nothing is left to do.
func (w *world) become() {
	for range 100 {
		p := w.settle()
		w.in.Views = slices.DeleteFunc(w.in.Views, func(v View) bool { return v.Going })
		for i := range w.in.Views {
			w.in.Views[i].Ready = true
		}
		if p.Settled {
			return
		}
	}
	w.t.Fatal("the pool does not settle")
}

// covers P1 K3
func TestMix(t *testing.T) {
	mixed := spec(func(s *Spec) { s.Mix.OnDemand = drover.Part{Base: 1, Percent: 50} })
	zones := open("a", "b")
	onDemand := func(in Input) (n int) {
		for _, d := range Reconcile(in).Demands {
			n += count(d.OnDemand)
		}
		return n
	}
	if n := onDemand(Input{Spec: mixed, Now: now, Count: 5, Zones: zones}); n != 3 {
		t.Errorf("%d of five missing instances are on demand, want one and half of the rest", n)
	}
	views := with(some(1, 5, "a"), func(v *View) { v.OnDemand = v.ID <= 3 })
	if n := onDemand(Input{Spec: mixed, Now: now, Count: 7, Zones: zones, Views: views}); n != 1 {
		t.Errorf("with three of five on demand, %d of two more are on demand, want 1", n)
	}
	closed := open("a")
	closed[0].Spot = true
	if p := Reconcile(Input{Spec: mixed, Now: now, Count: 2, Zones: closed}); len(p.Demands) != 2 || p.Demands[0].OnDemand {
		t.Errorf("without on-demand capacity the plan does not fall back to spot: %+v", p)
	}
	p := Reconcile(Input{Spec: mixed, Now: now, Count: 3, Zones: zones, Views: with(some(1, 5, "a"), func(v *View) { v.OnDemand = v.ID >= 4 })})
	if len(p.Releases) != 2 || p.Releases[0].ID > 3 || p.Releases[1].ID > 3 {
		t.Errorf("the plan releases an instance that the mix needs: %+v", p.Releases)
	}
}

// covers K3
func TestRatio(t *testing.T) {
	in := Input{Spec: spec(func(s *Spec) { s.Kind, s.Ratio = drover.PoolSpare, 10_00 }), Now: now, Count: 1, Zones: open("a")}
	for inUse, want := range map[int]int{0: 1, 9: 1, 10: 1, 11: 2, 95: 10} {
		in.InUse = inUse
		if p := Reconcile(in); p.Wanted != want {
			t.Errorf("with %d in use, %d are wanted, want %d", inUse, p.Wanted, want)
		}
	}
}
