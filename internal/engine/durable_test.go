package engine_test

import (
	"cmp"
	"slices"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"drover"
	"drover/internal/engine"
)

// checkWritten compares the engine's state with what a new engine would read from the store: every change to durable
// state is written in the decision that makes it.
func (p *player) checkWritten() {
	known, written := durable(p.e.State()), durable(p.disk.Begin())
	for i := range min(len(known.Instances), len(written.Instances)) {
		forgetWords(&known.Instances[i], written.Instances[i])
	}
	if encoded(p, known) == encoded(p, written) {
		return // ten times faster than computing a diff
	}
	if diff := gocmp.Diff(known, written, cmpopts.EquateEmpty()); diff != "" {
		p.t.Fatalf("%s\na change to durable state is not written (-known +written):\n%s", p.out.String(), diff)
	}
}

// durable returns the part of a state that is written, except the counters of submitted jobs, which are read from the
// jobs' rows.
func durable(s engine.State) engine.State {
	d := engine.State{LastInstance: s.LastInstance, LastAttempt: s.LastAttempt, StaleRecords: s.StaleRecords, Closing: s.Closing, Paused: s.Paused, Spent: s.Spent, Jobs: s.Jobs, Attempts: s.Attempts, Instances: s.Instances, Blocks: s.Blocks, Spending: s.Spending}
	for i := range d.Attempts {
		a := &d.Attempts[i]
		a.Effect, a.Fails, a.Unkept, a.Missed, a.Retry = 0, 0, engine.Verdict{}, 0, 0
	}
	for i, in := range d.Instances {
		d.Instances[i] = in.Durable()
	}
	d.Departed = slices.Clone(s.Departed)
	for i := range d.Departed {
		own := *d.Departed[i]
		own.Shown = nil
		d.Departed[i] = &own
	}
	slices.SortFunc(d.Departed, func(a, b *engine.Departed) int { return cmp.Compare(a.Instance.ID, b.Instance.ID) })
	return d
}

// forgetWords copies the written value of what the engine does not store: that it has not yet heard from an instance,
// and why the last attempt to reach or create one failed.
func forgetWords(known *engine.Instance, written engine.Instance) {
	if known.State == drover.InstanceUnknown {
		known.State = written.State
	}
	if known.Reason != nil && (known.Reason.Cause == drover.ReasonUnreachable || known.Reason.Cause == drover.ReasonCreateFailed) {
		known.Reason = written.Reason
	}
}
