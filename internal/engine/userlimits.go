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
	n, cpu := 0, drover.MilliCPU(0)
	e.looks += len(e.instances)
	for _, in := range e.instances {
		if in.Owner == mark {
			n, cpu = n+1, cpu+in.Resources.CPU
		}
	}
	l, u := drover.Limit{}, e.s.Settings.Users
	if u.Instances > 0 {
		l.Instances = new(max(0, u.Instances-n))
	}
	if u.VCPUs > 0 {
		l.CPU = new(max(0, u.VCPUs-cpu))
	}
	return l
}

// withoutFull is the groups without those whose users may rent nothing more, which wait for that.
func (e *Engine) withoutFull(groups []*group) (rest []*group) {
	if !e.limitsUsers() {
		return groups
	}
	full := map[string]bool{}
	for _, g := range groups {
		is, known := full[g.mark]
		if !known {
			l := e.userLimit(g.mark)
			is = l.Instances != nil && *l.Instances == 0 || l.CPU != nil && *l.CPU == 0
			full[g.mark] = is
		}
		if is {
			e.stick([]*group{g}, e.whyUserLimit(g))
		} else {
			rest = append(rest, g)
		}
	}
	return rest
}

// whyUserLimit says that the group's user has what one may have, or nearly.
func (e *Engine) whyUserLimit(g *group) drover.Reason {
	u, has := e.s.Settings.Users, ""
	l := e.userLimit(g.mark)
	if l.Instances != nil {
		has = fmt.Sprintf("%d of the %d instances that limits.instances allows", u.Instances-*l.Instances, u.Instances)
	}
	if l.CPU != nil && (l.Instances == nil || *l.Instances > 0) {
		has = fmt.Sprintf("instances with %v of the %v vCPUs that limits.vcpus allows", u.VCPUs-*l.CPU, u.VCPUs)
	}
	return e.reason(drover.ReasonUserLimit, "user %s has %s; wait until one of them has room or is gone", g.key.User, has)
}

// limitsUser reports whether the group's user could rent more but for the user's own limit.
func (e *Engine) limitsUser(g *group) bool {
	if !e.limitsUsers() || e.totalRoom() == 0 {
		return false
	}
	left, need := e.leeway(), g.key.Shape.Need.CPU*drover.MilliCPU(max(1, g.key.Gang))
	for _, o := range e.rentableFor(g) {
		if e.cloudRoom(o.Cloud) > 0 && len(left.within([]drover.Offering{o})) > 0 {
			l := e.userLimit(g.mark)
			few := l.Instances != nil && (*l.Instances == 0 || g.key.Gang > 0 && *l.Instances < min(e.totalRoom(), g.key.Gang))
			return few || l.CPU != nil && *l.CPU < max(need, o.Type.Resources.CPU)
		}
	}
	return false
}
