package control

import (
	"testing"
	"time"

	"drover"
	"drover/driver"
)

// hourly is a cloud that bills by the hour.
type hourly struct{ driver.Cloud }

func (h hourly) Capabilities() driver.Capabilities {
	can := h.Cloud.Capabilities()
	can.Billing = drover.Billing{Least: time.Minute, Period: time.Hour}
	return can
}

func TestHowACloudBills(t *testing.T) {
	for name, c := range map[string]struct{ configured, period time.Duration }{
		"is what its driver says":          {0, time.Hour},
		"unless the configuration says it": {10 * time.Minute, 10 * time.Minute},
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
				t.Errorf("the engine is told %+v, not %+v", is, want)
			}
		})
	}
}
