package cli

import (
	"testing"
	"time"

	"drover"
	"drover/internal/engine/pool"
	"drover/internal/simulate"
	"drover/internal/trace"
)

func TestPoolsAreMaintainedForTheRecordedPeriod(t *testing.T) {
	recorded := &trace.Trace{Start: drover.TimeOf(time.Now().Add(-time.Hour))}
	if got := maintained(simulate.Input{}, recorded); got != 0 {
		t.Errorf("without pools: %v", got)
	}
	var in simulate.Input
	in.Settings.Pools = []pool.Spec{{Name: "web"}}
	if got := maintained(in, recorded); got < time.Hour {
		t.Errorf("with a pool: %v", got)
	}
}
