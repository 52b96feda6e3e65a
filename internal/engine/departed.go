package engine

import (
	"fmt"
	"slices"
	"time"

	"drover"
)

// Departed is an instance that is gone, as it last was. It is remembered, since a list may show it again: then it goes on with the record
// and the bill that it has, and nothing of it is billed twice. One is never changed: there may be a thousand, and every State has them.
type Departed struct {
	Instance Instance     `json:"instance"`
	At       drover.Time  `json:"at"` // when it was held to be gone
	Cost     drover.Money `json:"cost"`
	Shown    *Sighting    `json:"shown,omitempty"` // observed: the last good list has it, as this
}

// Departed instances are remembered for an hour, and beyond that as many as this. No cloud's lists are known to lag nearly as long.
const (
	departedFor   = time.Hour
	departedLeast = 1000
)

// depart remembers an instance that is gone; nil if no list can show it.
func (e *Engine) depart(in *instance, was drover.InstanceState, cost drover.Money) *Departed {
	if in.ProviderID == "" {
		return nil
	}
	last := in.clone().Durable()
	last.State, last.Candidates, last.Bound = was, nil, nil
	d := &Departed{Instance: last, At: e.s.Now, Cost: cost}
	e.s.Departed = append(e.s.Departed, d)
	for len(e.s.Departed) > departedLeast && e.s.Departed[0].At.Add(departedFor) < e.s.Now {
		e.s.Departed = e.s.Departed[1:]
	}
	return d
}

// shown notes as what the last list has the departed instance at a place, nil if it has not.
func (e *Engine) shown(at int, as *Sighting) {
	d := *e.s.Departed[at]
	d.Shown = as
	e.s.Departed[at] = &d
}

// Durable is the instance without what has to be observed again.
func (in Instance) Durable() Instance {
	in.Observed = Observed{}
	return in
}

// departed is where the instance with a cloud's id is among those that are gone, -1 if it is not.
func (e *Engine) departed(cloud, id string) int {
	return slices.IndexFunc(e.s.Departed, func(d *Departed) bool { return d.Instance.Cloud == cloud && d.Instance.ProviderID == id })
}

// reviveListed goes on with the departed instances that a list shows which is too new to be a stale copy. Until there is one the others
// are waited for.
func (e *Engine) reviveListed(c *Cloud) {
	lag := e.limits(c.Name).ListLag
	var ready []*Departed // seldom any of the many
	for _, d := range e.s.Departed {
		switch {
		case d.Shown == nil || d.Instance.Cloud != c.Name:
		case c.Good >= d.At.Add(lag):
			ready = append(ready, d)
		default:
			e.lookAt(c, d.At.Add(lag))
		}
	}
	for _, d := range ready {
		e.revive(c, d)
	}
}

// revive goes on with an instance that was held to be gone and is there. If it was told to go it is told again.
func (e *Engine) revive(c *Cloud, d *Departed) {
	e.s.Departed = slices.DeleteFunc(e.s.Departed, func(o *Departed) bool { return o == d })
	in := &instance{Instance: d.Instance.clone()}
	e.unsettleInstance(in, d.Cost)
	in.Revived, in.Seen, in.Listed, in.Known, in.Silent = true, true, true, e.s.Now, e.s.Now
	in.EndKnown = 0
	if in.State != drover.InstanceStopping {
		in.State, in.Ended = drover.InstanceUnknown, 0
		if !in.Broken {
			in.Reason = in.remark()
		}
	}
	e.addInstance(in)
	e.nodeBack(in)
	e.writeInstance(in)
	e.rates = true
	e.note(Note{Level: Warn, Text: fmt.Sprintf("cloud %s lists instance %s again, which was held to be gone: its record and its bill go on", c.Name, in.Name), Instance: in.Name, Cloud: c.Name})
	e.show(c, in, *d.Shown)
}

// ghosts reports whether a list shows an instance that is held to be gone, so that it is not certain yet.
func (e *Engine) ghosts() bool {
	return slices.ContainsFunc(e.s.Departed, func(d *Departed) bool { return d.Shown != nil })
}
