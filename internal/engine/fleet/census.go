package fleet

import (
	"slices"

	"drover"
)

// Census counts the instances by kind, so that waiting classes need not visit each instance. Revise says which
// instances to count anew.
type Census struct {
	Kinds      []*Kind   // in no particular order
	Creating   []*Member // those whose clouds have not chosen a candidate yet, by ID
	withLosses []*Member // those that lost jobs while alive, by ID
	byKey      map[kindKey]*Kind
	owned      map[string]Owned // by owner mark
	revised    []*Member        // changed since they were counted
}

// Kind is a set of instances that, once empty, can run the same jobs and equally many of them. Either all of them are
// being destroyed or none is.
type Kind struct {
	key     kindKey
	members []*Member // in no particular order
	Takers  int       // how many of them take work, now or later
}

// Creating reports whether their clouds have not chosen a candidate yet.
func (k *Kind) Creating() bool { return k.key.creating }

// One returns any instance of the kind.
func (k *Kind) One() *Member { return k.members[0] }

// MayServe reports whether one of them may ever run the demand's jobs.
func (k *Kind) MayServe(d *Demand) bool { return k.Takers > 0 && k.One().Accepts(d) }

// Len returns how many instances are of the kind.
func (k *Kind) Len() int { return len(k.members) }

// Owned is the size of one owner's instances, except those of pools, which stay whatever the owner does. One that is
// being created counts as its largest candidate.
type Owned struct {
	Instances int
	CPU       drover.MilliCPU
}

// Owned returns what the owner with a mark has.
func (f *Fleet) Owned(mark string) Owned { return f.Census().owned[mark] }

// kindKey identifies the instances of a kind.
type kindKey struct {
	cloud, zone string
	typ         drover.InstanceType
	market      drover.Market
	price       drover.Money
	has, grown  drover.Resources
	mostCPU     drover.MilliCPU // of the candidates, since its cloud may choose any
	owner       string
	sharing     drover.Sharing
	once, used  bool
	noJobs      bool
	pooled      bool
	creating    bool
	stopping    bool
}

func (in *Member) kindKey() kindKey {
	return kindKey{in.Cloud, in.Zone, in.Type, in.Market, in.Price, in.Resources, in.Expanded(), in.mostCPU(), in.Owner, in.Sharing, in.UseOnce, in.Used && in.Owner == "", in.NoJobs, in.Pooled(), len(in.Candidates) > 0, in.State == drover.InstanceStopping}
}

// mostCPU returns the CPUs of the largest of an instance's candidates; its own once its cloud has chosen.
func (in *Member) mostCPU() drover.MilliCPU {
	most := in.Resources.CPU
	for i := range in.Candidates {
		most = max(most, in.Candidates[i].Type.Resources.CPU)
	}
	return most
}

// counted records how an instance is counted in the census.
type counted struct {
	revised          bool
	kind             *Kind // nil: not counted
	at               int   // its place among the kind's members
	takes            bool
	creating, losses bool
}

// Census returns the current census.
func (f *Fleet) Census() *Census {
	c := &f.census
	for _, in := range c.revised {
		in.counted.revised = false
		c.uncount(in)
		if in.State != drover.InstanceGone {
			c.count(in)
		}
	}
	c.revised = c.revised[:0]
	return c
}

func (c *Census) count(in *Member) {
	key := in.kindKey()
	k := c.byKey[key]
	if k == nil {
		if c.byKey == nil {
			c.byKey, c.owned = map[kindKey]*Kind{}, map[string]Owned{}
		}
		k = &Kind{key: key}
		c.byKey[key] = k
		c.Kinds = append(c.Kinds, k)
	}
	in.counted.kind, in.counted.at, in.counted.takes = k, len(k.members), in.Serving()
	k.members = append(k.members, in)
	if in.counted.takes {
		k.Takers++
	}
	c.own(key, 1)
	enter(&c.Creating, &in.counted.creating, in, key.creating)
	enter(&c.withLosses, &in.counted.losses, in, len(in.Lost) > 0)
}

// uncount takes an instance out, as it was when it was counted.
func (c *Census) uncount(in *Member) {
	k := in.counted.kind
	if k == nil {
		return
	}
	last := k.members[len(k.members)-1]
	k.members[in.counted.at], last.counted.at = last, in.counted.at
	if k.members = k.members[:len(k.members)-1]; len(k.members) == 0 {
		delete(c.byKey, k.key)
		c.Kinds = slices.DeleteFunc(c.Kinds, func(o *Kind) bool { return o == k })
	}
	if in.counted.takes {
		k.Takers--
	}
	c.own(k.key, -1)
	in.counted.kind = nil
	enter(&c.Creating, &in.counted.creating, in, false)
	enter(&c.withLosses, &in.counted.losses, in, false)
}

// remove takes out an instance that is gone, and keeps the list of revised ones in proportion to those that remain:
// a fleet without limits may never be counted.
func (c *Census) remove(in *Member, remain int) {
	c.uncount(in)
	if len(c.revised) > 2*remain+16 {
		c.revised = slices.DeleteFunc(c.revised, func(in *Member) bool { return in.State == drover.InstanceGone })
	}
}

// own adds n instances of a kind to what their owner has.
func (c *Census) own(key kindKey, n int) {
	if key.pooled {
		return
	}
	o := c.owned[key.owner]
	o = Owned{o.Instances + n, o.CPU + drover.MilliCPU(n)*key.mostCPU}
	if c.owned[key.owner] = o; o.Instances == 0 {
		delete(c.owned, key.owner)
	}
}

// Takers returns how many instances take work, now or later.
func (c *Census) Takers() (count int) {
	for _, k := range c.Kinds {
		count += k.Takers
	}
	return count
}

// MayServe reports whether an existing instance may ever run the demand's jobs.
func (c *Census) MayServe(d *Demand) bool {
	return slices.ContainsFunc(c.Kinds, func(k *Kind) bool { return k.MayServe(d) })
}

// Hold returns how many of a demand's jobs fit on the instances that take work when empty, at most n on each, except
// those that have lost the job.
func (c *Census) Hold(d *Demand, n int, job int64) (count int) {
	each := func(in *Member) int { return in.Resources.Times(d.Shape.Need, in.AtOnce(n)) }
	for _, k := range c.Kinds {
		if k.MayServe(d) {
			count += k.Takers * each(k.One())
		}
	}
	for _, in := range c.withLosses {
		if in.Serving() && in.Accepts(d) && slices.Contains(in.Lost, job) {
			count -= each(in)
		}
	}
	return count
}
