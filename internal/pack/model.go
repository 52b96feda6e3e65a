package pack

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"drover"
)

// The dimensions in which an instance has room and a job has needs. The last one counts jobs.
const (
	cpu = iota
	memory
	disk
	gpus
	jobs
	dims
)

// vec is an amount in each dimension, in the units of drover.Resources.
type vec [dims]int64

// fits reports whether need fits into v.
func (v vec) fits(need vec) bool {
	for d := range v {
		if need[d] > v[d] {
			return false
		}
	}
	return true
}

// times returns how many times need fits into v, at most most.
func (v vec) times(need vec, most int) int {
	if !v.fits(need) {
		return 0
	}
	n := int64(most)
	for d := range v {
		if need[d] > 0 {
			n = min(n, v[d]/need[d])
		}
	}
	return int(n)
}

// minus returns v without n times need.
func (v vec) minus(need vec, n int) vec {
	for d := range v {
		v[d] -= need[d] * int64(n)
	}
	return v
}

// negative returns v with the signs changed.
func (v vec) negative() vec { return vec{}.minus(v, 1) }

// item is all the jobs of one shape and one expected time.
type item struct {
	need   vec
	rule   int
	class  int // index of model.classes
	count  int
	filled int  // the cheapest kind on which one job leaves no room for another; -1 if there is none
	gang   bool // some of the jobs start together or not at all
}

// rule is what a demand requires of an offering besides room. Which offerings satisfy it is computed once.
type rule struct {
	placement drover.Placement
	spot      drover.SpotPolicy
	arch      drover.Arch
	dearest   drover.Money // highest hourly price of the instance
	vcpu      drover.Money // highest hourly price per vCPU
}

// maxRules is how many rules are distinguished when offerings are compared. Jobs with further rules are served too, but
// only greedily.
const maxRules = 64

// kind is an offering worth considering.
type kind struct {
	offering int
	has      vec
	price    drover.Money
	rank     int64   // sort order
	rules    uint64  // bit set of satisfied rules; rules from maxRules on are checked against the offering
	costs    []int64 // of one instance, by class
	limits   []int   // the ledger rows that it counts against
}

// model is the solver's view of a problem.
type model struct {
	p       drover.Problem
	rules   []rule
	items   []item
	of      []int           // the item of each demand
	classes []time.Duration // how long an instance has jobs, longest first
	kinds   []kind          // sorted by rank, then by price, then largest first, then as offered
	rows    []row           // of the ledger
	used    [dims]bool      // dimensions that any job needs
	all     vec             // the most of each dimension that is of use on an instance
	least   vec             // the least that any job needs of each dimension
	weights []float64       // of the items' values, see learn
}

// newModel builds the model. A kind is left out if at least rivals others dominate it.
func newModel(p drover.Problem, rivals int) *model {
	m := &model{p: p}
	m.sortTimes()
	m.addItems()
	m.addRows()
	m.findUsed()
	m.addKinds(rivals)
	m.findFilled()
	m.weights = slices.Repeat([]float64{1}, len(m.items))
	return m
}

// unknownTime is the assumed run time of a job of which nothing is known, as in budgets.
const unknownTime = time.Hour

// maxClasses is how many expected times are distinguished; with more, they are rounded up to a power of two of seconds.
const maxClasses = 8

// sortTimes finds the classes of jobs by expected time.
func (m *model) sortTimes() {
	for round := range 2 {
		m.classes = m.classes[:0]
		for _, d := range m.p.Demands {
			m.classes = append(m.classes, running(d, round == 1))
		}
		slices.Sort(m.classes)
		slices.Reverse(m.classes)
		if m.classes = slices.Compact(m.classes); len(m.classes) <= maxClasses {
			return
		}
	}
}

// running returns for how long an instance has one job of the demand.
func running(d drover.Demand, rounded bool) time.Duration {
	run := cmp.Or(max(0, d.Time), unknownTime)
	if rounded && run > time.Second {
		run = time.Second << bits.Len64(uint64((run-1)/time.Second))
	}
	return run
}

// class returns the class of a demand.
func (m *model) class(d drover.Demand) int {
	for _, rounded := range []bool{false, true} {
		if c := slices.Index(m.classes, running(d, rounded)); c >= 0 {
			return c
		}
	}
	return 0
}

// addItems groups identical jobs, in order of appearance.
func (m *model) addItems() {
	type key struct {
		need        vec
		rule, class int
	}
	seen, rules := map[key]int{}, map[rule]int{}
	for _, d := range m.p.Demands {
		r := rule{d.Shape.Placement, d.Shape.Spot, d.Shape.Need.Arch, d.Dearest, d.VCPU}
		n, ok := rules[r]
		if !ok {
			n = len(m.rules)
			rules[r] = n
			m.rules = append(m.rules, r)
		}
		k := key{needOf(d.Shape.Need), n, m.class(d)}
		i, ok := seen[k]
		if !ok {
			i = len(m.items)
			seen[k] = i
			m.items = append(m.items, item{need: k.need, rule: n, class: k.class})
		}
		m.items[i].count += d.Count
		m.items[i].gang = m.items[i].gang || d.Together > 0
		m.of = append(m.of, i)
	}
}

func needOf(r drover.Resources) vec {
	return vec{max(0, int64(r.CPU)), max(0, int64(r.Memory)), max(0, int64(r.Disk)), max(0, int64(r.GPUs)), 1}
}

// capacity returns the room of an instance of the offering; a disk that is a volume holds whatever the rest can.
func (m *model) capacity(o *drover.Offering) vec {
	r := o.Type.Resources
	v := vec{int64(r.CPU), int64(r.Memory), int64(r.Disk), int64(r.GPUs), m.each()}
	if r.Disk == 0 {
		v[disk] = int64(drover.TiB)
	}
	return v
}

// anyNumber is how many jobs an instance may have if there is no limit.
const anyNumber = 1 << 30

// each returns how many jobs an instance may have at once.
func (m *model) each() int64 {
	if m.p.UseOnce {
		return 1
	}
	return int64(cmp.Or(m.p.JobsEach, anyNumber))
}

// allows reports whether the offering satisfies the rule, disregarding room.
func (r *rule) allows(o *drover.Offering) bool {
	return r.spot.Allows(o.Market) && (r.arch == "" || r.arch == o.Type.Resources.Arch) && r.placement.Allows(o.Cloud, o.Zone, o.Type.Name, o.Price) &&
		(r.dearest == 0 && r.vcpu == 0 || drover.Demand{Dearest: r.dearest, VCPU: r.vcpu}.Affords(*o))
}

// accepts reports whether a job of the item may run on an empty instance of the kind.
func (m *model) accepts(k *kind, it *item) bool { return m.allowed(k, it.rule) && k.has.fits(it.need) }

func (m *model) allowed(k *kind, rule int) bool {
	if rule < maxRules {
		return k.rules>>rule&1 == 1
	}
	return m.rules[rule].allows(&m.p.Offerings[k.offering])
}
