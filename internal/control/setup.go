package control

import (
	"context"
	"slices"

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
// of the Setup before is never left out, but given as Leaving.
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

// Clouds are the settings of the clouds in use.
func (c *Controller) Clouds() []engine.CloudSettings {
	return slices.Clone(c.current().Settings.Clouds)
}

var _ drover.Service = (*Controller)(nil)
