package engine_test

import (
	"cmp"
	"slices"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"drover"
	"drover/internal/engine"
)

// checkWritten compares what the engine knows with what one that begins anew would find: whatever changes of what is
// durable is written in the decision that changes it.
func (p *player) checkWritten() {
	known, written := durable(p.e.State()), durable(p.disk.Begin())
	for i := range min(len(known.Instances), len(written.Instances)) {
		forgetWords(&known.Instances[i], written.Instances[i])
	}
	if encoded(p, known) == encoded(p, written) {
		return // which is told in a tenth of the time of a difference
	}
	if diff := gocmp.Diff(known, written, cmpopts.EquateEmpty()); diff != "" {
		p.t.Fatalf("%s\nwhat is durable is not written (-known +written):\n%s", p.out.String(), diff)
	}
}

// durable is of a state what is to be written down, but for the counters that say how far jobs were taken in, which are
// read from their rows.
func durable(s engine.State) engine.State {
	d := engine.State{LastInstance: s.LastInstance, LastAttempt: s.LastAttempt, StaleRecords: s.StaleRecords, Closing: s.Closing, Paused: s.Paused, Spent: s.Spent, Jobs: s.Jobs, Attempts: s.Attempts, Instances: s.Instances, Blocks: s.Blocks, Spending: s.Spending}
	for i := range d.Attempts {
		a := &d.Attempts[i]
		a.Effect, a.Fails, a.Retry = 0, 0, 0
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

// forgetWords takes over what is written where the engine knows better only until it ends: that an instance is not
// known to it yet, and how the last try to reach or to create one failed.
func forgetWords(known *engine.Instance, written engine.Instance) {
	if known.State == drover.InstanceUnknown {
		known.State = written.State
	}
	if known.Reason != nil && (known.Reason.Cause == drover.ReasonUnreachable || known.Reason.Cause == drover.ReasonCreateFailed) {
		known.Reason = written.Reason
	}
}
