package web

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"time"

	"drover"
)

// How much a page of instances shows.
const (
	instancesShown = 50
	attemptsShown  = 60 // of each, in its life
	attemptsListed = 100
)

// instanceList is a page of instances, the newest first, with what each did in the period shown.
type instanceList struct {
	State     drover.InstanceState
	Cloud     string
	Span      span
	Spans     []span
	States    []drover.InstanceState
	From, To  time.Time
	Instances []instanceRow
	Older     string
	Newest    string // the address of the first page; empty on it
}

// anyState selects the instances that are gone, too.
const anyState = "any"

// span is how far back a page shows.
type span struct {
	Name string
	Time time.Duration
}

var spans = []span{{"1h", time.Hour}, {"6h", 6 * time.Hour}, {"24h", 24 * time.Hour}, {"7d", 7 * 24 * time.Hour}}

// instanceRow is an instance and its life.
type instanceRow struct {
	drover.Instance
	Life []phase
}

// phase is a part of a life: its place on an axis of a thousand, and its kind.
type phase struct {
	From, Width float64
	Kind        string // boot, job, lost, idle or going
	Text        string
}

func (h *Handler) instances(ctx context.Context, r *request) (any, error) {
	q := r.URL.Query()
	list := instanceList{State: drover.InstanceState(q.Get("state")), Cloud: q.Get("cloud"), Spans: spans,
		Span: spanOf(q.Get("span")), States: append(slices.Clone(instanceStates), drover.InstanceGone, anyState)}
	// The axis moves in steps, so that a page without changes stays the same.
	list.To = r.now.Truncate(list.Span.Time / 240).Add(list.Span.Time / 240)
	list.From = list.To.Add(-list.Span.Time)
	f := drover.InstanceFilter{Cloud: list.Cloud, Newest: true, Limit: instancesShown, Attempts: attemptsShown}
	switch {
	case list.State == anyState:
		f.Since = drover.TimeOf(list.From)
	case slices.Contains(list.States, list.State):
		f.Since, f.States = drover.TimeOf(list.From), []drover.InstanceState{list.State}
	}
	if before := q.Get("before"); before != "" {
		id, err := strconv.ParseInt(before, 10, 64)
		if err != nil || id < 0 {
			return nil, drover.Errorf(drover.KindInvalid, "%.20q is not an instance's id", before)
		}
		f.After = id
		q.Del("before")
		list.Newest = "/instances?" + q.Encode()
	}
	page, err := r.svc.Instances(ctx, f)
	if err != nil {
		return nil, err
	}
	for _, in := range page.Items {
		list.Instances = append(list.Instances, instanceRow{in, life(in, list.From, list.To, r.now)})
	}
	if page.Next != "" {
		q.Set("before", page.Next)
		list.Older = "/instances?" + q.Encode()
	}
	return list, nil
}

func spanOf(name string) span {
	if at := slices.IndexFunc(spans, func(s span) bool { return s.Name == name }); at >= 0 {
		return spans[at]
	}
	return spans[0]
}

// axis puts times on a scale of a thousand.
type axis struct{ from, to time.Time }

func (a axis) place(t time.Time) float64 {
	share := float64(t.Sub(a.from)) / float64(a.to.Sub(a.from))
	return min(1000, max(0, share*1000))
}

// life returns the phases of an instance: its boot, its jobs, its idle times and its end. What has not ended continues to
// the end of the axis.
func life(in drover.Instance, from, to, now time.Time) (all []phase) {
	if in.Created == nil {
		return nil
	}
	a := axis{from, to}
	add := func(from, to time.Time, kind, text string) {
		if to.After(a.from) && from.Before(a.to) {
			all = append(all, phase{a.place(from), max(1, a.place(to)-a.place(from)), kind, text})
		}
	}
	end := to
	if in.Gone != nil {
		end = *in.Gone
	}
	ready := end
	if in.Ready != nil {
		ready = *in.Ready
		add(ready, end, "idle", "idle, except while jobs are running")
	}
	add(*in.Created, ready, "boot", "boot, "+spent(*in.Created, in.Ready, now))
	for _, at := range slices.Backward(in.Attempts) {
		ended := end
		if at.Ended != nil {
			ended = *at.Ended
		}
		kind := "job"
		if at.State == drover.AttemptLost || at.State == drover.AttemptInterrupted {
			kind = "lost"
		}
		add(at.Started, ended, kind, "job "+at.Job.String()+", "+string(at.State)+", "+spent(at.Started, at.Ended, now))
	}
	return all
}

// instancePage is one instance.
type instancePage struct {
	instanceRow
	Explain []drover.Explanation
	Ran     []drover.InstanceAttempt
	Verbs   []drover.Verb
}

func (p instancePage) title() string { return "Instance " + p.Name }

func (h *Handler) instance(ctx context.Context, r *request) (any, error) {
	in, err := r.svc.Instance(ctx, r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	p := instancePage{instanceRow: instanceRow{Instance: in}}
	if p.Explain, err = r.svc.Explain(ctx, in.Name); err != nil && drover.KindOf(err) != drover.KindNotFound {
		return nil, err
	}
	// Only lists have the attempts that it ran.
	f := drover.InstanceFilter{Gone: true, Newest: true, After: in.ID + 1, Limit: 1, Attempts: attemptsListed}
	page, err := r.svc.Instances(ctx, f)
	if err != nil {
		return nil, err
	}
	if len(page.Items) == 1 && page.Items[0].ID == in.ID {
		p.Ran = page.Items[0].Attempts
	}
	if in.Created != nil {
		p.Attempts = p.Ran
		to := r.now.Truncate(5 * time.Second).Add(5 * time.Second)
		if in.Gone != nil {
			to = *in.Gone
		}
		p.Life = life(p.Instance, *in.Created, to, r.now)
	}
	p.Verbs = verbsFor(in)
	return p, nil
}

// verbsFor returns the verbs that would change something.
func verbsFor(in drover.Instance) []drover.Verb {
	switch {
	case in.State == drover.InstanceGone:
		return nil
	case in.State == drover.InstanceStopping:
		return []drover.Verb{drover.VerbKill}
	case in.Idle == drover.IdleHold:
		return []drover.Verb{drover.VerbDrain, drover.VerbRelease, drover.VerbKill}
	case in.Idle == drover.IdleDrain:
		return []drover.Verb{drover.VerbHold, drover.VerbRelease, drover.VerbKill}
	}
	return []drover.Verb{drover.VerbDrain, drover.VerbHold, drover.VerbKill}
}

// here returns the address of an instance's page.
func here(name string) string { return "/instances/" + url.PathEscape(name) }
