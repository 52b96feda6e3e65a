package engine

import (
	"fmt"
	"time"

	"drover/internal/engine/fleet"
	"drover/internal/engine/forecast"
)

// configure takes over new settings. They take effect immediately, except types and prices, which are requested again.
func (e *Engine) configure(s Settings) {
	e.s.Settings, e.s.Configured = s, e.s.Now
	e.forgetResizes()
	e.followPools(e.poolStates())
	for _, p := range e.pools.list {
		p.CannotStop = Verdict{} // that may not hold for its clouds as now configured
	}
	e.relabel()
	e.recount()
	known := map[string]*Cloud{}
	for _, c := range e.clouds {
		known[c.Name] = c
	}
	e.clouds = nil
	for _, cs := range s.Clouds {
		c := known[cs.Name]
		if c == nil {
			c = &Cloud{Catalogue: Catalogue{Name: cs.Name}}
		}
		switch {
		case !cs.Leaving:
			c.Left = 0
		case c.Left == 0:
			c.Left = e.s.Now
		}
		e.follow(c, cs.ListInterval)
		e.clouds = append(e.clouds, c)
		if period, idle := cs.Billing.Period, s.Lifecycle.IdleTimeout; idle < period && !cs.Leaving {
			text := fmt.Sprintf("cloud %s bills in periods of %v, but idle instances are destroyed after %v: an idle_timeout of %v would use all of the paid time", c.Name, period, idle, period)
			e.note(Note{Level: Info, Text: text, Cloud: c.Name})
		}
	}
	for _, in := range e.fleet.All() {
		if e.adapt(in); in.Leaving {
			e.unneeded(in)
		} else if e.dropReservationsOf(in, func(key GroupKey) bool { return !in.Serves(&e.group(key).demand) }) {
			e.writeInstance(in)
		}
		e.touch(in)
	}
	e.followMarket()
	e.trackSpending()
	e.setForecastClouds()
	e.pending.Place, e.pending.Plan, e.pending.FitCheck, e.pending.Price = true, true, true, true
	e.typesRevision++
	e.fleet.ReviseAll()
}

// setForecastClouds names the clouds whose boot times matter.
func (e *Engine) setForecastClouds() {
	var clouds []forecast.Cloud
	for _, c := range e.enabled() {
		clouds = append(clouds, forecast.Cloud{Name: c.Name, Billing: e.limits(c.Name).Billing})
	}
	e.forecast.SetClouds(clouds)
}

// follow schedules the next list according to the new interval, no earlier than the cloud allows, and requests the
// catalogue unless the last request failed.
func (e *Engine) follow(c *Cloud, interval time.Duration) {
	if c.ListFails == 0 {
		c.NextList = max(c.NoList, min(c.NextList, c.Began.Add(interval)))
	}
	if c.Fails == 0 {
		c.NextOffer = 0
	}
}

func (e *Engine) cloud(name string) *Cloud {
	for _, c := range e.clouds {
		if c.Name == name {
			return c
		}
	}
	return nil
}

func (e *Engine) limits(cloud string) CloudSettings {
	for _, c := range e.s.Settings.Clouds {
		if c.Name == cloud {
			return c
		}
	}
	return CloudSettings{Name: cloud, MaxCreating: 1, ListInterval: time.Minute, ListLag: fleet.LostGap}
}

func (e *Engine) life() Lifecycle { return e.s.Settings.Lifecycle }
