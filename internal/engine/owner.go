package engine

import (
	"time"

	"drover"
	"drover/internal/engine/budget"
	"drover/internal/engine/fleet"
	"drover/internal/engine/pool"
)

// What the owner of an instance says of it, as far as the configuration decides that. What follows from it is the fleet's to tell.

// poolSpec is how the instance's pool is configured; nil if it has none, or that is configured no more.
func (e *Engine) poolSpec(in *fleet.Member) *pool.Spec {
	if p := e.pool(in.Pool); p != nil {
		return p.spec
	}
	return nil
}

// belongTo takes over what the instance's owner says of it.
func (e *Engine) belongTo(in *fleet.Member) {
	spec := e.poolSpec(in)
	in.NoJobs = in.Pooled() && (spec == nil || !spec.Jobs || spec.CheckWithin > 0 && in.Passed == 0)
	in.UseOnce = in.UseOnce && !in.NoJobs
	in.NoLogin = spec != nil && spec.Login == drover.LoginNone
	if in.Pooled() && spec == nil { // how it was is not known any more but by whether anybody ever did
		in.NoLogin = in.Ready != 0 && in.HostKey == ""
	}
}

// maxAge is how old the instance may become before it takes no more work; 0: any. Pools replace theirs in steps.
func (e *Engine) maxAge(in *fleet.Member) time.Duration {
	if in.Pooled() {
		return 0
	}
	return e.life().MaxAge
}

// payerOn is who pays for a job's part of the instance.
func payerOn(in *fleet.Member, p budget.Payer) budget.Payer {
	if in.Pooled() {
		return budget.Payer{}
	}
	return p
}

// payOn has whoever pays on the instance pay for the loads.
func payOn(in *fleet.Member, loads []budget.Load) []budget.Load {
	for i := range loads {
		loads[i].Payer = payerOn(in, loads[i].Payer)
	}
	return loads
}

// runsUnseen has an instance be ready to which nobody logs in, once a list that shows it says nothing else.
func (e *Engine) runsUnseen(in *fleet.Member) {
	if in.NoLogin && in.Listed && !in.Ending && !in.Off && in.ProviderID != "" && in.State != drover.InstanceCreating {
		e.ready(in)
	}
}

// checkUnseen does what is to be done about such an instance.
func (e *Engine) checkUnseen(in *fleet.Member) {
	if e.idledOut(in) {
		e.stop(in, e.whyIdle(in))
	}
}
