package daemon

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"drover"
	"drover/internal/engine"
	"drover/internal/telemetry"
)

// covers D20
func TestStatusLine(t *testing.T) {
	var now telemetry.Snapshot
	var failed error
	lines := func(t *testing.T, interval, after time.Duration) (said []string) {
		var log bytes.Buffer
		synctest.Test(t, func(t *testing.T) {
			s := &statusLine{log: slog.New(slog.NewTextHandler(&log, nil)), interval: interval}
			s.figures = func(context.Context) (telemetry.Snapshot, error) { return now, failed }
			ctx, cancel := context.WithTimeout(t.Context(), after)
			defer cancel()
			s.Run(ctx)
		})
		for line := range strings.Lines(log.String()) {
			_, line, _ = strings.Cut(line, " ")
			said = append(said, strings.TrimSpace(line))
		}
		return said
	}
	waiting := []drover.Waiting{
		{Count: 2, Reason: drover.Reason{Code: drover.ReasonBooting, Text: "on their way"}},
		{Count: 9, Reason: drover.Reason{Code: drover.ReasonLimit, Text: "a limit"}},
	}
	t.Run("reports waiting jobs, instances and costs at every interval", func(t *testing.T) {
		now.Jobs = map[drover.JobState]int{drover.JobQueued: 11, drover.JobRunning: 4}
		now.Census = engine.Census{Status: engine.Status{
			Instances: map[drover.InstanceState]int{drover.InstanceRunning: 2, drover.InstanceIdle: 1}, Hourly: 3 * drover.Dollar / 2, Waiting: waiting,
			Standing: []drover.Waiting{{Count: 1, Reason: drover.Reason{Text: "idle"}}},
		}, Blocks: make([]engine.Block, 2)}
		said := lines(t, time.Minute, 150*time.Second)
		want := `level=INFO msg=status queued=11 running=4 instances=3 by_state.idle=1 by_state.running=2 hourly_usd=1.5 spent_usd=0 blocks=2 ` +
			`waiting="9: a limit" waiting_reason=limit instances_waiting="1: idle"`
		if len(said) != 2 || said[0] != want || said[1] != want {
			t.Errorf("it logs %q, want %s twice", said, want)
		}
	})
	t.Run("reports a fleet at rest once", func(t *testing.T) {
		now = telemetry.Snapshot{}
		if said := lines(t, time.Minute, 10*time.Minute); len(said) != 1 {
			t.Errorf("it logs %q", said)
		}
	})
	t.Run("0 means never", func(t *testing.T) {
		if said := lines(t, 0, time.Hour); len(said) != 0 {
			t.Errorf("it logs %q", said)
		}
	})
	t.Run("reports a controller that does not answer", func(t *testing.T) {
		failed = errors.New("no answer")
		if said := lines(t, time.Minute, 90*time.Second); len(said) != 1 || !strings.Contains(said[0], `error="no answer"`) {
			t.Errorf("it logs %q", said)
		}
	})
}
