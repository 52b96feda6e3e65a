package telemetry

import (
	"cmp"
	"time"

	"drover"
	"drover/internal/engine"
)

// The results of what either succeeds or fails.
const (
	ok     = "ok"
	failed = "failed"
)

// Begun receives the State from which the controller continues.
func (t *Telemetry) Begun(s engine.State) {
	t.lives.mu.Lock()
	defer t.lives.mu.Unlock()
	for _, in := range s.Instances {
		t.traces.instance(in)
		l := newLife(in)
		l.reclaimed = in.Reclaimed != nil
		t.lives.known[in.ID] = l
	}
}

// Decided counts events.
func (t *Telemetry) Decided(all []engine.Event, took time.Duration) {
	t.measure(decisionTime, took)
	for _, ev := range all {
		t.count(events, ev.Kind())
		if b, ok := ev.Body.(engine.Disconnected); ok {
			t.disconnected(b.Instance)
		}
	}
}

// Done counts the result of an effect. Calls to clouds are counted where they are made.
func (t *Telemetry) Done(f engine.Effect, answer engine.Body, took time.Duration) {
	if answer == nil {
		return
	}
	result := resultOf(answer)
	call := f.Kind()
	switch {
	case f.Connect != nil:
		t.count(connects, f.CloudName(), result)
		if result == ok {
			t.measure(connectTime, took, f.CloudName())
		}
	case f.Start != nil, f.Collect != nil:
		t.count(runnerCalls, call, result)
		t.measure(runnerCallTime, took, call)
	case f.Solve != nil:
		t.measure(solveTime, took)
	}
}

// Called counts a call to a cloud that reached its driver.
func (t *Telemetry) Called(cloud, call string, took time.Duration, err error) {
	result := ok
	if err != nil {
		result = string(drover.AsError(err, drover.KindTransient).Kind)
	}
	t.count(cloudCalls, cloud, call, result)
	t.measure(cloudCallTime, took, cloud, call)
}

// Requested counts a request to a cloud's API.
func (t *Telemetry) Requested(cloud, request string, err error) {
	t.count(cloudRequests, cloud, request, okOrFailed(err))
}

func okOrFailed(err error) string {
	if err != nil {
		return failed
	}
	return ok
}

func resultOf(answer engine.Body) string {
	if _, err := engine.Answer(answer); err != nil {
		return string(err.Kind)
	}
	return ok
}

// Probed counts a boot probe.
func (t *Telemetry) Probed(cloud string, passed bool) {
	result := failed
	if passed {
		result = "passed"
	}
	t.count(bootProbes, cloud, result)
}

// HookRan counts a hook's run.
func (t *Telemetry) HookRan(hook drover.Hook, failure error) {
	t.count(hooks, string(hook), okOrFailed(failure))
}

// Committed counts what the writes have changed.
func (t *Telemetry) Committed(at drover.Time, writes []engine.Write, took time.Duration, err error) {
	t.measure(commitTime, took)
	if err != nil {
		t.count(commitsFailed)
		return
	}
	since := map[int64]drover.Time{} // when the jobs written began to wait
	defer func() { t.traces.committed(at, writes, since) }()
	for _, w := range writes {
		switch {
		case w.Job != nil:
			since[w.Job.Number] = w.Job.Since
		case w.Attempt != nil:
			t.attempt(*w.Attempt, since[w.Attempt.Attempt.ID.Job.Number])
		case w.Instance != nil:
			t.instance(*w.Instance)
		case w.Gone != nil:
			t.gone(at, *w.Gone)
		}
	}
}

// attempt counts an attempt that begins, whose job has waited since then, or that has ended.
func (t *Telemetry) attempt(row engine.AttemptRow, since drover.Time) {
	a := row.Attempt
	switch {
	case a.State == drover.AttemptStarting && a.Stop == nil:
		t.count(attemptsStarted)
		if since != 0 {
			t.measure(jobWait, a.Started.Sub(since))
		}
	case !a.State.Live():
		t.count(attemptsEnded, string(a.State), cmp.Or(row.Reason.Code, ok))
		if a.Exit != nil {
			t.measure(attemptTime, a.Ended.Sub(a.Started))
			t.add(attemptCPU, max(0, a.Exit.CPU.Seconds()))
		}
	}
}
