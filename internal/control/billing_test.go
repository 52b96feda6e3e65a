package control

import (
	"context"
	"testing"
	"time"

	"drover"
	"drover/driver"
	"drover/internal/engine"
)

// hourly is a cloud that bills by the hour.
type hourly struct{ driver.Cloud }

func (h hourly) Capabilities() driver.Capabilities {
	can := h.Cloud.Capabilities()
	can.Billing = drover.Billing{Least: time.Minute, Period: time.Hour}
	return can
}

func TestBillingOfACloud(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ configured, period time.Duration }{
		"as its driver says": {0, time.Hour},
		"as configured":      {10 * time.Minute, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.cfg.Clouds[0].Driver, f.cfg.Settings.Clouds[0].Billing.Period = hourly{f.cfg.Clouds[0].Driver}, c.configured
			controller, stop := f.begin()
			defer stop()
			f.submit(controller, "echo a")
			f.until(controller, "the job is final", f.allFinal)
			is := controller.current().able().Clouds[0].Billing
			if want := (drover.Billing{Least: time.Minute, Period: c.period}); is != want {
				t.Errorf("the engine uses %+v, want %+v", is, want)
			}
		})
	}
}

// dated is a cloud that reports when an instance ended.
type dated struct {
	driver.Cloud
	ended drover.Time
}

func (d dated) Describe(_ context.Context, id string) (driver.Instance, error) {
	return driver.Instance{Ended: d.ended}, drover.Errorf(drover.KindNotFound, "instance %s has ended", id)
}

func TestTheEngineLearnsWhenAnInstanceEnded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.cfg.Clouds[0].Driver = dated{f.cfg.Clouds[0].Driver, 7}
	c := must(New(t.Context(), f.cfg))(t)
	told := c.describe(t.Context(), 1, engine.Describe{Instance: 2, Cloud: "here", ProviderID: "gone"})
	if d, _ := told.(engine.Described); !d.Gone || d.Ended != 7 {
		t.Errorf("described as %+v", told)
	}
	ending := driver.Instance{ID: "a", State: driver.Stopping}
	ended := ending
	ended.Ended = 7
	if !differs(ending, ended) || sighting(ended).Ended != 7 {
		t.Errorf("listed as %+v", sighting(ended))
	}
}
