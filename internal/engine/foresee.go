package engine

import (
	"cmp"
	"slices"

	"drover"
	"drover/internal/engine/fleet"
	"drover/internal/engine/pool"
)

// mostNamed is how many instances of one fate are named.
const mostNamed = 20

// Foresee predicts what the decision that applies new settings does to instances, and which of the remaining ones are
// replaced in steps afterwards. It owns the State given; the engine it came from does not change.
func Foresee(s State, next Configured) ([]drover.Fate, error) {
	for _, old := range s.Settings.Clouds { // omitted clouds are not forgotten
		if !slices.ContainsFunc(next.Settings.Clouds, func(c CloudSettings) bool { return c.Name == old.Name }) {
			old.Leaving = true
			next.Settings.Clouds = append(next.Settings.Clouds, old)
		}
	}
	slices.SortFunc(next.Settings.Clouds, func(a, b CloudSettings) int { return cmp.Compare(a.Name, b.Name) })
	e, err := New(s)
	if err != nil {
		return nil, err
	}
	e.Apply(Event{At: e.s.Now, Body: Ticked{}}) // so that what is due now does not count as a change
	before, lacked := map[int64]drover.FateKind{}, map[string]int{}
	for _, in := range e.fleet.All() {
		before[in.ID], _ = e.fateOf(in)
	}
	for _, p := range e.Pools() {
		lacked[p.Name] = p.Wanted - p.Instances
	}
	e.Apply(Event{At: e.s.Now, Body: next})
	var all fates
	for _, in := range e.fleet.All() {
		was, known := before[in.ID]
		switch now, why := e.fateOf(in); {
		case !known && in.State != drover.InstanceStopping:
			all.add(drover.FateCreate, in, nil)
		case known && now != was && now != "":
			all.add(now, in, why)
		}
	}
	for _, p := range e.Pools() {
		if lack := p.Wanted - p.Instances; lack > 0 && lack != lacked[p.Name] && p.Reason != nil {
			all = append(all, drover.Fate{Kind: drover.FateWait, Count: lack, Pool: p.Name, Reason: p.Reason})
		}
	}
	all.sort()
	return all, nil
}

// fateOf returns what happens to an instance, and why; empty: it stays.
func (e *Engine) fateOf(in *fleet.Member) (drover.FateKind, *drover.Reason) {
	p := e.pool(in.Pool)
	why, departs := e.departs(in)
	switch {
	case in.State == drover.InstanceStopping:
		return drover.FateDestroy, e.told(in.Reason)
	case departs:
		return drover.FateDrain, e.told(&why)
	case p != nil && !in.Held() && !p.spec.Allows(pool.Place{Cloud: in.Cloud, Zone: in.Zone}):
		return drover.FateReplace, new(e.whyReleased(p, pool.Misplaced, 0).Reason())
	case p != nil && !in.Held() && in.Template != "" && in.Template != p.spec.Template:
		return drover.FateReplace, new(e.whyReleased(p, pool.Outdated, 0).Reason())
	case !in.Held() && e.jobless(in):
		return drover.FateReplace, new(e.whyReleased(p, pool.Unusable, 0).Reason())
	case in.State == drover.InstanceStopped && in.Waking:
		return drover.FateStart, e.told(in.Reason)
	case in.State == drover.InstanceStopped:
		return drover.FateStop, e.told(in.Reason)
	}
	return "", nil
}

// fates merges equal fates.
type fates []drover.Fate

func (f *fates) add(kind drover.FateKind, in *fleet.Member, why *drover.Reason) {
	one := drover.Fate{Kind: kind, Pool: in.Pool, Cloud: in.Cloud, Zone: in.Zone, Type: in.Type.Name, Reason: why}
	at := slices.IndexFunc(*f, func(o drover.Fate) bool { return o.Kind == kind && compareFates(o, one) == 0 })
	if at < 0 {
		at = len(*f)
		*f = append(*f, one)
	}
	same := &(*f)[at]
	if same.Count++; kind != drover.FateCreate && len(same.Names) < mostNamed {
		same.Names = append(same.Names, in.Name)
	}
}

func (f fates) sort() {
	order := func(k drover.FateKind) int { return slices.Index(drover.Fates(), k) }
	slices.SortStableFunc(f, func(a, b drover.Fate) int {
		return cmp.Or(cmp.Compare(order(a.Kind), order(b.Kind)), compareFates(a, b))
	})
}

// compareFates orders fates of one kind.
func compareFates(a, b drover.Fate) int {
	text := func(r *drover.Reason) string {
		if r == nil {
			return ""
		}
		return r.Text
	}
	return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Cloud, b.Cloud), cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.Type, b.Type), cmp.Compare(text(a.Reason), text(b.Reason)))
}
