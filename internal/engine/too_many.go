package engine

import (
	"cmp"
	"slices"

	"drover"
)

// A gang that is too large for as many instances as there may be waits until the configuration changes, or what is offered, and is told so: no instance
// that goes makes room for it.

// most is how many instances a cloud may have, and how many of a gang's jobs the largest of them holds.
type most struct{ instances, each int }

// whyTooMany says that the group's next gang cannot come together on as many instances as may be there at once; nil if it can, or is none.
func (e *Engine) whyTooMany(g *group) *Verdict {
	if g.Key.Gang == 0 || g.Queued == 0 {
		return nil
	}
	_, members := g.NextGang()
	clouds := e.mostFor(g, len(members))
	room := e.s.Settings.MaxInstances
	if room == 0 {
		room = unlimited
	}
	holds, may := 0, 0
	for _, c := range clouds {
		n := min(c.instances, room)
		room, may = room-n, may+n
		holds += min(len(members), n*min(c.each, len(members)))
	}
	if len(clouds) == 0 || holds >= len(members) {
		return nil
	}
	need := (len(members) + clouds[0].each - 1) / clouds[0].each
	why := e.verdict(drover.ReasonLimit, "its gang has %d jobs, and the %s that max_instances allows can hold only %d of them; it needs at least %d: raise the limit, or make the gang smaller",
		len(members), countOf(may, "instance"), holds, need)
	return &why
}

// mostFor is what each cloud may have for a gang of so many, the one with the largest instances first; those that have nothing for it are left out.
func (e *Engine) mostFor(g *group, members int) (clouds []most) {
	each := map[string]int{}
	hold := func(cloud string, n int) { each[cloud] = max(each[cloud], n) }
	for _, o := range e.market.Offerings() {
		if g.Key.Shape.Accepts(o) {
			hold(o.Cloud, e.atOnce(timesOn(o.Type, o.Type.Resources, g.Key.Shape.Need, members)))
		}
	}
	for _, k := range e.fleet.Census().Kinds { // of a type that is no longer offered
		if in := k.One; in.Accepts(&g.demand) {
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

// atOnce is how many of so many jobs an instance may be given.
func (e *Engine) atOnce(n int) int {
	if e.life().UseOnce {
		return min(n, 1)
	}
	return n
}

// timesOn is how many of n jobs an instance of a type holds that has so much; where its disk is a volume, that is made as large as they need.
func timesOn(t drover.InstanceType, has, need drover.Resources, n int) int {
	if t.Resources.Disk == 0 {
		has.Disk = need.Disk * drover.Bytes(n)
	}
	return has.Times(need, n)
}
