package control

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"drover"
	"drover/driver"
	"drover/internal/deadman"
	"drover/internal/engine"
	"drover/internal/logkey"
	"drover/internal/wire"
)

// orders returns the current setup's orders, with what the cloud's driver adds. A hold overrides everything automatic,
// even if the controller is lost: an instance that its tag marks as held does not power itself off.
func (l *link) orders() wire.Orders {
	s := l.c.current()
	o := s.Orders
	cl := s.clouds[l.cloud]
	if cl == nil {
		return o
	}
	o.Notices = string(cl.own.Capabilities().Notices)
	in, ok := cl.find(l.provider)
	if ok {
		o.Orphan = s.orphan(in.Tags[driver.TagPool])
	}
	if ok && in.Tags[driver.TagIdle] == string(drover.IdleHold) {
		o.Orphan = 0
	}
	return o
}

// orphan returns the orphan timeout of a pool's instances, or the default if the pool is no longer configured.
func (s *setup) orphan(pool string) time.Duration {
	if p, ok := s.Pools[pool]; ok {
		return p.Orphan
	}
	return s.Orders.Orphan
}

// probe returns the boot probe of a pool's instances, or of all others.
func (s *setup) probe(pool string) string { return cmp.Or(s.Pools[pool].Probe, s.Probe) }

// order sends the current orders to an instance's runner, unless it has them.
func (l *link) order() {
	l.ordering.Lock()
	defer l.ordering.Unlock()
	now := l.orders()
	if l.ordered != nil && *l.ordered == now {
		return
	}
	l.ordered = &now
	l.c.told(l, l.conn.Order(now))
}

// resendOrders sends the current orders to every connected instance. Nobody waits for a stuck connection.
func (c *Controller) resendOrders() {
	c.mu.Lock()
	links := slices.Collect(maps.Values(c.links))
	c.mu.Unlock()
	for _, l := range links {
		c.work.Go(l.order)
	}
}

// initCommand returns what an instance runs at its first boot: the dead-man switch, before anyone logs in.
func (c *Controller) initCommand(pool string) drover.Secret {
	after := c.current().orphan(pool)
	if after <= 0 {
		return drover.Secret{}
	}
	return drover.NewSecret(deadman.Script(after))
}

// Notice receives an interruption notice. A notice that the cloud withdraws changes nothing here: the instance's work
// is already moving elsewhere. It is logged once per connection.
func (l *link) Notice(n drover.Notice) {
	if n.Cause == "" {
		if !l.calmed {
			l.calmed = true
			l.c.cfg.Log.Info("the cloud has withdrawn its interruption notice", logkey.Instance, l.name)
		}
		return
	}
	l.c.post(l.ctx, engine.Noticed{Instance: l.id, Notice: n})
}

// maxHealthReports is how often an instance may report over one connection that it is unhealthy or healthy again. One
// that reports more is ignored.
const maxHealthReports = 20

// Ailing receives an instance's report of what is wrong with it.
func (l *link) Ailing(text string) {
	if l.healthReports++; l.healthReports > maxHealthReports {
		return
	}
	l.c.post(l.ctx, engine.HealthReported{Instance: l.id, Text: text})
}
