package pack

import (
	"math/big"
	"testing"

	"drover"
)

// TestTheBoundIsProved checks the dual values of the linear program in exact arithmetic. Every offering must be covered
// by one of the kinds by which jobs are valued: that one takes whatever the offering takes, and at its prices the
// offering's room is worth no more than the offering costs. No job may be worth more than what it takes at the prices
// of any such kind that can hold it and another, nor more than an offering that it fills. Then the jobs on any instance
// are worth at most its cost, and the sum of the values is a bound.
// covers D1
func TestTheBoundIsProved(t *testing.T) {
	shapes := 3000
	if testing.Short() {
		shapes = 500
	}
	for name, p := range map[string]drover.Problem{
		"jobs of few shapes":                   peersProblem(t, 10_000, false),
		"jobs of few shapes, on demand":        peersProblem(t, 1000, true),
		"jobs that all have different shapes":  manyShapes(t, shapes),
		"jobs restricted to some of the types": restricted(peersProblem(t, 1000, false)),
		"jobs that fill some of the types":     randomShapes(t, 300, 1000, 8000, 64_000, false),
	} {
		t.Run(name, func(t *testing.T) {
			steps := 1 << 40
			m := newModel(p, 1)
			pr := m.first(&steps)
			for _, o := range p.Offerings {
				if !m.covered(pr, o) {
					t.Fatalf("%s in %s, %s, is not covered by the prices", o.Type.Name, o.Zone, o.Market)
				}
			}
			sum := new(big.Int)
			for i, it := range m.items {
				for x, k := range pr.kinds {
					if m.accepts(&m.kinds[k], &it) && !m.fills(&m.kinds[k], &it) && exact(it.need, m.kinds[k].has, pr.split[x]).Cmp(big.NewRat(pr.values[i], 1)) < 0 {
						t.Fatalf("item %d is worth %d, more than its share of %s", i, pr.values[i], p.Offerings[m.kinds[k].offering].Type.Name)
					}
				}
				for _, o := range p.Offerings {
					own := kind{has: m.capacity(&o)}
					if m.rules[it.rule].allows(&o) && own.has.fits(it.need) && m.fills(&own, &it) && pr.values[i] > m.cost(&o, 0) {
						t.Fatalf("item %d is worth %d, more than the cost of %s, which it fills", i, pr.values[i], o.Type.Name)
					}
				}
				sum.Add(sum, new(big.Int).Mul(big.NewInt(pr.values[i]), big.NewInt(int64(it.count))))
			}
			plan := Solve(p)
			if sum.Cmp(big.NewInt(int64(plan.Bound))) != 0 {
				t.Errorf("the plan's bound is %d, the proved one is %v", plan.Bound, sum)
			}
			t.Logf("bound %v, cost %v, first dual values %v", plan.Bound, plan.Cost, pr.split[:min(3, len(pr.split))])
		})
	}
}

// restricted returns the problem with a third of its jobs on demand only and another third in one zone.
func restricted(p drover.Problem) drover.Problem {
	for i := range p.Demands {
		switch i % 3 {
		case 1:
			p.Demands[i].Shape.Spot = drover.SpotNever
		case 2:
			p.Demands[i].Shape.Placement.Zone = "z2"
		}
	}
	return p
}

// covered reports whether one of the kinds by which jobs are valued covers what an instance of the offering can get. An
// offering that no job may use needs no cover.
func (m *model) covered(pr *prices, o drover.Offering) bool {
	has, rules := m.capacity(&o), uint64(0)
	for d := range has {
		has[d] = min(has[d], m.all[d])
	}
	for r := range m.rules {
		if m.rules[r].allows(&o) {
			rules |= 1 << r
		}
	}
	if rules == 0 {
		return true
	}
	for x, k := range pr.kinds {
		kd := &m.kinds[k]
		takes := rules&^kd.rules == 0
		for d, used := range m.used {
			takes = takes && (!used || has[d] <= kd.has[d])
		}
		if takes && exact(has, kd.has, pr.split[x]).Cmp(big.NewRat(int64(m.cost(&o, 0)), 1)) <= 0 {
			return true
		}
	}
	return false
}

// exact returns the exact worth of an amount of each dimension, by the split of what there is.
func exact(need, has vec, split []int64) *big.Rat {
	sum := new(big.Rat)
	for d, s := range split {
		if s > 0 {
			sum.Add(sum, new(big.Rat).Mul(big.NewRat(s, has[d]), big.NewRat(need[d], 1)))
		}
	}
	return sum
}
