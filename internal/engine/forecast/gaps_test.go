package forecast_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/internal/engine/forecast"
)

var small = drover.Shape{Need: drover.Resources{CPU: 1000}}

// rounds makes each user's work return this long after it has ended, n times.
func rounds(f *forecast.Forecast, n int, gap time.Duration, users ...string) (now drover.Time) {
	now = drover.Time(time.Hour)
	for range n {
		for _, user := range users {
			f.WorkEnded(small, user, now)
			now = now.Add(gap)
			f.WorkCame(small, user, 1, now)
		}
	}
	return now
}

func TestHold(t *testing.T) {
	const boot = time.Minute
	whole := func(drover.Shape) time.Duration { return boot }
	hold := func(f *forecast.Forecast, user string, now drover.Time) forecast.Hold {
		return f.Hold(user, boot, now, whole)
	}

	t.Run("keeps an instance for as long as work usually takes to return", func(t *testing.T) {
		f := forecast.New(forecast.Stats{})
		now := rounds(f, 5, 10*time.Second, "")
		if diff := cmp.Diff(forecast.Hold{For: 10 * time.Second, Seen: 5, Within: 5}, hold(f, "", now)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("keeps none if work returns later than another instance boots", func(t *testing.T) {
		f := forecast.New(forecast.Stats{})
		now := rounds(f, 5, 2*boot, "")
		if diff := cmp.Diff(forecast.Hold{Seen: 5}, hold(f, "", now)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("says nothing after two gaps", func(t *testing.T) {
		f := forecast.New(forecast.Stats{})
		if h := hold(f, "", rounds(f, 2, time.Second, "")); h.Seen != 0 {
			t.Errorf("got %+v", h)
		}
	})
	t.Run("ignores work that the instance cannot take", func(t *testing.T) {
		f := forecast.New(forecast.Stats{})
		now := rounds(f, 5, time.Second, "")
		if h := f.Hold("", boot, now, func(drover.Shape) time.Duration { return 0 }); h != (forecast.Hold{}) {
			t.Errorf("got %+v", h)
		}
	})
	t.Run("keeps a user's instance for that user's work alone", func(t *testing.T) {
		f := forecast.New(forecast.Stats{})
		now := drover.Time(time.Hour)
		for range 5 { // every 10 s an instance becomes idle and work comes, of each user in turn
			for i := range 12 {
				user := fmt.Sprint("u", i)
				f.WorkCame(small, user, 1, now)
				f.WorkEnded(small, user, now.Add(5*time.Second))
				now = now.Add(10 * time.Second)
			}
		}
		if h := hold(f, "u3", now); h.Seen == 0 || h.For != 0 {
			t.Errorf("got %+v", h)
		}
		if h := hold(f, "", now); h.For != 5*time.Second {
			t.Errorf("for everybody's instance: %+v", h)
		}
	})
	t.Run("uses everybody's gaps for an unknown user only if they are too long", func(t *testing.T) {
		f := forecast.New(forecast.Stats{})
		if h := hold(f, "new", rounds(f, 5, 2*boot, "old")); h.Seen == 0 || h.For != 0 {
			t.Errorf("for rare work: %+v", h)
		}
		f = forecast.New(forecast.Stats{})
		if h := hold(f, "new", rounds(f, 5, time.Second, "old")); h.Seen != 0 {
			t.Errorf("for frequent work: %+v", h)
		}
	})
	t.Run("is the same after a rebuild", func(t *testing.T) {
		f := forecast.New(forecast.Stats{})
		now := rounds(f, 5, 10*time.Second, "b", "a")
		again := forecast.New(f.State())
		if diff := cmp.Diff(f.State(), again.State()); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(hold(f, "a", now), hold(again, "a", now)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("remembers a bounded number of shapes and users", func(t *testing.T) {
		f := forecast.New(forecast.Stats{})
		for i := range 3000 {
			f.WorkEnded(small, fmt.Sprint(i), drover.Time(i))
		}
		if n := len(f.State().Gaps); n != 1000 {
			t.Errorf("%d gaps are kept", n)
		}
	})
}

func TestEndedBetween(t *testing.T) {
	f := forecast.New(forecast.Stats{})
	f.WorkEnded(small, "a", 100)
	any := func(drover.Shape) bool { return true }
	for _, c := range []struct {
		user          string
		after, before drover.Time
		want          bool
	}{{"a", 50, 150, true}, {"", 50, 150, true}, {"b", 50, 150, false}, {"a", 100, 150, false}, {"a", 50, 100, false}} {
		if got := f.EndedBetween(c.user, c.after, c.before, any); got != c.want {
			t.Errorf("user %q, from %d to %d: %v", c.user, c.after, c.before, got)
		}
	}
}
