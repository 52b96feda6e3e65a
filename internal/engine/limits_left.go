package engine

import (
	"cmp"
	"slices"

	"drover"
)

// Within a cloud its operator may limit the instances, or the vCPUs, of a zone, a type, a market, a quota group, or what is several of these at once.
// An instance counts against each limit that covers anything it may be: until its cloud has chosen, that is any of its candidates.

// limitsLeft is what each limit leaves to be added. Less than nothing is left where a limit was lowered, or instances were adopted.
type limitsLeft []drover.Limit

// limitsLeft is what all limits leave now, for the caller to change; nil if there are none.
func (e *Engine) limitsLeft() limitsLeft { return slices.Clone(e.inventory().limitsLeft) }

// allLimits is what all limits would leave if nothing counted against them.
func (e *Engine) allLimits() (left limitsLeft) {
	for _, c := range e.s.Settings.Clouds {
		for _, l := range c.Limits {
			l.Cloud = c.Name
			left = append(left, l)
		}
	}
	return left
}

// mayBe is what the instance counts as. If its type is listed no more, its quota group is not known, and it counts in all of them.
func (e *Engine) mayBe(in *instance) []drover.Offering {
	if len(in.Candidates) > 0 {
		return in.Candidates
	}
	o, listed := e.listedAs(in)
	if listed {
		return []drover.Offering{o}
	}
	o = in.offering()
	all := []drover.Offering{o}
	for _, l := range e.limits(in.Cloud).Limits {
		if o.QuotaGroup = l.QuotaGroup; o.QuotaGroup != "" {
			all = append(all, o)
		}
	}
	return all
}

// weight is the most vCPUs that an instance of any of the offerings has of what a limit covers, and whether it covers any.
func weight(l drover.Limit, offers []drover.Offering) (cpu drover.MilliCPU, covered bool) {
	for _, o := range offers {
		if l.Covers(o) {
			cpu, covered = max(cpu, o.Type.Resources.CPU), true
		}
	}
	return cpu, covered
}

// take counts n more instances, each of any of the offerings; a negative n gives them back.
func (l limitsLeft) take(n int, offers ...drover.Offering) {
	for i := range l {
		if cpu, covered := weight(l[i], offers); covered {
			l[i] = l[i].Less(n, cpu*drover.MilliCPU(n))
		}
	}
}

// passed is the first limit that one more instance of any of the offerings would pass; nil if it would pass none.
func (l limitsLeft) passed(offers ...drover.Offering) *drover.Limit {
	for i := range l {
		cpu, covered := weight(l[i], offers)
		if covered && (l[i].Instances != nil && *l[i].Instances < 1 || l[i].CPU != nil && *l[i].CPU < cpu) {
			return &l[i]
		}
	}
	return nil
}

// within is what of a purchase's candidates keeps the limits together. What is only second for one purchase is not taken from what is first for another.
func (l limitsLeft) within(candidates []drover.Offering) (all []drover.Offering) {
	if l == nil {
		return candidates
	}
	for _, o := range candidates {
		if all = append(all, o); l.passed(all...) != nil {
			all = all[:len(all)-1]
		}
	}
	return all
}

// clears reports whether an instance that goes could let one of the offering be rented: it counts against whichever limit that would pass.
func (l limitsLeft) clears(offers []drover.Offering, o drover.Offering) bool {
	for i := range l {
		if l[i:i+1].passed(o) != nil && !slices.ContainsFunc(offers, l[i].Covers) {
			return false
		}
	}
	return true
}

// whyPassed says that one more instance of the offering would pass a limit, since the last that counts against it was asked for; or that none may ever be,
// since the limit is what it is.
func (e *Engine) whyPassed(o drover.Offering) (drover.Reason, bool) {
	why, l := e.passedBy(e.limitsLeft(), o)
	if l == nil {
		return why, false
	}
	why.Since = cmp.Or(e.lastAsked(func(in *instance) bool { return slices.ContainsFunc(e.mayBe(in), l.Covers) }), e.s.Configured)
	return why, true
}

// passedBy says that one more instance of the offering would pass one of the limits, of which so much is left, and which; nil if it would pass none.
func (e *Engine) passedBy(left limitsLeft, o drover.Offering) (why drover.Reason, l *drover.Limit) {
	if l = e.allLimits().passed(o); l != nil {
		return e.reason(drover.ReasonLimit, "a single one passes %s; raise the limit", l.Name()), l
	}
	if l = left.passed(o); l != nil {
		return e.reason(drover.ReasonLimit, "one more would pass %s; wait until one that counts against it is gone, or raise the limit", l.Name()), l
	}
	return why, nil
}
