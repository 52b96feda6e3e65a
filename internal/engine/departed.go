package engine

import (
	"fmt"

	"drover"
)

// reviveListed goes on with the departed instances that a list shows which is too new to be a stale copy. Until there is one the others
// are waited for.
func (e *Engine) reviveListed(c *Cloud) {
	lag := e.limits(c.Name).ListLag
	var ready []*Departed // seldom any of the many
	for _, d := range e.fleet.Departed() {
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
	in := e.fleet.Return(d)
	e.unsettleInstance(in, d.Cost)
	in.Revived, in.Seen, in.Listed, in.Known, in.Silent = true, true, true, e.s.Now, e.s.Now
	in.EndKnown = 0
	if in.State != drover.InstanceStopping {
		in.State, in.Ended = drover.InstanceUnknown, 0
		if !in.Broken {
			in.Reason = in.Remark()
		}
	}
	e.addInstance(in)
	e.nodeBack(in)
	e.writeInstance(in)
	e.rates = true
	e.note(Note{Level: Warn, Text: fmt.Sprintf("cloud %s lists instance %s again, which was held to be gone: its record and its bill go on", c.Name, in.Name), Instance: in.Name, Cloud: c.Name})
	e.show(c, in, *d.Shown)
}
