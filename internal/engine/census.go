package engine

import (
	"slices"

	"drover"
	"drover/internal/engine/fleet"
)

// Census is the fleet in numbers, all from one moment.
type Census struct {
	Status
	Stock   []Stock       // ordered by when the first instance was requested
	Blocks  []Block       // in force
	Clouds  []Sight       // by name
	Budgets []BudgetState // as configured
}

// Sight is how well the controller sees a cloud and its instances.
type Sight struct {
	Cloud     string
	Listed    drover.Time // when its last good list was taken, 0 if never
	Partition bool        // the controller assumes a network partition
	Throttles int         // offerings with fewer requests at a time than allowed
}

// Stock is the instances of one type and state.
type Stock struct {
	StockKey
	Instances int
	Connected int          // with an open control stream
	Hourly    drover.Money // price of the billed ones
	Has       drover.Resources
	Used      drover.Resources // of Has, by attempts
	UsedPrice drover.Money     // of Hourly, by attempts' part of the vCPUs
}

// StockKey identifies the instances of a Stock.
type StockKey struct {
	Cloud  string
	Type   string
	Market drover.Market
	State  drover.InstanceState
	Idle   drover.IdleBehavior
}

// Census counts, visiting each held job, each group and each instance once.
func (e *Engine) Census() Census {
	over := func(b Block) bool { return b.Over }
	c := Census{Status: e.Status(), Budgets: e.Budgets(), Blocks: slices.DeleteFunc(slices.Clone(e.market.Blocks()), over)}
	for _, cl := range e.clouds {
		c.Clouds = append(c.Clouds, Sight{cl.Name, cl.Listed, cl.Partition.Since != 0, len(cl.Throttles)})
	}
	at := map[StockKey]int{} // index into c.Stock
	for _, in := range e.fleet.All() {
		key := StockKey{in.Cloud, in.Type.Name, in.Market, in.State, in.Idle}
		i, known := at[key]
		if !known {
			i, at[key] = len(c.Stock), len(c.Stock)
			c.Stock = append(c.Stock, Stock{StockKey: key})
		}
		c.Stock[i].add(in)
	}
	return c
}

func (s *Stock) add(in *fleet.Member) {
	used := in.Resources.Minus(in.Free, 1)
	s.Instances++
	s.Has, s.Used = s.Has.Plus(in.Resources, 1), s.Used.Plus(used, 1)
	if in.Connected || in.NoLogin {
		s.Connected++
	}
	if in.Created == 0 {
		return
	}
	s.Hourly += in.Price
	if used.CPU > 0 {
		s.UsedPrice += in.Price.Part(int64(used.CPU), int64(max(used.CPU, in.Resources.CPU)))
	}
}
