package cli

import (
	"context"
	"fmt"
	"slices"

	"drover"
	"drover/internal/config"
	"drover/internal/control"
	"drover/internal/daemon"
	"drover/internal/human"
	"drover/internal/simulate"
	"drover/internal/trace"
	"drover/internal/web"
)

// simulator simulates configurations for the dashboard, with the current types and prices of the controller's clouds.
type simulator struct {
	program daemon.Program
	inUse   func() *config.Config
	clouds  func() []control.Cloud
}

func (a *app) newSimulator(inUse func() *config.Config, clouds func() []control.Cloud) web.Simulator {
	return simulator{a.program, inUse, clouds}
}

// mostTried limits the jobs that are simulated for a page.
const mostTried = 200_000

// Configuration returns the text of the configuration in use.
func (s simulator) Configuration() (string, error) {
	text, _ := s.inUse().Source()
	return string(text), nil
}

// WhatIf simulates the configuration in use and an edited one.
func (s simulator) WhatIf(ctx context.Context, svc drover.Service, ask web.WhatIf) (*web.Comparison, error) {
	_, dir := s.inUse().Source()
	edited, err := config.Parse("the edited configuration", []byte(ask.Configuration), dir)
	if err != nil {
		return nil, err
	}
	if err := s.program.CheckKeys(edited); err != nil {
		return nil, err
	}
	models := simulate.DefaultModels
	t, results, err := s.work(ctx, svc, ask, &models)
	if err != nil {
		return nil, err
	}
	for _, c := range []struct {
		name   string
		config *config.Config
	}{{"configuration in use", s.inUse()}, {"edited configuration", edited}} {
		in, err := s.input(ctx, c.config, models)
		if err != nil {
			return nil, err
		}
		if in.Trace, in.MemoryPerCPU = t, 2*drover.GiB; ask.TraceName == "" {
			in.For = maintained(in, t)
		}
		r, err := simulate.Run(ctx, in, simulate.Drover)
		if err != nil {
			return nil, err
		}
		r.Configuration = c.name
		results = append(results, r)
	}
	return comparisonOf(results), nil
}

// work returns the workload to simulate, and its real outcome if that is known.
func (s simulator) work(ctx context.Context, svc drover.Service, ask web.WhatIf, m *simulate.Models) (*trace.Trace, []*simulate.Result, error) {
	if ask.TraceName != "" {
		t, err := trace.Read(ask.TraceName, ask.Trace)
		return t, nil, err
	}
	return recordedWork(ctx, svc, drover.TimeOf(ask.Since), mostTried, m)
}

// input returns the input of a simulation from a configuration. It accepts only clouds that the controller has: a page
// opens no others.
func (s simulator) input(ctx context.Context, c *config.Config, m simulate.Models) (in simulate.Input, err error) {
	open, offerings := s.clouds(), []drover.Offering(nil)
	for _, cloud := range c.Clouds {
		at := slices.IndexFunc(open, func(o control.Cloud) bool { return o.Name == cloud.Name })
		if at < 0 {
			return in, drover.Errorf(drover.KindInvalid, "the controller has no cloud %s", cloud.Name).
				WithHint("to try other clouds, use drover simulate --recorded")
		}
		listed, err := open[at].Driver.Offerings(ctx)
		if err != nil {
			return in, fmt.Errorf("fetching the offerings of cloud %s: %w", cloud.Name, err)
		}
		usable, _ := control.Cloud{Offer: cloud.Offer}.Usable(listed)
		offerings = append(offerings, usable...)
	}
	return inputOf(c, "the configuration", offerings, m)
}

// comparisonOf shows results side by side.
func comparisonOf(results []*simulate.Result) *web.Comparison {
	c := &web.Comparison{}
	for _, r := range results {
		c.Columns = append(c.Columns, r.Configuration)
		if r.WhyRefused != "" {
			c.Notes = append(c.Notes, fmt.Sprintf("The %s rejects %s; the first is %s.", r.Configuration, human.Plural(r.Refused, "job"), r.WhyRefused))
		}
		if r.WhyUnfinished != "" {
			c.Notes = append(c.Notes, fmt.Sprintf("The %s leaves %s unfinished; the first is %s.", r.Configuration, human.Plural(r.Unfinished, "job"), r.WhyUnfinished))
		}
	}
	for name, values := range figureRows(results) {
		c.Rows = append(c.Rows, web.ComparisonRow{Name: name, Values: values})
	}
	for _, l := range results[0].LeftOut {
		c.Notes = append(c.Notes, fmt.Sprintf("Left out: %s %s.", human.Plural(l.Jobs, "job"), l.Why))
	}
	for _, p := range panels {
		panel := web.Panel{Title: p.title}
		for _, r := range results {
			line := []web.Point{}
			for _, at := range drawn(r, p.known) {
				line = append(line, web.Point{At: r.Begin.Add((at.From + at.To) / 2).Std(), Value: p.of(at)})
			}
			panel.Lines = append(panel.Lines, line)
		}
		c.Panels = append(c.Panels, panel)
	}
	return c
}
