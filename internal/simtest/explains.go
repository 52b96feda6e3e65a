package simtest

import (
	"slices"
	"strings"

	"drover"
	"drover/internal/engine"
)

// explains checks what the engine explains: that there are words, that no time is wrong, and that what it says of
// waiting jobs holds.
func (w *World) explains() {
	e, s := w.controller.loop.Engine, w.controller.loop.Engine.State()
	all, _ := e.ExplainSubject("", 1000)
	for _, in := range s.Instances {
		x, _ := e.ExplainInstance(in.Name)
		all = append(all, x)
	}
	for _, c := range s.Clouds {
		x, _ := e.ExplainCloud(c.Name)
		all = append(all, x)
	}
	for _, a := range s.Attempts {
		x, _ := e.Explain(a.ID.Job)
		all = append(all, x)
	}
	for _, j := range s.Jobs {
		x, _ := e.Explain(drover.JobID{Number: j.Number, Index: -1})
		all = append(all, x)
		if x.Waiting && len(x.Reasons) > 0 {
			w.holds(s, &j, x.Reasons[0])
		}
	}
	for _, x := range all {
		if len(x.Reasons) == 0 || x.Since > s.Now {
			w.fail("%q is explained by %+v", x.Subject, x)
		}
		for _, r := range x.Reasons {
			if r.Code == "" || strings.TrimSpace(r.Text) == "" || strings.Contains(r.Text, "%!") || strings.HasSuffix(r.Text, ": ") || r.Since > s.Now || r.Until != 0 && r.Until <= s.Now {
				w.fail("%s is explained at %v by %+v", x.Subject, s.Now, r)
			}
		}
	}
}

// holds checks the first reason why a job waits.
func (w *World) holds(s engine.State, j *engine.Job, r drover.Reason) {
	says := func(so bool) {
		if !so {
			w.fail("job %d waits, as is said, because of %+v", j.Number, r)
		}
	}
	soon := s.Pending.Place || s.Pending.Plan || s.Solving != nil // it may start, or its reason change, with the next plan
	switch r.Code {
	case drover.ReasonPlanning:
		says(soon)
	case drover.ReasonBooting:
		says(slices.ContainsFunc(s.Instances, func(in engine.Instance) bool { return len(in.Reservations) > 0 }))
	case drover.ReasonPaused:
		says(w.paused)
	case drover.ReasonBudget:
		says(s.Settings.MaxCost > 0 || len(s.Settings.Budgets) > 0)
	case drover.ReasonCatalogue:
		says(slices.ContainsFunc(s.Clouds, func(c engine.Cloud) bool { return !c.Known }))
	case drover.ReasonLimit:
		if strings.HasPrefix(r.Text, "the fleet is at its limit") {
			says(len(s.Instances) >= s.Settings.MaxInstances || soon)
		}
	case drover.ReasonBlocked:
		says(!slices.ContainsFunc(w.controller.loop.Engine.Offers(), func(o engine.OfferState) bool { return o.Why == nil && j.Shape.Accepts(o.Offering) }) || soon)
	}
	if r.Code == drover.ReasonLimit || r.Code == drover.ReasonUserLimit || r.Code == drover.ReasonBlocked {
		for _, in := range s.Instances {
			if !soon && w.couldRun(s, j, in) {
				w.fail("job %d waits because of %+v, and instance %s lies idle", j.Number, r, in.Name)
			}
		}
	}
}

// couldRun reports whether an idle instance could certainly run the job.
func (w *World) couldRun(s engine.State, j *engine.Job, in engine.Instance) bool {
	if w.paused || s.Draining || s.Closing || s.Settings.Shares.By != "" || s.Settings.Mix != (drover.Mix{}) || s.Settings.MaxCost > 0 || len(s.Settings.Budgets) > 0 {
		return false
	}
	if slices.ContainsFunc(s.Jobs, func(o engine.Job) bool { return o.Gang > 0 || o.Priority > j.Priority }) {
		return false
	}
	free := in.State == drover.InstanceIdle && in.Idle == drover.IdleRun && in.Connected && in.Pool == "" && !in.Broken && in.Unhealthy == nil && in.Reclaimed == nil && in.Standby == 0 && len(in.Orphans) == 0 && in.Grow == 0 && !in.Aged
	return free && (in.User == "" && in.Owner == "" || in.User == j.User) && !slices.Contains(in.Lost, j.Number) &&
		j.Shape.Accepts(drover.Offering{Cloud: in.Cloud, Zone: in.Zone, Type: in.Type, Market: in.Market, Price: in.Price}) && j.Shape.Need.Fits(in.Resources)
}
