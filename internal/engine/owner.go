package engine

import (
	"time"

	"drover"
	"drover/internal/engine/budget"
	"drover/internal/engine/pool"
)

// Somebody owns each instance: the queue, if it was rented for jobs, or the pool whose name it bears. What may be done with an instance is asked here.
//
//   - The queue's meets idle_timeout, is given up when nothing waits for it, gives way to other work, and ages by the fleet's max_age.
//   - A pool's is there because its pool wants it: only its pool releases it, for whatever reason. It counts in every limit. The pool pays for it, so jobs on
//     it cost their users nothing. Jobs are placed on it only if the pool lets them.
//   - One that Drover does not log in to is ready when its cloud says that it runs, and gone when lists say so. Silence says nothing of it.

// pooled reports whether a pool owns the instance, configured or not.
func (in *instance) pooled() bool { return in.Pool != "" }

// poolSpec is how the instance's pool is configured; nil if it has none, or that is configured no more.
func (e *Engine) poolSpec(in *instance) *pool.Spec {
	if p := e.pool(in.Pool); p != nil {
		return p.spec
	}
	return nil
}

// belongTo takes over what the instance's owner says of it.
func (e *Engine) belongTo(in *instance) {
	spec := e.poolSpec(in)
	in.noJobs = in.pooled() && (spec == nil || !spec.Jobs)
	in.once = in.once && !in.noJobs
	in.noLogin = spec != nil && spec.Login == drover.LoginNone
	if in.pooled() && spec == nil { // how it was is not known any more but by whether anybody ever did
		in.noLogin = in.Ready != 0 && in.HostKey == ""
	}
}

// awaited reports whether an instance that is on its way, or that is not heard from yet, is still wanted by its owner.
func (in *instance) awaited() bool { return in.pooled() || len(in.Bound) > 0 }

// idles reports whether the instance goes once it has been idle for long enough.
func (in *instance) idles() bool { return !in.pooled() }

// yields reports whether the instance may give way to work that waits.
func (in *instance) yields() bool { return !in.pooled() }

// maxAge is how old the instance may become before it takes no more work; 0: any. Pools replace theirs in steps.
func (e *Engine) maxAge(in *instance) time.Duration {
	if in.pooled() {
		return 0
	}
	return e.life().MaxAge
}

// payerOn is who pays for a job's part of the instance.
func (in *instance) payerOn(p budget.Payer) budget.Payer {
	if in.pooled() {
		return budget.Payer{}
	}
	return p
}

// payOn has whoever pays on the instance pay for the loads.
func (in *instance) payOn(loads []budget.Load) []budget.Load {
	for i := range loads {
		loads[i].Payer = in.payerOn(loads[i].Payer)
	}
	return loads
}

// stays reports whether the instance is kept whether or not anything runs on it.
func (in *instance) stays() bool {
	return in.pooled() && in.Idle != drover.IdleDrain && in.State != drover.InstanceStopping && !in.Broken && in.Reclaimed == nil && in.Ailing == nil
}

// runsUnseen has an instance be ready to which nobody logs in, once a list that shows it says nothing else.
func (e *Engine) runsUnseen(in *instance) {
	if in.noLogin && in.Listed && !in.Ending && in.ProviderID != "" && in.State != drover.InstanceCreating {
		e.ready(in)
	}
}

// checkUnseen does what is to be done about such an instance.
func (e *Engine) checkUnseen(in *instance) {
	if e.idledOut(in) {
		e.stop(in, e.whyIdle(in))
	}
}
