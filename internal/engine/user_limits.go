package engine

import (
	"fmt"

	"drover"
)

// UserLimits are how much one user's instances may be at once, where instances belong to users. What is 0 has no limit.
type UserLimits struct {
	Instances int             `json:"instances,omitempty"`
	VCPUs     drover.MilliCPU `json:"cpu_milli,omitempty"`
}

// limitsUsers reports whether there is a limit on users' instances.
func (e *Engine) limitsUsers() bool {
	return e.s.Settings.Users != (UserLimits{}) && e.life().Sharing == drover.ShareUser
}

// userLimit is what a user may still rent.
func (e *Engine) userLimit(mark string) drover.Limit {
	has := e.fleet.Census().Owned[mark]
	l, u := drover.Limit{}, e.s.Settings.Users
	if u.Instances > 0 {
		l.Instances = new(max(0, u.Instances-has.Instances))
	}
	if u.VCPUs > 0 {
		l.CPU = new(max(0, u.VCPUs-has.CPU))
	}
	return l
}

// withoutFull is the groups without those whose users may rent nothing more, which wait for that.
func (e *Engine) withoutFull(groups []*group) (rest []*group) {
	if !e.limitsUsers() {
		return groups
	}
	left := map[string]drover.Limit{} // by the user's mark
	for _, g := range groups {
		l, known := left[g.demand.Owner]
		if !known {
			l = e.userLimit(g.demand.Owner)
			left[g.demand.Owner] = l
		}
		if l.Instances != nil && *l.Instances == 0 || l.CPU != nil && *l.CPU == 0 {
			e.stick([]*group{g}, e.whyUserLimit(g, l))
		} else {
			rest = append(rest, g)
		}
	}
	return rest
}

// whyUserLimit says that the group's user, who may still rent so much, has what one may have, or nearly.
func (e *Engine) whyUserLimit(g *group, left drover.Limit) Verdict {
	u, has := e.s.Settings.Users, ""
	if left.Instances != nil {
		has = fmt.Sprintf("%d of the %d instances that limits.instances allows", u.Instances-*left.Instances, u.Instances)
	}
	if left.CPU != nil && (left.Instances == nil || *left.Instances > 0) {
		has = fmt.Sprintf("instances with %v of the %v vCPUs that limits.vcpus allows", u.VCPUs-*left.CPU, u.VCPUs)
	}
	return e.verdict(drover.ReasonUserLimit, "user %s has %s; wait until one of them has room or is gone", g.Key.User, has)
}

// userLimited reports whether the group's user could rent more but for the user's own limit, and says so.
func (e *Engine) userLimited(g *group) (why Verdict, limited bool) {
	if !e.limitsUsers() || e.totalRoom() == 0 {
		return why, false
	}
	left, need := e.limitsLeft(), g.Key.Shape.Need.CPU*drover.MilliCPU(max(1, g.Key.Gang))
	for _, o := range e.rentableFor(g) {
		if e.cloudRoom(o.Cloud) > 0 && left.Passed(o) == nil {
			l := e.userLimit(g.demand.Owner)
			few := l.Instances != nil && (*l.Instances == 0 || g.Key.Gang > 0 && *l.Instances < min(e.totalRoom(), g.Key.Gang))
			limited = few || l.CPU != nil && *l.CPU < max(need, o.Type.Resources.CPU)
			return e.whyUserLimit(g, l), limited
		}
	}
	return why, false
}
