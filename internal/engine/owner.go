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

// adapt applies the settings to an instance.
func (e *Engine) adapt(in *fleet.Member) {
	in.Leaving = e.limits(in.Cloud).Leaving
	in.UseOnce, in.Sharing = e.life().UseOnce, e.life().Sharing
	e.applyOwner(in)
	in.Aged = e.due(e.agesAt(in))
}

// applyOwner applies the owner's settings to the instance.
func (e *Engine) applyOwner(in *fleet.Member) {
	spec := e.poolSpec(in)
	in.NoJobs = in.Pooled() && (spec == nil || !spec.Jobs)
	in.UseOnce = in.UseOnce && !in.NoJobs // even before its health check has passed: an adopted one may have run its job
	unchecked := in.Pooled() && spec != nil && spec.CheckWithin > 0 && in.Passed == 0
	in.NoJobs = in.NoJobs || unchecked && !in.Lent // the jobs that it was started for do not wait longer
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
	if e.due(e.idleDeadline(in)) {
		e.stop(in, e.whyIdle(in))
	}
}

// With drover.ShareUser an instance runs one user's jobs only, from the first until it is gone: whatever jobs leave or
// change there stays with their user. With drover.ShareEveryone it runs everybody's, and its runner isolates them. A
// tag, set at creation, names the owner, so that this holds even if the store is lost.

// setOwner sets the owner of an instance that is rented for a user's jobs.
func (e *Engine) setOwner(in *fleet.Member, user string) {
	switch e.life().Sharing {
	case drover.ShareUser:
		in.User, in.Owner = user, drover.OwnerMark(user)
	case drover.ShareEveryone:
		in.Owner = drover.Everyones
	}
}

// takeOwner records whose job starts on an instance. An instance without owner, or whose owner only the tag names,
// belongs to that user from then on.
func (e *Engine) takeOwner(in *fleet.Member, user string) {
	if in.Sharing != drover.ShareUser || in.User == user && in.Owner != "" {
		return
	}
	if in.Owner == "" {
		e.retag(in)
	}
	e.setOwner(in, user)
	e.writeRevised(in)
}

// whose says who may use the instance, if not everybody.
func whose(in *fleet.Member) string {
	switch {
	case in.User != "":
		return "; it belongs to user " + in.User + " and runs no other user's jobs"
	case in.Owner != "" && !in.Isolated():
		return "; its tag names an earlier user, so it runs no other user's jobs"
	case in.Sharing == drover.ShareUser && (in.Isolated() || in.Used):
		return "; another user may have used it, so it runs no more jobs"
	case in.Sharing == drover.ShareEveryone && !in.Isolated():
		return "; it was created before users' jobs were isolated, and runs no more jobs"
	}
	return ""
}

// ofOneUser selects the demands to plan together where instances belong to users: the first user's, as long as no other
// user's have higher priority. The next plans are for the others.
func (e *Engine) ofOneUser(demands []drover.Demand, groups []*group) (some []drover.Demand, of []*group) {
	if e.life().Sharing != drover.ShareUser {
		return demands, groups
	}
	some, of = make([]drover.Demand, 0, len(demands)), make([]*group, 0, len(groups))
	highest := 0 // of the other users
	for i, g := range groups {
		if g.Key.User != groups[0].Key.User {
			highest = max(highest, g.Key.Priority)
		} else if g.Key.Priority >= highest {
			some, of = append(some, demands[i]), append(of, g)
		}
	}
	return some, of
}
