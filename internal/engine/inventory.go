package engine

import (
	"slices"

	"drover"
	"drover/internal/engine/market"
)

// inventory counts what there is, so that not every group that waits goes through all instances. It is good as long as the fleet and the types are as they
// were when it was taken.
type inventory struct {
	fleet, types int
	limitsLeft   market.Limits    // what all limits leave; nil if there are none
	owned        map[string]owned // by the mark of whose they are
	kinds        []stock
	losers       []*instance // that have lost jobs while they lived
}

// stock is the instances of one kind.
type stock struct {
	one    *instance // any of them
	made   *instance // one whose cloud has chosen what it is; nil if there is none
	count  int       // how many such there are
	takers int       // how many of all take work, or will
}

// owned is how much the instances of one owner are.
type owned struct {
	instances int
	cpu       drover.MilliCPU
}

// likeness is what decides whether an instance may run a group's jobs once it is empty, and how many.
type likeness struct {
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

func (in *instance) likeness() likeness {
	return likeness{in.Cloud, in.Zone, in.Type, in.Market, in.Price, in.Resources, in.stretched(), in.Owner, in.sharing, in.once, in.Used && in.Owner == "", in.noJobs}
}

// inventory is the present one. It is not to be changed.
func (e *Engine) inventory() *inventory {
	if e.stock == nil || e.stock.fleet != e.fleet || e.stock.types != e.fitting {
		e.stock = e.takeInventory()
	}
	return e.stock
}

func (e *Engine) takeInventory() *inventory {
	all := &inventory{fleet: e.fleet, types: e.fitting, limitsLeft: e.allLimits(), owned: map[string]owned{}}
	seen := map[likeness]int{}
	for _, in := range e.instances {
		o := all.owned[in.Owner]
		all.owned[in.Owner] = owned{o.instances + 1, o.cpu + in.Resources.CPU}
		k := in.likeness()
		at, known := seen[k]
		if !known {
			at = len(all.kinds)
			seen[k] = at
			all.kinds = append(all.kinds, stock{one: in})
		}
		if len(in.Candidates) > 0 {
			all.limitsLeft.Take(1, e.mayBe(in)...)
		} else {
			all.kinds[at].made = in
			all.kinds[at].count++
		}
		if in.serving() {
			all.kinds[at].takers++
		}
		if len(in.Lost) > 0 {
			all.losers = append(all.losers, in)
		}
	}
	for _, k := range all.kinds {
		if k.count > 0 && len(all.limitsLeft) > 0 {
			all.limitsLeft.Take(k.count, e.mayBe(k.made)...)
		}
	}
	return all
}

// hold is how many of a group's jobs the instances that take work hold when they are empty, at most n on each. Those that have lost the job are left out.
func (all *inventory) hold(g *group, n int, job int64) (count int) {
	each := func(in *instance) int { return in.Resources.Times(g.Key.Shape.Need, in.atOnce(n)) }
	for _, k := range all.kinds {
		if k.takers > 0 && k.one.accepts(g) {
			count += k.takers * each(k.one)
		}
	}
	for _, in := range all.losers {
		if in.serving() && in.accepts(g) && slices.Contains(in.Lost, job) {
			count -= each(in)
		}
	}
	return count
}
