package pack

import (
	"testing"

	"drover"
)

func TestLocalSearchImprovesAPattern(t *testing.T) {
	// Five jobs with three vCPUs each leave one of 16 vCPUs free; replacing one of them by a job with four fills the
	// instance.
	p := problem([]drover.Offering{offering("c", "t", 16, 64*drover.GiB, 1_600_000)}, 99, demand(3000, drover.GiB, 400), demand(4000, drover.GiB, 600))
	steps := p.Steps
	m := newModel(p, 1)
	pr := m.first(&steps)
	s := stock{m: m, dims: pr.dims, left: []int{400, 600}, values: []int64{3, 4}, order: []int{1, 0}, taken: make([]int, 2), steps: &steps, excess: 1}
	s.sort()
	f := pattern{kind: 0, loads: []load{{0, 5}}, value: 15, cost: 16}
	s.localSearch(&f, &measure{unit: [dims]float64{1e9}})
	need := int64(0)
	for _, l := range f.loads {
		need += m.items[l.item].need[cpu] * int64(l.count)
	}
	if f.value != 16 || need != 16_000 || s.taken[0]+s.taken[1] != 0 {
		t.Errorf("%+v takes %d thousandths of a vCPU", f, need)
	}
}
