package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"drover"
	"drover/internal/config"
	"drover/internal/control"
	"drover/internal/engine"
)

// reload reads the configuration again. One that is not good, or that changes what only a new start can change, is refused with the reason,
// and nothing changes.
func (d *daemon) reload(ctx context.Context) {
	c, err := loadConfig(d.app.config, "")
	if err == nil {
		err = d.needsStart(c)
	}
	if err == nil && c.Hash() == d.config.Hash() {
		d.log.Info("the configuration says what it said before", "file", absolute(d.app.config))
		return
	}
	if err == nil {
		err = d.take(ctx, c)
	}
	if err != nil {
		d.refuse(err)
		return
	}
	d.log.Info("the configuration was read again", "file", absolute(d.app.config), "hash", c.Hash()[:12])
}

// refuse says what is wrong with a configuration, each fault on a line of its own.
func (d *daemon) refuse(err error) {
	var faults config.Faults
	if !errors.As(err, &faults) {
		e := drover.AsError(err, drover.KindInvalid)
		d.log.Error("the configuration is refused, the last good one stays", "file", absolute(d.app.config), "error", e.Message, "hint", e.Hint)
		return
	}
	for _, f := range faults {
		d.log.Error("the configuration is refused, the last good one stays", "file", absolute(d.app.config), "line", f.Line, "column", f.Column, "error", f.Message, "hint", f.Hint)
	}
}

// needsStart refuses a change of what is settled when a controller starts.
func (d *daemon) needsStart(c *config.Config) error {
	var changed []string
	for key, values := range map[string][2]string{
		"fleet": {d.config.Fleet, c.Fleet}, "state": {d.config.State, c.State}, "listen": {d.config.Listen, c.Listen}, "url": {d.config.URL, c.URL},
	} {
		if values[0] != values[1] {
			changed = append(changed, key)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	slices.Sort(changed)
	return drover.Errorf(drover.KindInvalid, "%s cannot change while the controller runs", strings.Join(changed, " and ")).WithHint("end it and start it again: that interrupts nothing")
}

// take has the controller go by another configuration. Clouds that did not change keep their drivers. In one that was left out nothing is rented
// any more, and what is there drains.
func (d *daemon) take(ctx context.Context, c *config.Config) error {
	setup, opened, err := d.setup(ctx, c)
	if err == nil {
		err = d.fleet.controller.Reconfigure(ctx, setup)
	}
	if err != nil {
		closeClouds(opened)
		return err
	}
	for _, old := range d.fleet.clouds {
		if !slices.ContainsFunc(setup.Clouds, func(c control.Cloud) bool { return c.Driver == old.Driver }) {
			d.retired = append(d.retired, old) // calls that are under way end on it
		}
	}
	d.fleet.clouds, d.config = setup.Clouds, c
	return nil
}

// setup is what the controller is to go by, and which clouds were opened for it.
func (d *daemon) setup(ctx context.Context, c *config.Config) (s control.Setup, opened []control.Cloud, err error) {
	var kept []control.Cloud
	changed := *c
	changed.Clouds = nil
	for _, cloud := range c.Clouds {
		if at := slices.IndexFunc(d.config.Clouds, func(o config.Cloud) bool { return o.Hash() == cloud.Hash() }); at >= 0 {
			kept = append(kept, d.cloud(cloud.Name))
			continue
		}
		changed.Clouds = append(changed.Clouds, cloud)
	}
	if opened, err = openClouds(ctx, &changed, d.config.Fleet, d.folder.file("."), d.log); err != nil {
		return s, nil, err
	}
	s = setupOf(c, runLimits{}, append(kept, opened...))
	for _, l := range d.leaving(c) {
		s.Clouds = append(s.Clouds, d.cloud(l.Name))
		s.Settings.Clouds = append(s.Settings.Clouds, l)
	}
	slices.SortFunc(s.Clouds, func(a, b control.Cloud) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(s.Settings.Clouds, func(a, b engine.CloudSettings) int { return strings.Compare(a.Name, b.Name) })
	return s, opened, nil
}

// cloud is the open cloud of this name.
func (d *daemon) cloud(name string) control.Cloud {
	return d.fleet.clouds[slices.IndexFunc(d.fleet.clouds, func(c control.Cloud) bool { return c.Name == name })]
}

// leaving are the clouds in use that a configuration leaves out. There may be instances in them, or a call under way that makes one, so they are
// kept for as long as this controller lives.
func (d *daemon) leaving(c *config.Config) (list []engine.CloudSettings) {
	for _, cloud := range d.fleet.controller.Clouds() {
		if !slices.Contains(c.CloudNames(), cloud.Name) {
			cloud.Leaving = true
			list = append(list, cloud)
		}
	}
	return list
}

// tellLeft says what an end leaves as it is.
func (d *daemon) tellLeft(ctx context.Context) {
	s, err := d.fleet.controller.Status(ctx)
	if err != nil {
		return
	}
	instances := 0
	for _, n := range s.Instances {
		instances += n
	}
	if instances+s.Jobs[drover.JobRunning]+s.Jobs[drover.JobQueued] == 0 {
		d.log.Info("ended; nothing is left")
		return
	}
	d.log.Info("ended; instances and jobs are left as they are, and the next drover serve goes on with them",
		"instances", instances, "running", s.Jobs[drover.JobRunning], "queued", s.Jobs[drover.JobQueued])
}

// drained reports whether nothing runs any more and every instance that may go is gone.
func (d *daemon) drained(ctx context.Context) (yes bool) {
	if err := d.fleet.controller.Query(ctx, func(e *engine.Engine) { yes = e.Drained() }); err != nil {
		return false
	}
	return yes
}
