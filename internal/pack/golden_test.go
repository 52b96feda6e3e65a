package pack

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover"
)

var update = flag.Bool("update", false, "write testdata/plans.txt anew")

// TestPlansAreReproducible compares plans with those in testdata/plans.txt, made earlier and perhaps on another
// processor.
// covers D1
func TestPlansAreReproducible(t *testing.T) {
	var b strings.Builder
	for _, c := range goldenProblems(t) {
		plan := Solve(c.p)
		fmt.Fprintf(&b, "%s: cost %v, bound %v\n", c.name, plan.Cost, plan.Bound)
		counts, order := map[string]int{}, []string{}
		for _, buy := range plan.Purchases {
			o := c.p.Offerings[buy.Candidates[0]]
			key := fmt.Sprintf("%s %s %s", o.Type.Name, o.Zone, o.Market)
			if counts[key]++; counts[key] == 1 {
				order = append(order, key)
			}
		}
		for _, key := range order {
			fmt.Fprintf(&b, "  %d × %s\n", counts[key], key)
		}
		for _, u := range plan.Unmet[:min(2, len(plan.Unmet))] {
			fmt.Fprintf(&b, "  %d jobs of demand %d wait: %s\n", u.Count, u.Demand, u.Text)
			for _, r := range u.Refusals {
				fmt.Fprintf(&b, "    %s: %d, such as %s: %s\n", r.Code, r.Count, r.Offering, r.Text)
			}
		}
	}
	const name = "testdata/plans.txt"
	if *update {
		if err := os.WriteFile(name, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("plans differ (-want +got); if intended, run go test ./internal/pack -update:\n%s", diff)
	}
}

type goldenProblem struct {
	name string
	p    drover.Problem
}

func goldenProblems(t *testing.T) []goldenProblem {
	few := func(change func(p *drover.Problem)) drover.Problem {
		p := peersProblem(t, 1000, false)
		change(&p)
		return p
	}
	ten, cpus := 10, drover.MilliCPU(64_000)
	return []goldenProblem{
		{"1,000 jobs on any market", few(func(*drover.Problem) {})},
		{"on demand only", peersProblem(t, 1000, true)},
		{"a fifth in one spot offering at most", few(func(p *drover.Problem) { p.SpotShare = 20_00 })},
		{"ten instances at most", few(func(p *drover.Problem) { p.Limits = []drover.Limit{{Instances: &ten}} })},
		{"64 vCPUs of spot at most", few(func(p *drover.Problem) { p.Limits = []drover.Limit{{Market: drover.Spot, CPU: &cpus}} })},
		{"each instance costs a cent beside its price", few(func(p *drover.Problem) { p.Fixed = drover.Dollar / 100 })},
		{"instances boot for ten minutes, and every other shape takes one", few(func(p *drover.Problem) {
			p.Boot = 10 * time.Minute
			for i := range p.Demands {
				if i%2 == 0 {
					p.Demands[i].Time = time.Minute
				}
			}
		})},
		{"of each shape two at least on demand", few(func(p *drover.Problem) {
			for i := range p.Demands {
				own := p.Demands[i]
				own.Shape.Spot, own.Count = drover.SpotNever, 2
				p.Demands[i].Count -= 2
				p.Demands = append(p.Demands, own)
			}
		})},
		{"1,000 jobs of as many shapes", manyShapes(t, 1000)},
	}
}

func TestSharesAreKept(t *testing.T) {
	t.Run("no spot offering has more than its share of the vCPUs", func(t *testing.T) {
		p := peersProblem(t, 1000, false)
		p.SpotShare = 20_00
		sharesKept(t, p, 20, spotOffering)
	})
	t.Run("nor has one whichever candidate each instance becomes", func(t *testing.T) {
		p := peersProblem(t, 1000, false)
		p.SpotShare = 20_00
		plan, sums, total := Solve(p), map[string]int64{}, int64(0)
		for _, b := range plan.Purchases {
			total += int64(p.Offerings[b.Candidates[0]].Type.Resources.CPU)
			for _, c := range b.Candidates {
				sums[spotOffering(p.Offerings[c])] += int64(p.Offerings[c].Type.Resources.CPU)
			}
		}
		delete(sums, "")
		for key, sum := range sums {
			if sum*5 > total+total/20 { // a tolerance for the last instances
				t.Errorf("%s may have %d of %d vCPUs", key, sum/1000, total/1000)
			}
		}
	})
	t.Run("existing instances count", func(t *testing.T) {
		a, b, c := offering("c", "a", 2, 4*drover.GiB, 100), offering("c", "b", 2, 4*drover.GiB, 110), offering("c", "c", 2, 4*drover.GiB, 900)
		a.Market, b.Market = drover.Spot, drover.Spot
		p := problem([]drover.Offering{a, b, c}, 99, demand(2000, drover.GiB, 6))
		p.SpotShare = 40_00
		p.Rented = []drover.Rented{{Cloud: "c", Zone: a.Zone, Type: "a", Market: drover.Spot, CPU: 8000}, {Cloud: "c", Zone: c.Zone, Type: "c", Market: drover.OnDemand, CPU: 4000}}
		if got := rentedOf(p, Solve(p)); got != "b b b b c c" { // each may have 9 of 24 vCPUs, and a has 8
			t.Errorf("rented: %s", got)
		}
	})
	t.Run("offerings under one limit are not enough", func(t *testing.T) {
		x, y, z, b := offering("c", "a", 2, 4*drover.GiB, 100), offering("c", "a", 2, 4*drover.GiB, 100), offering("c", "a", 2, 4*drover.GiB, 100), offering("c", "b", 4, 4*drover.GiB, 300)
		x.Zone, y.Zone = "x", "y"
		p := problem([]drover.Offering{x, y, z, b}, 9, demand(1000, drover.GiB, 2))
		p.JobsEach, p.SpotShare, p.Limits = 1, 60_00, []drover.Limit{{Type: "a", CPU: new(drover.MilliCPU(2000))}}
		if got := rentedOf(p, Solve(p)); got != "a b" {
			t.Errorf("rented: %s", got)
		}
	})
	t.Run("a later demand gets no room that an earlier one needs beyond a share", func(t *testing.T) {
		a, b := offering("c", "a", 2, 4*drover.GiB, 100), offering("c", "b", 8, 16*drover.GiB, 400)
		a.Market, b.Market = drover.Spot, drover.Spot
		first, second := demand(500, drover.GiB, 9), demand(500, drover.GiB, 9)
		first.Shape.Placement.Type = "a"
		p := problem([]drover.Offering{a, b}, 1, first, second)
		p.JobsEach, p.SpotShare = 1, 30_00
		p.Rented = []drover.Rented{{Cloud: "c", Zone: a.Zone, Type: "a", Market: drover.Spot, CPU: 2000}, {Cloud: "c", Zone: "z", Type: "other", Market: drover.OnDemand, CPU: 4000}}
		if got := rentedOf(p, Solve(p)); got != "a" {
			t.Errorf("rented: %s", got)
		}
	})
	t.Run("a share gives way where there is only one offering", func(t *testing.T) {
		o := offering("c", "only", 2, 4*drover.GiB, 100)
		o.Market = drover.Spot
		p := problem([]drover.Offering{o}, 9, demand(1000, drover.GiB, 9))
		p.SpotShare = 20_00
		if plan := Solve(p); len(plan.Unmet) > 0 {
			t.Errorf("unmet: %+v", plan.Unmet)
		}
	})
}

// spotOffering names a spot offering; empty for others.
func spotOffering(o drover.Offering) string {
	if o.Market != drover.Spot {
		return ""
	}
	return o.Type.Name + o.Zone
}

// rentedOf returns the types that a plan rents, sorted.
func rentedOf(p drover.Problem, plan drover.Plan) string {
	var names []string
	for _, b := range plan.Purchases {
		names = append(names, p.Offerings[b.Candidates[0]].Type.Name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func sharesKept(t *testing.T, p drover.Problem, share int64, of func(drover.Offering) string) {
	plan := Solve(p)
	if len(plan.Unmet) > 0 {
		t.Fatalf("unmet: %+v", plan.Unmet)
	}
	sums, total := map[string]int64{}, int64(0)
	for _, b := range plan.Purchases {
		o := p.Offerings[b.Candidates[0]]
		total += int64(o.Type.Resources.CPU)
		if key := of(o); key != "" {
			sums[key] += int64(o.Type.Resources.CPU)
		}
	}
	for key, sum := range sums {
		if sum*100 > total*share {
			t.Errorf("%s has %d of %d vCPUs, over %d %%", key, sum/1000, total/1000, share)
		}
	}
}
