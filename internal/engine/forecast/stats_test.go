package forecast_test

import (
	"fmt"
	"testing"
	"time"

	"drover"
	"drover/internal/engine/forecast"
)

func TestStats(t *testing.T) {
	t.Run("follow a change within a few observations", func(t *testing.T) {
		var all []forecast.Stat
		for at := range drover.Time(20) {
			all = forecast.See(all, "c/small", time.Minute, at)
		}
		for at := range drover.Time(8) {
			all = forecast.See(all, "c/small", 3*time.Minute, 20+at)
		}
		if h := all[0]; h.Count != 28 || h.Last != 27 || h.Mean < 2*time.Minute+30*time.Second || h.Mean > 3*time.Minute {
			t.Errorf("after eight observations of three minutes: %+v", h)
		}
	})

	t.Run("keep only recent keys, if there are very many", func(t *testing.T) {
		var all []forecast.Stat
		for i := range 1000 {
			all = forecast.See(all, fmt.Sprint(i), time.Minute, drover.Time(i))
		}
		for _, h := range all {
			if h.Last < 800 {
				t.Errorf("%d keys are kept, one last seen at %d", len(all), h.Last)
			}
		}
	})

	t.Run("share no memory with the previous ones", func(t *testing.T) {
		was := forecast.See(nil, "a", time.Minute, 1)
		forecast.See(was, "a", time.Hour, 2)
		if was[0].Mean != time.Minute {
			t.Error("the previous statistics have changed")
		}
	})
}
