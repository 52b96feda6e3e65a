package market

import (
	"slices"

	"drover"
)

// Limits is what each limit of the operator's leaves to be added. Less than nothing is left where a limit was lowered, or instances were adopted. An
// instance counts against each limit that covers anything it may be: until its cloud has chosen, that is any of its candidates.
type Limits []drover.Limit

// weight is the most vCPUs that an instance of any of the offerings has of what a limit covers, and whether it covers any.
func weight(l drover.Limit, offers []drover.Offering) (cpu drover.MilliCPU, covered bool) {
	for _, o := range offers {
		if l.Covers(o) {
			cpu, covered = max(cpu, o.Type.Resources.CPU), true
		}
	}
	return cpu, covered
}

// Take counts n more instances, each of any of the offerings; a negative n gives them back.
func (l Limits) Take(n int, offers ...drover.Offering) {
	for i := range l {
		if cpu, covered := weight(l[i], offers); covered {
			l[i] = l[i].Less(n, cpu*drover.MilliCPU(n))
		}
	}
}

// Passed is the first limit that one more instance of any of the offerings would pass; nil if it would pass none.
func (l Limits) Passed(offers ...drover.Offering) *drover.Limit {
	for i := range l {
		cpu, covered := weight(l[i], offers)
		if covered && (l[i].Instances != nil && *l[i].Instances < 1 || l[i].CPU != nil && *l[i].CPU < cpu) {
			return &l[i]
		}
	}
	return nil
}

// Within is what of a purchase's candidates keeps the limits together. What is only second for one purchase is not taken from what is first for another.
func (l Limits) Within(candidates []drover.Offering) (all []drover.Offering) {
	if l == nil {
		return candidates
	}
	for _, o := range candidates {
		if all = append(all, o); l.Passed(all...) != nil {
			all = all[:len(all)-1]
		}
	}
	return all
}

// Clears reports whether an instance that goes could let one of the offering be rented: it counts against whichever limit that would pass.
func (l Limits) Clears(offers []drover.Offering, o drover.Offering) bool {
	for i := range l {
		if l[i:i+1].Passed(o) != nil && !slices.ContainsFunc(offers, l[i].Covers) {
			return false
		}
	}
	return true
}
