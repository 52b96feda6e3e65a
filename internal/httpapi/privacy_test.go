package httpapi_test

import (
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/internal/httpapi"
)

// private is a route and what it shows of job 5, which belongs to another user.
type private struct {
	path string
	kept bool // callers who only view or submit get 403; if false, they get an answer without the private parts
}

func privates() []private {
	return []private{
		{"/v1/jobs", false},
		{"/v1/jobs/5", false},
		{"/v1/jobs/5/explain", false},
		{"/v1/explain?subject=5", false},
		{"/v1/events?recent=true", false},
		{"/v1/jobs/5/logs", true},
		{"/v1/jobs/5/outputs", true},
		{"/v1/jobs/5/outputs/content?path=a", true},
		{"/v1/status", false},
		{"/v1/cost?by=label", true},
		{"/v1/cost?by=label:project", true},
	}
}

// others has one job, 5, which belongs to another user and has private text everywhere.
type others struct{ fake }

func (o *others) job() drover.Job {
	why := func() *drover.Reason { return &drover.Reason{Code: drover.ReasonExit, Text: "PRIVATE"} }
	return drover.Job{
		ID: drover.JobID{Number: 5, Index: -1}, User: "ada", State: drover.JobFailed, Labels: map[string]string{"PRIVATE": "PRIVATE"}, Command: []string{"PRIVATE"}, File: "PRIVATE",
		Reason: why(), Attempts: []drover.Attempt{{Reason: why()}},
	}
}

func (o *others) Status(ctxt) (drover.Status, error) {
	return drover.Status{Refused: "PRIVATE", Budgets: []drover.BudgetUse{{Scope: "fleet"}, {Scope: "user PRIVATE"}, {Scope: "label PRIVATE=x"}}}, nil
}

func (o *others) Job(ctxt, drover.JobID) (drover.Job, error) { return o.job(), nil }

func (o *others) Jobs(_ ctxt, f drover.JobFilter) (drover.Page[drover.Job], error) {
	if f.User != "" && f.User != "ada" {
		return drover.Page[drover.Job]{}, nil
	}
	return drover.Page[drover.Job]{Items: []drover.Job{o.job()}}, nil
}

func (o *others) Explain(ctxt, string) ([]drover.Explanation, error) {
	return []drover.Explanation{{Subject: "5", Reasons: []drover.Reason{*o.job().Reason}}}, nil
}

func (o *others) Events(ctxt, drover.EventFilter) iter.Seq2[drover.Event, error] {
	job := o.job()
	attempt := drover.AttemptID{Job: drover.JobID{Number: 5, Index: 2}, Number: 1}
	return func(yield func(drover.Event, error) bool) {
		_ = yield(drover.Event{ID: "1", Text: "PRIVATE", Job: &job.ID, Reason: job.Reason}, nil) &&
			yield(drover.Event{ID: "2", Text: "PRIVATE", Attempt: &attempt}, nil) && yield(drover.Event{ID: "3", Text: "of the fleet"}, nil)
	}
}

func TestPrivacy(t *testing.T) {
	_, s := serve(t, &others{})
	_, shared := serve(t, &others{}, func(c *httpapi.Config) { c.Shared = true })
	for _, p := range privates() {
		for _, role := range drover.Roles() {
			t.Run(fmt.Sprintf("%s with the role %s", p.path, role), func(t *testing.T) {
				got := do(t, s.URL, "GET", p.path, "Bearer "+string(role), "")
				all := role.Allows(drover.RoleOperate)
				want := 200
				if p.kept && !all {
					want = 403
				}
				if got.StatusCode != want || !p.kept && strings.Contains(got.text, "PRIVATE") != all {
					t.Errorf("%d, want %d: %s", got.StatusCode, want, got.text)
				}
				if want == 403 && got.problem(t).Kind != drover.KindForbidden {
					t.Error(got.text)
				}
				if got := do(t, shared.URL, "GET", p.path, "Bearer "+string(role), ""); got.StatusCode != 200 || !p.kept && !strings.Contains(got.text, "PRIVATE") {
					t.Errorf("shared: %d %s", got.StatusCode, got.text)
				}
			})
		}
	}
	t.Run("a search by labels finds only one's own jobs", func(t *testing.T) {
		for query, want := range map[string]int{"?label=a=b": 0, "?label=a=b&user=ada": 0, "?user=ada": 1, "": 1} {
			var jobs []drover.Job
			got := do(t, s.URL, "GET", "/v1/jobs"+query, "Bearer view", "")
			if err := json.Unmarshal([]byte(got.text), &jobs); err != nil || len(jobs) != want {
				t.Errorf("%q: %v %s", query, err, got.text)
			}
			if len(jobs) == 1 && jobs[0].Command == nil {
				t.Errorf("%q: its command is not a list: %s", query, got.text)
			}
		}
	})
	t.Run("events about the fleet are complete, those about others' jobs say only that they changed", func(t *testing.T) {
		var texts []string
		for e, err := range client(t, s.URL, "view").Events(t.Context(), drover.EventFilter{Recent: true}) {
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, e.ID+" "+e.Text)
		}
		want := []string{"1 another user's job 5 has changed", "2 another user's job 5.2 has changed", "3 of the fleet"}
		if diff := cmp.Diff(want, texts); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("one's own job is complete, for its attempts too", func(t *testing.T) {
		_, s := serve(t, &fake{})
		for token, path := range map[string]string{"view": "/v1/jobs/17.3", "own": "/v1/jobs/17.3"} {
			var job drover.Job
			got := do(t, s.URL, "GET", path, "Bearer "+token, "")
			if err := json.Unmarshal([]byte(got.text), &job); err != nil || len(job.Command) == 0 || len(job.Labels) == 0 {
				t.Errorf("%s: %v %s", token, err, got.text)
			}
		}
	})
}
