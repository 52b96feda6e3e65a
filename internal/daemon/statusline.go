package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"drover"
	"drover/internal/backoff"
	"drover/internal/logkey"
	"drover/internal/telemetry"
)

// statusLine logs a fleet's status at an interval, while something runs, waits, or has changed.
type statusLine struct {
	log      *slog.Logger
	interval time.Duration
	figures  telemetry.Source
	last     string // what was logged last
}

// Run logs the status until ctx ends.
func (s *statusLine) Run(ctx context.Context) {
	if s.interval > 0 {
		backoff.Every(ctx, s.interval, func() { s.say(ctx) })
	}
}

func (s *statusLine) say(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, s.interval)
	defer cancel()
	now, err := s.figures(limited)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		s.log.Warn("status: the controller is not answering", logkey.Error, err)
		return
	}
	attrs := statusAttrs(now)
	text := fmt.Sprint(attrs)
	rests := now.Jobs[drover.JobQueued]+now.Jobs[drover.JobRunning] == 0 && len(now.Census.Instances) == 0
	if rests && text == s.last {
		return
	}
	s.last = text
	s.log.LogAttrs(ctx, slog.LevelInfo, "status", attrs...)
}

func statusAttrs(s telemetry.Snapshot) []slog.Attr {
	attrs := []slog.Attr{
		slog.Int(logkey.Queued, s.Jobs[drover.JobQueued]),
		slog.Int(logkey.Running, s.Jobs[drover.JobRunning]),
	}
	total, states := 0, []any{}
	for _, state := range slices.Sorted(maps.Keys(s.Census.Instances)) {
		total += s.Census.Instances[state]
		states = append(states, slog.Int(string(state), s.Census.Instances[state]))
	}
	attrs = append(attrs,
		slog.Int(logkey.Instances, total),
		slog.Group(logkey.ByState, states...),
		slog.Float64(logkey.HourlyUSD, s.Census.Hourly.USD()),
		slog.Float64(logkey.SpentUSD, s.Census.Spent.USD()),
		slog.Int(logkey.Blocks, len(s.Census.Blocks)),
	)
	if most, ok := mostOf(s.Census.Waiting); ok {
		attrs = append(attrs, slog.String(logkey.Waiting, sayWaiting(most)), slog.String(logkey.WaitingReason, most.Reason.Code))
	}
	if most, ok := mostOf(s.Census.Standing); ok {
		attrs = append(attrs, slog.String(logkey.InstancesWaiting, sayWaiting(most)))
	}
	return attrs
}

// mostOf returns the reason for which most wait.
func mostOf(all []drover.Waiting) (drover.Waiting, bool) {
	if len(all) == 0 {
		return drover.Waiting{}, false
	}
	return slices.MaxFunc(all, func(a, b drover.Waiting) int { return a.Count - b.Count }), true
}

func sayWaiting(w drover.Waiting) string { return fmt.Sprintf("%d: %s", w.Count, w.Reason.Text) }
