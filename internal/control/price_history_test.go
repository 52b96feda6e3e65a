package control

import (
	"context"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"drover"
	"drover/driver"
	"drover/driver/drivertest"
	"drover/driver/local"
	"drover/internal/engine"
)

// remembering is a cloud whose price history a test sets.
type remembering struct {
	driver.Cloud
	points []driver.PricePoint
	err    error
	since  []drover.Time // of each request
}

func (r *remembering) PriceHistory(_ context.Context, _, _ string, _ drover.Market, since drover.Time) ([]driver.PricePoint, error) {
	r.since = append(r.since, since)
	return r.points, r.err
}

// Offerings returns offerings whose volumes cost $0.5 a GiB.
func (r *remembering) Offerings(ctx context.Context) ([]drover.Offering, error) {
	all, err := r.Cloud.Offerings(ctx)
	for i := range all {
		all[i].DiskPrice = drover.Dollar / 2
	}
	return all, err
}

// covers C6
func TestPriceChangesWithoutAControllerAreBilled(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	cloud := &remembering{Cloud: spotCloud(t)}
	f.cfg.Clouds[0].Driver = cloud
	f.cfg.Clouds[0].Offer = func(o drover.Offering) (drover.Offering, string) {
		o.Price /= 2
		return o.WithVolume(2 * drover.GiB), ""
	}
	c, stop := f.begin()
	f.submit(c, "sleep 60")
	f.until(c, "the job runs", runs(1))
	if len(cloud.since) > 0 {
		t.Errorf("prices were requested since %v although there was no instance", cloud.since)
	}
	was := theOne(t, c)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	moved := drover.TimeOf(time.Now())
	cloud.points = []driver.PricePoint{{From: moved, Price: 8 * drover.Dollar}, {From: was.Created - 1, Price: drover.Dollar}}
	c, stop = f.begin()
	defer stop()
	f.until(c, "its price has moved", func(e *engine.Engine) bool { return len(e.Instances()[0].Rates) > 0 })
	in := theOne(t, c)
	if !slices.Equal(cloud.since, []drover.Time{was.Created}) || in.Rates[0].Until != moved || in.Rates[0].Price != was.Price {
		t.Errorf("requested since %v, its rates are %+v", cloud.since, in.Rates)
	}
	if len(in.Rates) > 1 && in.Rates[1].Price != 5*drover.Dollar {
		t.Errorf("its rates are %+v, not what is paid", in.Rates)
	}
}

// covers D24
func TestAnInstanceThatCostsTooMuchNowIsBilledAtItsPrice(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.cfg.Clouds[0].Driver = spotCloud(t)
	var price atomic.Int64
	price.Store(int64(drover.Dollar))
	f.cfg.Clouds[0].Offer = func(o drover.Offering) (drover.Offering, string) {
		if o.Price = drover.Money(price.Load()); o.Price > drover.Dollar {
			return o, "it is too dear"
		}
		return o, ""
	}
	c, stop := f.begin()
	defer stop()
	f.submit(c, "sleep 60")
	f.until(c, "the job runs", runs(1))
	price.Store(int64(3 * drover.Dollar))
	in := theOne(t, c)
	answer := c.offerings(t.Context(), 1, engine.ListOfferings{Cloud: "here", Have: "an earlier one"}).(engine.Offered)
	if p := answer.Past; len(answer.Offerings) > 0 || len(p) != 1 || p[0].OfferingKey != keyOf(in) || len(p[0].Prices) != 1 || p[0].Prices[0].Price != 3*drover.Dollar {
		t.Errorf("the answer is %+v, want no offerings but the price of the instance", answer)
	}
}

// spotCloud opens a local cloud with spot instances, and destroys them at the end of the test.
func spotCloud(t *testing.T) driver.Cloud {
	t.Helper()
	spot := must(local.Open(t.Context(), drivertest.Options(t, "here", "local", "test", "markets: [spot]", filepath.Join(t.TempDir(), "spot"))))(t)
	t.Cleanup(func() {
		for _, in := range must(spot.List(context.Background(), nil))(t) {
			if err := spot.Destroy(context.Background(), in.ID); err != nil {
				t.Error(err)
			}
		}
		if err := spot.Close(); err != nil {
			t.Error(err)
		}
	})
	return spot
}

// theOne returns the only instance.
func theOne(t *testing.T, c *Controller) (in engine.Instance) {
	t.Helper()
	if err := c.Query(t.Context(), func(e *engine.Engine) { in = e.Instances()[0] }); err != nil {
		t.Fatal(err)
	}
	return in
}
