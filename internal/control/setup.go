package control

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"drover"
	"drover/driver"
	"drover/driver/middleware"
	"drover/internal/engine"
	"drover/internal/logkey"
)

// setup is a Setup in use. It never changes: a new one replaces it.
type setup struct {
	Setup
	clouds map[string]*cloud
}

// newSetup puts a Setup to use. Observations of clouds that existed before are kept, and a cloud that is left out stays
// for effects in progress.
func (c *Controller) newSetup(s Setup, before map[string]*cloud) *setup {
	now := &setup{Setup: s, clouds: maps.Clone(before)}
	if now.clouds == nil {
		now.clouds = map[string]*cloud{}
	}
	for _, cc := range s.Clouds {
		cl := &cloud{Cloud: cc, cloudView: &cloudView{seen: map[string]driver.Instance{}, created: map[string]driver.Instance{}}}
		old := before[cc.Name]
		if old != nil {
			cl.cloudView = old.cloudView
		}
		if old != nil && old.Driver == cc.Driver {
			cl.own = old.own
		} else {
			cl.own = middleware.ForFleet(cc.Driver, c.cfg.Fleet)
			cl.own.LogOthers(c.cfg.Log.With(logkey.Cloud, cc.Name))
		}
		now.clouds[cc.Name] = cl
	}
	return now
}

// cloud returns the open cloud with this name.
func (c *Controller) cloud(name string) (*cloud, error) {
	if cl := c.current().clouds[name]; cl != nil {
		return cl, nil
	}
	return nil, drover.Errorf(drover.KindInvalid, "cloud %s is not configured", name)
}

func (c *Controller) current() *setup {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.setup
}

// Clouds returns the clouds in use.
func (c *Controller) Clouds() []Cloud { return c.current().Clouds }

// Reconfigure applies another Setup from the next decision on, or keeps the current one and returns why. Calls in
// progress finish on the drivers they started with. A cloud of the previous Setup must not be left out, but be given as
// Leaving. Only one goroutine at a time may call it.
func (c *Controller) Reconfigure(ctx context.Context, s Setup) error {
	next := c.newSetup(s, c.current().clouds)
	configured, err := c.configured(ctx, next)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.setup = next
	c.mu.Unlock()
	c.resendOrders()
	select {
	case c.events <- engine.Event{At: c.clock.now(), Body: configured}:
		return nil
	case <-c.ended:
		return errEnded
	case <-ctx.Done():
		return ctx.Err()
	}
}

// configured returns the event with a setup's settings, and what new budgets have already spent.
func (c *Controller) configured(ctx context.Context, s *setup) (engine.Configured, error) {
	settings := s.able()
	spent, err := c.cfg.Store.Spent(ctx, c.clock.now(), settings.Budgets)
	return engine.Configured{Settings: settings, Spent: spent}, err
}

// able returns the settings with the abilities of the clouds' drivers.
func (s *setup) able() engine.Settings {
	settings := s.Settings
	settings.Clouds = slices.Clone(settings.Clouds)
	for i := range settings.Clouds {
		if cl := s.clouds[settings.Clouds[i].Name]; cl != nil {
			_, settings.Clouds[i].GrowDisk = driver.As[driver.DiskGrower](cl.own)
			_, settings.Clouds[i].Describe = driver.As[driver.Describer](cl.own)
			settings.Clouds[i].ListLag = cl.own.Capabilities().Lag()
			billing, own := &settings.Clouds[i].Billing, cl.own.Capabilities().Billing
			billing.Least, billing.Period = own.Least, cmp.Or(billing.Period, own.Period)
		}
	}
	return settings
}

var _ drover.Service = (*Controller)(nil)

// Foresee returns what would happen to instances under other settings. A cloud that they leave out drains. Nothing is
// changed.
func (c *Controller) Foresee(ctx context.Context, s engine.Settings) ([]drover.Fate, error) {
	next, err := c.configured(ctx, &setup{Setup: Setup{Settings: s}, clouds: c.current().clouds})
	if err != nil {
		return nil, err
	}
	var state engine.State
	if err := c.Query(ctx, func(e *engine.Engine) { state = e.State() }); err != nil {
		return nil, err
	}
	return engine.Foresee(state, next)
}
