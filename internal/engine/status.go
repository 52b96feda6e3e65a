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
	at := slices.IndexFunc(e.fleet.All(), func(in *fleet.Member) bool { return in.ProviderID == name && name != "" })
	if at < 0 {
		return nil
	}
	return e.fleet.All()[at]
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
