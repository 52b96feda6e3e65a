package web

import (
	"cmp"
	"context"
	"slices"
	"time"

	"drover"
)

// overview is a summary of the fleet.
type overview struct {
	drover.Status
	Total   int    // instances
	States  []part // of them
	Queue   []part // jobs that are not final
	Month   *float64
	Budgets []budget
	Waiting []drover.Waiting
	Stand   []drover.Waiting
	Short   []drover.Pool // those that differ from their size
	Recent  []jobRow
	Events  []drover.Event
}

// part is a part of a whole, as a bar shows it.
type part struct {
	Name  string
	Count int
	Share float64 // of a thousand
	From  float64
}

// budget is how much of a budget is used.
type budget struct {
	drover.BudgetUse
	Limit     float64
	Mark      float64 // of the soft limit, in percent; 0: none
	Warned    bool    // the soft limit is passed
	NoPools   bool    // there are pools, but their instances do not count
	Used      float64 // in percent
	Committed float64 // in percent, including what is promised
	Level     string  // good, near or passed
}

// reasonsShown is how many reasons the overview shows.
const reasonsShown = 8

func (h *Handler) overview(ctx context.Context, r *request) (any, error) {
	status, err := r.svc.Status(ctx)
	if err != nil {
		return nil, err
	}
	pools, err := r.svc.Pools(ctx)
	if err != nil {
		return nil, err
	}
	o := overview{Status: status, States: partsOf(instanceStates, status.Instances), Budgets: budgetsOf(status.Budgets, len(pools) > 0)}
	for _, p := range pools {
		if p.Reason != nil {
			o.Short = append(o.Short, p)
		}
	}
	for _, p := range o.States {
		o.Total += p.Count
	}
	o.Queue = partsOf([]drover.JobState{drover.JobRunning, drover.JobQueued}, status.Jobs)
	o.Waiting, o.Stand = most(status.Waiting), most(status.Standing)
	if o.Month = h.sums.month(r); o.Month != nil {
		o.Spent = max(o.Spent, *o.Month) // the total is as of the controller's last decision, which may be earlier
	}
	page, err := r.svc.Jobs(ctx, drover.JobFilter{Newest: true, Limit: 8})
	if err != nil {
		return nil, err
	}
	for _, job := range page.Items {
		o.Recent = append(o.Recent, rowOf(job))
	}
	o.Events, err = lastEvents(ctx, r, drover.EventFilter{Last: 8})
	return o, err
}

var instanceStates = []drover.InstanceState{
	drover.InstanceRunning, drover.InstanceIdle, drover.InstanceBooting, drover.InstanceCreating, drover.InstanceUnknown, drover.InstanceStopped, drover.InstanceStopping,
}

// partsOf returns a part for each state that has a count.
func partsOf[S ~string](order []S, counts map[S]int) (parts []part) {
	total, from := 0, 0
	for _, s := range order {
		total += counts[s]
	}
	for _, s := range order {
		if n := counts[s]; n > 0 {
			parts = append(parts, part{string(s), n, float64(n) * 1000 / float64(total), float64(from) * 1000 / float64(total)})
			from += n
		}
	}
	return parts
}

// near is the percentage at which a budget counts as nearly used up.
const near = 80

func budgetsOf(all []drover.BudgetUse, pools bool) (list []budget) {
	for _, b := range all {
		limit := cmp.Or(b.Hard, b.Soft)
		shown := budget{BudgetUse: b, Limit: limit, Used: percent(b.Spent, limit), Committed: percent(b.Spent+b.Promised, limit), Level: "good"}
		shown.Warned, shown.NoPools = b.Soft > 0 && b.Spent >= b.Soft, pools && b.Scope != "fleet"
		if b.Hard > 0 {
			shown.Mark = percent(b.Soft, b.Hard)
		}
		switch {
		case b.Hard > 0 && b.Spent >= b.Hard:
			shown.Level = "passed"
		case shown.Warned, shown.Committed >= near:
			shown.Level = "near"
		}
		list = append(list, shown)
	}
	return list
}

// most returns the reasons that hold up the most.
func most(all []drover.Waiting) []drover.Waiting {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b drover.Waiting) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason.Text, b.Reason.Text))
	})
	return all[:min(len(all), reasonsShown)]
}

// lastEvents returns the last events that the filter accepts, the latest first.
func lastEvents(ctx context.Context, r *request, f drover.EventFilter) (list []drover.Event, err error) {
	f.Recent = true
	for event, err := range r.svc.Events(ctx, f) {
		if err != nil {
			return nil, err
		}
		list = append(list, event)
	}
	slices.Reverse(list)
	return list, nil
}

// startOfMonth returns when the current month of monthly budgets began.
func startOfMonth(now time.Time) time.Time {
	now = now.UTC()
	return time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
}
