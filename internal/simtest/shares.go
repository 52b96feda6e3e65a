package simtest

import (
	"slices"

	"drover"
	"drover/internal/engine"
)

// mayGoFirst checks that an attempt does not take room while a similar job waits whose sharer uses less for their
// weight. It ignores jobs that may wait for other reasons: budgets, a mix of markets, instances that lost them, and
// coming instances.
func (w *World) mayGoFirst(a engine.Attempt) {
	s, j := w.settings, w.Disk.jobs[a.ID.Job.Number]
	if s.Shares.By == "" || len(s.Budgets) > 0 || s.Mix != (drover.Mix{}) || w.Disk.elements[a.ID.Job].Memory > 0 {
		return
	}
	own := w.shareOf(j)
	for _, o := range w.recipe.Jobs {
		o, waits := w.Disk.jobs[o.Number]
		others := w.settings.Lifecycle.Sharing == drover.ShareUser && o.User != j.User // the attempt's instance belongs to its user
		if !waits || others || !alike(o, j) || len(o.Grown) > 0 || o.MaxRunning > 0 || o.Retry.Delay > 0 || o.Queued.Count() < wellStocked || !w.stuck(o, a) {
			continue
		}
		if other := w.shareOf(o); own.used*other.weight > other.used*own.weight {
			w.fail("attempt %v is to begin, and job %d waits, of which %d thousandths of vCPUs run with weight %d, against %d with weight %d",
				a.ID, o.Number, other.used, other.weight, own.used, own.weight)
		}
	}
}

// wellStocked is how many elements fill the largest instance. With fewer, that instance may not be worth its price.
const wellStocked = 8

// alike reports whether two jobs may use the same room, although different shares pay for them.
func alike(o, j engine.Job) bool {
	return o.Labels[shareLabel] != j.Labels[shareLabel] && o.Shape == j.Shape && o.Priority == j.Priority && len(o.After) == 0 && o.Cancel == nil
}

// shareLabel is the label whose values define the shares.
const shareLabel = "project"

// shared is the usage and weight of a sharer.
type shared struct{ used, weight int }

func (w *World) shareOf(j engine.Job) (s shared) {
	name := j.Labels[shareLabel]
	s.weight = w.settings.Shares.Weight(name)
	for _, a := range w.Disk.attempts {
		if o := w.Disk.jobs[a.ID.Job.Number]; o.Labels[shareLabel] == name && a.State != drover.AttemptCollecting {
			s.used += int(o.Shape.Need.CPU)
		}
	}
	return s
}

// dear reports whether an instance costs more than the cheapest one that could be rented for an element of a job. In
// that case the expected runtime decides which job is worth a place there.
func (w *World) dear(in engine.Instance, o engine.Job) bool {
	return slices.ContainsFunc(w.controller.loop.Engine.Offers(), func(s engine.OfferState) bool {
		return s.Price < in.Price && o.Shape.Accepts(s.Offering)
	})
}

// stuck reports whether a job was already waiting only for room, on the attempt's instance too, and not just for a plan
// or a resumed queue. A job with instances on their way may be kept off one that is dear for it. So may one that was to
// begin on this instance, which has only now become ready.
func (w *World) stuck(o engine.Job, a engine.Attempt) bool {
	e := w.controller.loop.Engine
	in, there := e.Find(w.Disk.instances[a.Instance].Name)
	x, known := e.Explain(drover.JobID{Number: o.Number, Index: -1})
	coming := slices.ContainsFunc(x.Reasons, func(r drover.Reason) bool { return r.Code == drover.ReasonBooting })
	return there && known && !coming && !w.dear(in, o) && in.Ready < w.controller.decides && w.switched < w.controller.decides && w.controller.planned < w.controller.decides && !slices.Contains(in.Lost, o.Number) && slices.ContainsFunc(x.Reasons, func(r drover.Reason) bool {
		return (r.Code == drover.ReasonLimit || r.Code == drover.ReasonBlocked) && r.Since < w.controller.now()
	})
}
