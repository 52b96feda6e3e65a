package web

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"drover"
)

// jobsShown is how many jobs a page has.
const jobsShown = 50

// jobList is a page of jobs, the newest first, with the search that found them.
type jobList struct {
	Search string
	State  drover.JobState
	User   string
	Mine   bool
	States []drover.JobState
	Jobs   []jobRow
	Older  string // the address of the next page; empty if there is none
	First  bool
}

// jobRow is a job in a list.
type jobRow struct {
	drover.Job
	Parts []part // of an array's elements
	Size  int
}

func (h *Handler) jobs(ctx context.Context, r *request) (any, error) {
	q := r.URL.Query()
	list := jobList{Search: strings.TrimSpace(q.Get("q")), State: drover.JobState(q.Get("state")), User: q.Get("user"), Mine: q.Get("mine") != "", First: q.Get("before") == "",
		States: jobStates}
	if _, err := drover.ParseJobID(list.Search); err == nil {
		return nil, moved{"/jobs/" + list.Search}
	}
	f, err := list.filter(q.Get("before"))
	if err != nil {
		return nil, err
	}
	page, err := r.svc.Jobs(ctx, f)
	if err != nil {
		return nil, err
	}
	for _, job := range page.Items {
		list.Jobs = append(list.Jobs, rowOf(job))
	}
	if page.Next != "" {
		q.Set("before", page.Next)
		list.Older = "/jobs?" + q.Encode()
	}
	return list, nil
}

var jobStates = []drover.JobState{drover.JobQueued, drover.JobRunning, drover.JobSucceeded, drover.JobFailed, drover.JobCancelled}

// filter returns the filter of the form. A search that contains = is for a label.
func (l jobList) filter(before string) (f drover.JobFilter, err error) {
	f = drover.JobFilter{User: l.User, Mine: l.Mine, Newest: true, Limit: jobsShown}
	if label, value, ok := strings.Cut(l.Search, "="); ok {
		f.Labels = map[string]string{label: value}
	} else {
		f.Match = l.Search
	}
	if slices.Contains(jobStates, l.State) {
		f.States = []drover.JobState{l.State}
	}
	if before != "" {
		if f.After, err = drover.ParseJobID(before); err != nil {
			err = drover.Errorf(drover.KindInvalid, "%v", err)
		}
	}
	return f, err
}

// Last returns the job's last attempt; nil if it had none.
func (r jobRow) Last() *drover.Attempt {
	if n := len(r.Attempts); n > 0 {
		return &r.Attempts[n-1]
	}
	return nil
}

func rowOf(job drover.Job) jobRow {
	row := jobRow{Job: job, Size: 1}
	if job.Array == nil {
		return row
	}
	row.Size = job.Array.Size()
	row.Parts = partsOf([]drover.JobState{drover.JobSucceeded, drover.JobFailed, drover.JobCancelled, drover.JobRunning, drover.JobQueued}, job.Counts)
	return row
}

// jobPage is one job, or one element of an array.
type jobPage struct {
	jobRow
	Whole    string // for an element: the array's id
	Explain  []drover.Explanation
	Elements []jobRow
	More     string // the address of further elements
	From, To int    // the places of the first and last of Elements among Of
	Of       int
	Why      string // the last lines of a failed job's log
	Only     drover.JobState
	Outputs  []drover.File
	Hidden   bool // the reader may not see its output
	Cancel   bool // the reader may cancel it
	Retry    bool
	Mine     bool
}

func (p jobPage) title() string { return "Job " + p.ID.String() }

// elementsShown is how many elements of an array a page has.
const elementsShown = 50

func (h *Handler) job(ctx context.Context, r *request) (any, error) {
	id, err := jobID(r)
	if err != nil {
		return nil, err
	}
	job, err := r.svc.Job(ctx, id)
	if err != nil {
		return nil, err
	}
	p := jobPage{jobRow: rowOf(job), Cancel: !job.State.Final(), Only: drover.JobState(r.URL.Query().Get("state"))}
	p.Mine = r.may(drover.RoleOperate) || r.may(drover.RoleSubmit) && job.User == r.who.User
	p.Retry = job.State.Final() && (job.State != drover.JobSucceeded || job.Counts[drover.JobFailed]+job.Counts[drover.JobCancelled] > 0)
	if id.Index >= 0 {
		p.Whole = strconv.FormatInt(id.Number, 10)
	}
	if p.Explain, err = r.svc.Explain(ctx, id.String()); err != nil && drover.KindOf(err) != drover.KindNotFound {
		return nil, err
	}
	if job.Array != nil {
		return p, p.addElements(ctx, r)
	}
	p.Outputs, err = r.svc.Outputs(ctx, id)
	if drover.KindOf(err) == drover.KindForbidden {
		p.Hidden, err = true, nil
	}
	if last := p.Last(); last != nil && job.State == drover.JobFailed && !p.Hidden {
		p.Why = lastLines(ctx, r, id, last.Number)
	}
	return p, err
}

func (p *jobPage) addElements(ctx context.Context, r *request) error {
	f := drover.JobFilter{Job: p.ID.Number, Elements: true, Limit: elementsShown}
	p.Of = p.Size
	if slices.Contains(jobStates, p.Only) {
		f.States, p.Of = []drover.JobState{p.Only}, p.Counts[p.Only]
	} else {
		p.Only = ""
	}
	if after := r.URL.Query().Get("after"); after != "" {
		id, err := drover.ParseJobID(after)
		if err != nil {
			return drover.Errorf(drover.KindInvalid, "%v", err)
		}
		f.After = id
		p.To, _ = strconv.Atoi(r.URL.Query().Get("from"))
	}
	page, err := r.svc.Jobs(ctx, f)
	for _, e := range page.Items {
		p.Elements = append(p.Elements, jobRow{Job: e, Size: 1})
	}
	p.From, p.To = p.To+1, p.To+len(p.Elements)
	if page.Next != "" {
		p.More = "/jobs/" + p.ID.String() + "?" + url.Values{"after": {page.Next}, "from": {strconv.Itoa(p.To)}, "state": {string(p.Only)}}.Encode()
	}
	return err
}

func jobID(r *request) (drover.JobID, error) {
	id, err := drover.ParseJobID(r.PathValue("id"))
	if err != nil {
		return id, drover.Errorf(drover.KindNotFound, "%v", err)
	}
	return id, nil
}
