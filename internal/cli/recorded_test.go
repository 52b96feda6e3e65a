package cli

import (
	"testing"
	"time"

	"drover"
	"drover/internal/engine/pool"
	"drover/internal/recorded"
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

func TestChartsDrawOnlyWhatRecordsHave(t *testing.T) {
	points := []simulate.Point{{To: time.Minute, Instances: 1, Spent: 2}, {From: time.Minute, To: 2 * time.Minute, Instances: 1, Spent: 3}}
	c := comparisonOf([]*simulate.Result{{Policy: recorded.Really, Points: points}, {Policy: simulate.Drover, Points: points}})
	for _, p := range c.Panels {
		want := 2
		if p.Title == "Rented" { // the records do not say how many vCPUs an instance had
			want = 0
		}
		if len(p.Lines[0]) != want || len(p.Lines[1]) != 2 {
			t.Errorf("%s: %v", p.Title, p.Lines)
		}
	}
}
