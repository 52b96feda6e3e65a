package fleet

import (
	"slices"

	"drover"
)

// Census counts the instances by kind, so that waiting classes need not visit each instance. It belongs to one revision
// and is immutable.
type Census struct {
	revision   int
	Kinds      []Kind
	Creating   []*Member // those whose clouds have not chosen a candidate yet
	withLosses []*Member // those that lost jobs while alive
}

// Kind is a set of instances that, once empty, can run the same jobs and equally many of them.
type Kind struct {
	One    *Member // any of them
	Made   *Member // one whose cloud has chosen its candidate; nil if there is none
	Count  int     // number of such
	Takers int     // how many of all take work, now or later
}

// owned caches what each owner has, at one revision. It is needed more often than kinds, so it is separate from the
// census.
type owned struct {
	revision int
	by       map[string]Owned // by owner mark
}

// Owned is the size of one owner's instances.
type Owned struct {
	Instances int
	CPU       drover.MilliCPU
}

// Owned returns what the owner with a mark has.
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

// Census returns the current census.
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

// MayServe reports whether an existing instance may ever run the demand's jobs.
func (c *Census) MayServe(d *Demand) bool {
	return slices.ContainsFunc(c.Kinds, func(k Kind) bool { return k.Takers > 0 && k.One.Accepts(d) })
}

// Hold returns how many of a demand's jobs fit on the instances that take work when empty, at most n on each, except
// those that have lost the job.
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
