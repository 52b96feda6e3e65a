package fleet

import (
	"slices"

	"drover"
)

// Census counts the instances by kind, so that waiting classes need not visit each instance. It belongs to one revision and is immutable.
type Census struct {
	revision   int
	Kinds      []Kind
	Creating   []*Member // those whose clouds have not chosen yet what they are
	withLosses []*Member // that have lost jobs while they lived
}

// Kind is a set of instances that, once empty, can run the same jobs and equally many of them.
type Kind struct {
	One    *Member // any of them
	Made   *Member // one whose cloud has chosen what it is; nil if there is none
	Count  int     // how many such there are
	Takers int     // how many of all take work, or will
}

// owned is how much each owner has, at one revision. It is counted more often than kinds are, so it is apart from the census.
type owned struct {
	revision int
	by       map[string]Owned // by the mark of whose they are
}

// Owned is how much the instances of one owner are.
type Owned struct {
	Instances int
	CPU       drover.MilliCPU
}

// Owned is how much the owner with a mark has.
func (f *Fleet) Owned(mark string) Owned {
	if f.owned.by == nil || f.owned.revision != f.revision {
		f.owned = owned{f.revision, f.countOwned()}
	}
	return f.owned.by[mark]
}

func (f *Fleet) countOwned() map[string]Owned {
	by := map[string]Owned{}
	for _, in := range f.members {
		o := by[in.Owner]
		by[in.Owner] = Owned{o.Instances + 1, o.CPU + in.Resources.CPU}
	}
	return by
}

// kindKey is what the instances of a kind have in common.
type kindKey struct {
	cloud, zone string
	typ         drover.InstanceType
	market      drover.Market
	price       drover.Money
	has, grown  drover.Resources
	owner       string
	sharing     drover.Sharing
	once, used  bool
	noJobs      bool
}

func (in *Member) kindKey() kindKey {
	return kindKey{in.Cloud, in.Zone, in.Type, in.Market, in.Price, in.Resources, in.Expanded(), in.Owner, in.Sharing, in.UseOnce, in.Used && in.Owner == "", in.NoJobs}
}

// Census is the present one.
func (f *Fleet) Census() *Census {
	if f.census == nil || f.census.revision != f.revision {
		f.census = f.takeCensus()
	}
	return f.census
}

func (f *Fleet) takeCensus() *Census {
	c := &Census{revision: f.revision}
	seen := map[kindKey]int{}
	for _, in := range f.members {
		k := in.kindKey()
		at, known := seen[k]
		if !known {
			at = len(c.Kinds)
			seen[k] = at
			c.Kinds = append(c.Kinds, Kind{One: in})
		}
		if len(in.Candidates) > 0 {
			c.Creating = append(c.Creating, in)
		} else {
			c.Kinds[at].Made = in
			c.Kinds[at].Count++
		}
		if in.Serving() {
			c.Kinds[at].Takers++
		}
		if len(in.Lost) > 0 {
			c.withLosses = append(c.withLosses, in)
		}
	}
	return c
}

// MayServe reports whether the demand's jobs may ever run on an instance that there is.
func (c *Census) MayServe(d *Demand) bool {
	return slices.ContainsFunc(c.Kinds, func(k Kind) bool { return k.Takers > 0 && k.One.Accepts(d) })
}

// Hold is how many of a demand's jobs the instances that take work hold when they are empty, at most n on each. Those that have lost the job are left out.
func (c *Census) Hold(d *Demand, n int, job int64) (count int) {
	each := func(in *Member) int { return in.Resources.Times(d.Shape.Need, in.AtOnce(n)) }
	for _, k := range c.Kinds {
		if k.Takers > 0 && k.One.Accepts(d) {
			count += k.Takers * each(k.One)
		}
	}
	for _, in := range c.withLosses {
		if in.Serving() && in.Accepts(d) && slices.Contains(in.Lost, job) {
			count -= each(in)
		}
	}
	return count
}
