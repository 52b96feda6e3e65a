package engine

import (
	"time"

	"drover"
	"drover/internal/engine/budget"
	"drover/internal/engine/fleet"
	"drover/internal/engine/pool"
)

// What an instance's owner decides, according to the configuration. Package fleet has the consequences.

// poolSpec returns the configuration of the instance's pool; nil if it has none, or it is no longer configured.
func (e *Engine) poolSpec(in *fleet.Member) *pool.Spec {
	if p := e.pool(in.Pool); p != nil {
		return p.spec
	}
	return nil
}

// applyOwner applies the owner's settings to the instance.
func (e *Engine) applyOwner(in *fleet.Member) {
	spec := e.poolSpec(in)
	in.NoJobs = in.Pooled() && (spec == nil || !spec.Jobs)
	in.UseOnce = in.UseOnce && !in.NoJobs // even before its health check has passed: an adopted one may have run its job
	in.NoJobs = in.NoJobs || in.Pooled() && spec.CheckWithin > 0 && in.Passed == 0
	in.NoLogin = spec != nil && spec.Login == drover.LoginNone
	if in.Pooled() && spec == nil { // without configuration, infer it from whether anybody ever logged in
		in.NoLogin = in.Ready != 0 && in.HostKey == ""
	}
}

// maxAge returns the age from which the instance takes no more work; 0: any. Pools replace theirs in steps.
func (e *Engine) maxAge(in *fleet.Member) time.Duration {
	if in.Pooled() {
		return 0
	}
	return e.life().MaxAge
}

// payerOn returns who pays for a job's part of the instance.
func payerOn(in *fleet.Member, p budget.Payer) budget.Payer {
	if in.Pooled() {
		return budget.Payer{}
	}
	return p
}

// payOn sets who pays for loads on the instance.
func payOn(in *fleet.Member, loads []budget.Load) []budget.Load {
	for i := range loads {
		loads[i].Payer = payerOn(in, loads[i].Payer)
	}
	return loads
}

// runsUnseen makes an instance without login ready once a list shows it running.
func (e *Engine) runsUnseen(in *fleet.Member) {
	if in.NoLogin && in.Listed && !in.Ending && !in.Off && in.ProviderID != "" && in.State != drover.InstanceCreating {
		e.ready(in)
	}
}

// checkUnseen checks a ready instance without login.
func (e *Engine) checkUnseen(in *fleet.Member) {
	if e.idledOut(in) {
		e.stop(in, e.whyIdle(in))
	}
}
