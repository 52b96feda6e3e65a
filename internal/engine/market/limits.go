package market

import (
	"slices"

	"drover"
)

// Limits is what remains of each of the operator's limits. It is negative after a limit was lowered, or instances were
// adopted. An instance counts against each limit that covers anything it may be: until its cloud has chosen, any of its
// candidates.
type Limits []drover.Limit

// weight returns the most vCPUs of the offerings that a limit covers, and whether it covers any.
func weight(l drover.Limit, offers []drover.Offering) (cpu drover.MilliCPU, covered bool) {
	for _, o := range offers {
		if l.Covers(o) {
			cpu, covered = max(cpu, o.Type.Resources.CPU), true
		}
	}
	return cpu, covered
}

// Take deducts n more instances, each of which may be any of the offerings. A negative n returns them.
func (l Limits) Take(n int, offers ...drover.Offering) {
	for i := range l {
		if cpu, covered := weight(l[i], offers); covered {
			l[i] = l[i].Less(n, cpu*drover.MilliCPU(n))
		}
	}
}

// Passed returns the first limit that one more instance would exceed; nil if there is none.
func (l Limits) Passed(offers ...drover.Offering) *drover.Limit {
	for i := range l {
		cpu, covered := weight(l[i], offers)
		if covered && (l[i].Instances != nil && *l[i].Instances < 1 || l[i].CPU != nil && *l[i].CPU < cpu) {
			return &l[i]
		}
	}
	return nil
}

// Within returns the candidates, in order, that together exceed no limit.
func (l Limits) Within(candidates []drover.Offering) (all []drover.Offering) {
	if l == nil {
		return candidates
	}
	all = make([]drover.Offering, 0, len(candidates))
	for _, o := range candidates {
		if all = append(all, o); l.Passed(all...) != nil {
			all = all[:len(all)-1]
		}
	}
	return all
}

// Clears reports whether the end of an instance that may be one of offers could let o be rented: it counts against
// every limit that o would exceed.
func (l Limits) Clears(offers []drover.Offering, o drover.Offering) bool {
	for i := range l {
		if l[i:i+1].Passed(o) != nil && !slices.ContainsFunc(offers, l[i].Covers) {
			return false
		}
	}
	return true
}
