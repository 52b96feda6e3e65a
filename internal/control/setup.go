package control

import (
	"context"

	"drover"
	"drover/driver"
	"drover/internal/engine"
)

// setup is a Setup in use. It never changes: a new one takes its place.
type setup struct {
	Setup
	clouds map[string]*cloud
}

// newSetup takes a Setup in use. What was observed of a cloud that there was before stays known.
func (c *Controller) newSetup(s Setup, before map[string]*cloud) *setup {
	now := &setup{Setup: s, clouds: map[string]*cloud{}}
	for _, cc := range s.Clouds {
		cl := &cloud{Cloud: cc, own: driver.Own(cc.Driver, c.cfg.Fleet), seen: map[string]driver.Instance{}, created: map[string]driver.Instance{}}
		if old := before[cc.Name]; old != nil {
			cl.inherit(old)
		}
		now.clouds[cc.Name] = cl
	}
	return now
}

func (c *Controller) current() *setup {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.setup
}

// Reconfigure takes another Setup in use, from the next decision on. Calls that are under way end on the drivers they began with. A cloud
// that is left out must have no instances any more; one that is to be left is given with its Settings' Leaving.
func (c *Controller) Reconfigure(ctx context.Context, s Setup) error {
	c.mu.Lock()
	c.setup = c.newSetup(s, c.setup.clouds)
	c.mu.Unlock()
	select {
	case c.events <- engine.Event{At: c.clock.now(), Body: engine.Configured{Settings: s.Settings}}:
		return nil
	case <-c.ended:
		return errEnded
	case <-ctx.Done():
		return ctx.Err()
	}
}

// inherit takes over what was observed of a cloud.
func (cl *cloud) inherit(old *cloud) {
	old.mu.Lock()
	defer old.mu.Unlock()
	for id, in := range old.created {
		cl.created[id] = in
	}
	for id, in := range old.seen {
		cl.seen[id] = in
	}
	cl.listed = old.listed
}

// HasInstances names those of the given clouds in which there are instances.
func (c *Controller) HasInstances(ctx context.Context, clouds []string) (list []string, err error) {
	err = c.Query(ctx, func(e *engine.Engine) {
		there := map[string]bool{}
		for _, in := range e.Instances() {
			there[in.Cloud] = true
		}
		for _, name := range clouds {
			if there[name] {
				list = append(list, name)
			}
		}
	})
	return list, err
}

var _ drover.Service = (*Controller)(nil)
