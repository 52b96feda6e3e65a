package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"drover"
	"drover/internal/engine/fleet"
)

// whyNoRoom explains which limit prevents adding an instance.
func (e *Engine) whyNoRoom(of func(cloud string) use) Verdict {
	if e.room() == 0 {
		return whyFull(fleetFull(e.s.Settings.MaxInstances), of(""))
	}
	if clouds := e.enabled(); len(clouds) == 1 {
		name := clouds[0].Name
		return whyFull(cloudFull(name, e.limits(name).MaxInstances), of(name))
	}
	return whyFull("every cloud is at its max_instances", of(""))
}

func fleetFull(most int) string {
	return fmt.Sprintf("the fleet is at its limit of %s", countOf(most, "instance"))
}

func cloudFull(name string, most int) string {
	return fmt.Sprintf("cloud %s is at its max_instances of %d", name, most)
}

// whyFull explains that a limit on instances is reached, since the last of them was requested.
func whyFull(full string, by use) Verdict {
	wait := "wait until an instance has room or is gone, or raise the limit"
	if by.others > 0 {
		wait = fmt.Sprintf("wait until an instance has room, is released or is gone, or raise the limit (held, draining, stopped or leaving: %d)", by.others)
	}
	return Verdict{Cause: drover.ReasonLimit, Text: full + "; " + wait, Since: by.last}
}

// use is how many instances take no work, and when the last of all was requested.
type use struct {
	others int
	last   drover.Time
}

// useNow returns the use of a cloud's instances, or of all, for a decision: usually from the census.
func (e *Engine) useNow(cloud string) use {
	if n := e.fleet.Len(); n > 0 && (cloud == "" || e.fleet.In(cloud) == n) {
		return use{n - e.fleet.Census().Takers(), e.fleet.All()[n-1].Asked}
	}
	return e.useOfAll(cloud)
}

// useOfAll returns the same from the instances, and changes nothing.
func (e *Engine) useOfAll(cloud string) (u use) {
	for _, in := range e.fleet.All() {
		if cloud != "" && in.Cloud != cloud {
			continue
		}
		if !in.Serving() {
			u.others++
		}
		u.last = max(u.last, in.Asked)
	}
	return u
}

// lastAsked returns when the last of the selected instances was requested; 0 if there is none.
func (e *Engine) lastAsked(some func(*fleet.Member) bool) (last drover.Time) {
	for _, in := range e.fleet.All() {
		if some(in) {
			last = max(last, in.Asked)
		}
	}
	return last
}

// countOf returns a number with its noun, in the plural if needed.
func countOf(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}

// A gang that exceeds what the maximum number of instances can hold waits until the configuration or the offerings
// change, and its reason says so: no instance that goes makes room for it.

// most is how many instances a cloud may have, and how many of a gang's jobs its largest holds.
type most struct{ instances, each int }

// whyTooMany explains that the group's next gang does not fit on as many instances as allowed; nil if it fits, or is
// not a gang.
func (e *Engine) whyTooMany(g *group) *Verdict {
	if g.Key.Gang == 0 || g.Queued == 0 {
		return nil
	}
	room := cmp.Or(e.s.Settings.MaxInstances, unlimited)
	each := func(o drover.Offering) bool { // one job on each
		return g.Key.Shape.Accepts(o) && cmp.Or(e.limits(o.Cloud).MaxInstances, unlimited) >= g.Key.Gang
	}
	if room >= g.Key.Gang && slices.ContainsFunc(e.market.Offerings(), each) {
		return nil // usually, and much quicker
	}
	n := g.Next()
	clouds := e.mostFor(g, n)
	holds, may := 0, 0
	for _, c := range clouds {
		most := min(c.instances, room)
		room, may = room-most, may+most
		holds += min(n, most*min(c.each, n))
	}
	if len(clouds) == 0 || holds >= n {
		return nil
	}
	need := (n + clouds[0].each - 1) / clouds[0].each
	why := e.verdict(drover.ReasonLimit, "the gang has %d jobs, and the %s that max_instances allows can run only %d of them; the gang needs at least %d instances: raise the limit, or make the gang smaller",
		n, countOf(may, "instance"), holds, need)
	return &why
}

// mostFor returns what each cloud may have for a gang of members jobs, largest instances first, without clouds where
// none fits.
func (e *Engine) mostFor(g *group, members int) (clouds []most) {
	each := map[string]int{}
	hold := func(cloud string, n int) { each[cloud] = max(each[cloud], n) }
	for _, o := range e.market.Offerings() {
		if g.Key.Shape.Accepts(o) {
			hold(o.Cloud, e.atOnce(timesOn(o.Type, o.Type.Resources, g.Key.Shape.Need, members)))
		}
	}
	for _, k := range e.fleet.Census().Kinds { // covers types no longer offered
		if in := k.One(); in.Accepts(&g.demand) {
			hold(in.Cloud, in.AtOnce(timesOn(in.Type, in.Resources, g.Key.Shape.Need, members)))
		}
	}
	for _, c := range e.clouds {
		if n := each[c.Name]; n > 0 {
			clouds = append(clouds, most{cmp.Or(e.limits(c.Name).MaxInstances, unlimited), n})
		}
	}
	slices.SortStableFunc(clouds, func(a, b most) int { return cmp.Compare(b.each, a.each) })
	return clouds
}

// atOnce returns how many of n jobs one instance may be given.
func (e *Engine) atOnce(n int) int {
	if e.life().UseOnce {
		return min(n, 1)
	}
	return n
}

// timesOn returns how many of n jobs fit an instance of a type; a disk that is a volume is made as large as needed.
func timesOn(t drover.InstanceType, has, need drover.Resources, n int) int {
	if t.Resources.Disk == 0 {
		has.Disk = need.Disk * drover.Bytes(n)
	}
	return has.Times(need, n)
}

// UserLimits limits one user's instances at a time, where instances belong to users. 0 is no limit. Those of pools do
// not count: a pool keeps its instances, so its user could never rent another.
type UserLimits struct {
	Instances int             `json:"instances,omitempty"`
	VCPUs     drover.MilliCPU `json:"cpu_milli,omitempty"`
}

// limitsUsers reports whether users' instances are limited.
func (e *Engine) limitsUsers() bool {
	return e.s.Settings.Users != (UserLimits{}) && e.life().Sharing == drover.ShareUser
}

// userLimit returns what a user may still rent.
func (e *Engine) userLimit(mark string) drover.Limit {
	has, l, u := e.fleet.Owned(mark), drover.Limit{}, e.s.Settings.Users
	if u.Instances > 0 {
		l.Instances = new(max(0, u.Instances-has.Instances))
	}
	if u.VCPUs > 0 {
		l.CPU = new(max(0, u.VCPUs-has.CPU))
	}
	return l
}

// overLimit returns which limit or budget is exceeded by the existing and planned instances, if this planned one counts
// against it. Since the plan, the limit may have been lowered, or instances adopted.
func (e *Engine) overLimit(in *fleet.Member) (why Verdict, over bool) {
	if most := e.s.Settings.MaxInstances; most > 0 && e.fleet.Len() > most {
		return e.verdict(drover.ReasonLimit, "%s", fleetFull(most)), true
	}
	if most := e.limits(in.Cloud).MaxInstances; most > 0 && e.fleet.In(in.Cloud) > most {
		return e.verdict(drover.ReasonLimit, "%s", cloudFull(in.Cloud, most)), true
	}
	left, as := e.limitsLeft(), e.countsAs(in)
	left.Take(-1, as...)
	if l := left.Passed(as...); l != nil {
		return e.verdict(drover.ReasonLimit, "one more instance would exceed %s", l.Name()), true
	}
	if e.limitsUsers() && in.User != "" {
		u, has := e.s.Settings.Users, e.fleet.Owned(in.Owner)
		if u.Instances > 0 && has.Instances > u.Instances || u.VCPUs > 0 && has.CPU > u.VCPUs {
			return e.verdict(drover.ReasonUserLimit, "user %s has more than the limits allow", in.User), true
		}
	}
	if e.limited() {
		if a := e.ledger.Overdrawn(in.ID); a != nil {
			return e.why(a), true
		}
	}
	return why, false
}

// withoutLimitedUsers omits groups whose users may rent nothing more, and marks them unschedulable.
func (e *Engine) withoutLimitedUsers(groups []*group) (rest []*group) {
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
			e.markUnschedulable([]*group{g}, e.whyUserLimit(g, l))
		} else {
			rest = append(rest, g)
		}
	}
	return rest
}

// whyUserLimit explains that the group's user is at, or near, the limit; left is what remains.
func (e *Engine) whyUserLimit(g *group, left drover.Limit) Verdict {
	u, has := e.s.Settings.Users, ""
	if need := e.neverAdmitted(g, u.VCPUs); need > 0 {
		what := "the job"
		if g.Key.Gang > 0 {
			what = "the gang"
		}
		return e.verdict(drover.ReasonUserLimit, "it needs at least %v vCPUs, and limits.vcpus is %v for each user; raise the limit, or make %s smaller", need, u.VCPUs, what)
	}
	if need := e.gangSpans(g); u.Instances > 0 && need > u.Instances {
		return e.verdict(drover.ReasonUserLimit, "the gang needs at least %d instances, and limits.instances is %d for each user; raise the limit, or make the gang smaller", need, u.Instances)
	}
	if left.Instances != nil {
		has = fmt.Sprintf("%s, and limits.instances is %d", countOf(u.Instances-*left.Instances, "instance"), u.Instances)
	}
	if left.CPU != nil && (left.Instances == nil || *left.Instances > 0) {
		has = fmt.Sprintf("instances with a total of %v vCPUs, and limits.vcpus is %v", u.VCPUs-*left.CPU, u.VCPUs)
	}
	return e.verdict(drover.ReasonUserLimit, "user %s has %s; wait until an instance has room or is gone", g.Key.User, has)
}

// gangSpans returns how many instances the group's next gang needs at least; 0 if it is not a gang, or none fits.
func (e *Engine) gangSpans(g *group) int {
	if g.Key.Gang == 0 {
		return 0
	}
	n := g.Next()
	clouds := e.mostFor(g, n)
	if len(clouds) == 0 {
		return 0
	}
	return (n + clouds[0].each - 1) / clouds[0].each
}

// neverAdmitted returns the vCPUs that the group's jobs need at least, if a limit on a user's vCPUs never admits them;
// otherwise 0.
func (e *Engine) neverAdmitted(g *group, most drover.MilliCPU) drover.MilliCPU {
	gang, least := g.Key.Shape.Need.CPU*drover.MilliCPU(g.Key.Gang), drover.MilliCPU(0)
	if most == 0 {
		return 0
	}
	for _, o := range e.market.Offerings() { // of the smallest type that fits them
		if cpu := o.Type.Resources.CPU; (least == 0 || cpu < least) && g.Key.Shape.Accepts(o) {
			if least = cpu; max(gang, least) <= most {
				return 0
			}
		}
	}
	if need := max(gang, least); need > most {
		return need
	}
	return 0
}

// userLimited reports whether only the user's own limit prevents renting for the group, and why.
func (e *Engine) userLimited(g *group) (why Verdict, limited bool) {
	if !e.limitsUsers() || e.totalRoom() == 0 {
		return why, false
	}
	l := e.userLimit(g.demand.Owner)
	few := l.Instances != nil && (*l.Instances == 0 || g.Key.Gang > 0 && *l.Instances < min(e.totalRoom(), g.Key.Gang))
	if !few && l.CPU == nil {
		return why, false
	}
	left, need := e.limitsLeft(), g.Key.Shape.Need.CPU*drover.MilliCPU(max(1, g.Key.Gang))
	for o := range e.rentableFor(g) {
		if e.cloudRoom(o.Cloud) > 0 && left.Passed(o) == nil {
			if few || l.CPU != nil && *l.CPU < max(need, o.Type.Resources.CPU) {
				return e.whyUserLimit(g, l), true
			}
			return why, false
		}
	}
	return why, false
}

// totalRoom returns how many instances may be added under the limits of the fleet and its clouds.
func (e *Engine) totalRoom() int {
	clouds := 0
	for _, c := range e.clouds {
		clouds += e.cloudRoom(c.Name)
	}
	return min(e.room(), clouds)
}

const unlimited = 1 << 20

// room returns how many instances may be added to the fleet.
func (e *Engine) room() int { return roomFor(e.s.Settings.MaxInstances, e.fleet.Len()) }

// cloudRoom returns how many instances may be added in a cloud.
func (e *Engine) cloudRoom(cloud string) int {
	limits := e.limits(cloud)
	if limits.Leaving {
		return 0
	}
	return roomFor(limits.MaxInstances, e.fleet.In(cloud))
}

// roomFor returns how many instances may be added to those that exist, if most are allowed; 0 is no limit.
func roomFor(most, exist int) int {
	if most == 0 {
		return unlimited
	}
	return max(0, most-exist)
}
