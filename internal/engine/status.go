package engine

import (
	"slices"
	"strconv"

	"drover"
	"drover/internal/engine/fleet"
)

// Status summarizes the fleet.
type Status struct {
	Now       drover.Time                  `json:"now"`
	Instances map[drover.InstanceState]int `json:"instances"`
	Running   int                          `json:"running"`  // attempts
	Queued    int                          `json:"queued"`   // elements, including those that wait for other jobs
	Waiting   []drover.Waiting             `json:"waiting"`  // in order of service
	Standing  []drover.Waiting             `json:"standing"` // instances that run nothing, by what they wait for
	Hourly    drover.Money                 `json:"hourly"`   // price of everything billed
	Spent     drover.Money                 `json:"spent"`
	Jobs      int                          `json:"jobs"` // not final
	Paused    *drover.Reason               `json:"paused,omitempty"`
	Draining  bool                         `json:"draining,omitempty"`
}

// Status summarizes the present, visiting each job once.
func (e *Engine) Status() Status {
	s := Status{Now: e.s.Now, Instances: map[drover.InstanceState]int{}, Spent: e.spent(), Jobs: e.queue.Len(), Paused: e.s.Paused, Draining: e.s.Draining}
	for _, in := range e.fleet.All() {
		s.Instances[in.State]++
		if in.Created != 0 {
			s.Hourly += in.Price
		}
		for _, a := range in.Load {
			if a.State != drover.AttemptCollecting {
				s.Running++
			}
		}
	}
	s.Waiting, s.Queued = e.waiting()
	s.Standing = e.standing()
	return s
}

// Instances lists the instances by ID. The values share no memory with the engine.
func (e *Engine) Instances() []Instance {
	list := make([]Instance, 0, e.fleet.Len())
	for _, in := range e.fleet.All() {
		list = append(list, in.Clone())
	}
	return list
}

// Find returns an instance by its ID, its name, or its cloud's ID.
func (e *Engine) Find(name string) (Instance, bool) {
	if in := e.find(name); in != nil {
		return in.Clone(), true
	}
	return Instance{}, false
}

func (e *Engine) find(name string) *fleet.Member {
	if id, err := strconv.ParseInt(name, 10, 64); err == nil {
		if in := e.fleet.Member(id); in != nil {
			return in
		}
	}
	if in := e.fleet.Named(name); in != nil {
		return in
	}
	for _, in := range e.fleet.All() {
		if in.ProviderID == name && name != "" {
			return in
		}
	}
	return nil
}

// Catalogue returns the offerings of all enabled clouds, including blocked ones, and whether all their catalogues are
// known. The slice is shared and never changed by anyone, so it may be read outside the loop.
func (e *Engine) Catalogue() (offerings []drover.Offering, known bool) {
	return e.market.Offerings(), e.market.Complete()
}

// Attempts lists the live attempts, by instance.
func (e *Engine) Attempts() (list []Attempt) {
	for _, in := range e.fleet.All() {
		for _, a := range in.Load {
			list = append(list, *a)
		}
	}
	return list
}

// AtRest reports whether nothing is left: no unfinished job and no instance, not even one that only its cloud knows,
// since each cloud was listed.
func (e *Engine) AtRest() bool {
	return e.queue.Len() == 0 && e.fleet.Len() == 0 && e.allListed() && len(e.fleet.Shown()) == 0
}

// allListed reports whether every cloud has been listed: the records must be proven current, and a list must be late
// enough to show what an unanswered create call may have made.
func (e *Engine) allListed() bool {
	return e.recordsCurrent() && !slices.ContainsFunc(e.clouds, func(c *Cloud) bool {
		return c.Listed == 0 || c.Unsure != 0 && c.Good < c.Unsure.Add(fleet.LostGap+e.limits(c.Name).ListLag)
	})
}

// Drained reports whether nothing is left except waiting work and held instances: no live attempt and no other
// instance, not even one that only its cloud knows, since each cloud was listed.
func (e *Engine) Drained() bool {
	unheld := func(in *fleet.Member) bool { return !in.Held() }
	return e.fleet.Attempts() == 0 && !slices.ContainsFunc(e.fleet.All(), unheld) && e.allListed()
}

// ListedTwice reports whether every cloud has been listed twice, further apart than its lists lag. Only then do the
// lists show everything that existed when this controller started, whatever its records say.
func (e *Engine) ListedTwice() bool {
	return !slices.ContainsFunc(e.clouds, func(c *Cloud) bool { return !c.Twice })
}

// Where returns the instance of a live attempt.
func (e *Engine) Where(id drover.AttemptID) (instance int64, live bool) {
	if a := e.live(id); a != nil {
		return a.Instance, true
	}
	return 0, false
}

// Census is the fleet in numbers, all from one moment.
type Census struct {
	Status
	Stock   []Stock       // ordered by when the first instance was requested
	Blocks  []Block       // in force
	Clouds  []Sight       // by name
	Budgets []BudgetState // as configured
	Oldest  drover.Time   // since when the first waiting job may start; 0: none
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

// Census counts, visiting each job and each instance once.
func (e *Engine) Census() Census {
	over := func(b Block) bool { return b.Over }
	c := Census{Status: e.Status(), Budgets: e.Budgets(), Blocks: slices.DeleteFunc(slices.Clone(e.market.Blocks()), over)}
	for _, cl := range e.clouds {
		c.Clouds = append(c.Clouds, Sight{cl.Name, cl.Listed, cl.Partition.Since != 0, len(cl.Throttles)})
	}
	for _, g := range e.groups {
		for _, j := range g.Jobs {
			c.Oldest = sooner(c.Oldest, j.Since)
		}
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
