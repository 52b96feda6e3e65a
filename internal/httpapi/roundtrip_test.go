package httpapi_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"drover"
	"drover/internal/config"
	"drover/internal/httpapi"
)

var (
	whole   = drover.JobID{Number: 17, Index: -1}
	element = drover.JobID{Number: 17, Index: 3}
	zeros   = strings.Repeat("0", 64)
)

// batch returns a valid batch that uses every feature.
func batch() drover.Batch {
	first, second := config.DefaultJob(), config.DefaultJob()
	first.Name, first.Command, first.Array = "a", []string{"sh", "-c", "echo \"é\"\n"}, drover.Array{First: 1, Last: 20, Set: true}
	first.Inputs = []drover.Input{{Path: "/home/me/x"}}
	first.Files = []drover.File{{Path: "x/y", Mode: 0o644, Size: 3, Hash: zeros}}
	second.Name, second.Command, second.After = "b", []string{"y"}, []string{"a"}
	second.Inputs, second.Timeout, second.Expected, second.Labels = []drover.Input{{From: "a"}}, time.Hour, time.Minute, map[string]string{"project": "demo"}
	second.Env, second.Retry = map[string]string{"LANG": "C"}, drover.Retry{ExitCodes: []int{75}, Times: 2}
	return drover.Batch{Name: "hello", User: "me", Jobs: []drover.JobSpec{first, second}}
}

// calls returns a call of every method of a Service, most with all parameters set.
func calls() map[string]func(ctx context.Context, s drover.Service) (any, error) {
	type ctx = context.Context
	type svc = drover.Service
	return map[string]func(ctx context.Context, s drover.Service) (any, error){
		"Submit": func(c ctx, s svc) (any, error) {
			return s.Submit(c, drover.Submission{Batch: batch(), Key: "a key, with signs"})
		},
		"MissingInputs": func(c ctx, s svc) (any, error) { return s.MissingInputs(c, []string{zeros, zeros}) },
		"PutInput":      func(c ctx, s svc) (any, error) { return nil, s.PutInput(c, zeros, strings.NewReader("contents")) },
		"Jobs": func(c ctx, s svc) (any, error) {
			return s.Jobs(c, drover.JobFilter{Job: 3, Batch: "b b", User: "u&=", Mine: true, States: []drover.JobState{drover.JobFailed, drover.JobRunning},
				Labels: map[string]string{"a": "x,y=z", "b": ""}, Elements: true, Tried: true, Match: "a b&", Newest: true, After: element, Limit: 7})
		},
		"Jobs, all":        func(c ctx, s svc) (any, error) { return s.Jobs(c, drover.JobFilter{}) },
		"Jobs after array": func(c ctx, s svc) (any, error) { return s.Jobs(c, drover.JobFilter{After: whole}) },
		"Job":              func(c ctx, s svc) (any, error) { return s.Job(c, element) },
		"Job, whole":       func(c ctx, s svc) (any, error) { return s.Job(c, whole) },
		"Cancel":           func(c ctx, s svc) (any, error) { return s.Cancel(c, element, "why & \"how\"") },
		"Retry":            func(c ctx, s svc) (any, error) { return s.Retry(c, whole, "") },
		"RetryWith":        func(c ctx, s svc) (any, error) { return s.RetryWith(c, whole, batch(), "mended") },
		"Pause":            func(c ctx, s svc) (any, error) { return s.SetPaused(c, true, "no & work") },
		"Resume":           func(c ctx, s svc) (any, error) { return s.SetPaused(c, false, "") },
		"SetPriority":      func(c ctx, s svc) (any, error) { return s.SetPriority(c, whole, 0) },
		"Logs": func(c ctx, s svc) (any, error) {
			return text(s.Logs(c, drover.LogRequest{Job: element, Stream: drover.Stderr, Attempt: 2, Offset: 7}))
		},
		"Logs, followed": func(c ctx, s svc) (any, error) {
			return text(s.Logs(c, drover.LogRequest{Job: whole, Stream: drover.Stdout, Follow: true}))
		},
		"Outputs":    func(c ctx, s svc) (any, error) { return s.Outputs(c, element) },
		"OpenOutput": func(c ctx, s svc) (any, error) { return text(s.OpenOutput(c, element, "a b/é?.png", 3)) },
		"Instances": func(c ctx, s svc) (any, error) {
			return s.Instances(c, drover.InstanceFilter{Gone: true, States: []drover.InstanceState{drover.InstanceIdle}, Cloud: "aws", Since: drover.Time(time.Hour), Newest: true, After: 9, Limit: 2, Attempts: 3})
		},
		"Instance":           func(c ctx, s svc) (any, error) { return s.Instance(c, "i-1") },
		"Instance, by cloud": func(c ctx, s svc) (any, error) { return s.Instance(c, "/subscriptions/x//y?z#%2F") },
		"Instance, dots":     func(c ctx, s svc) (any, error) { return s.Instance(c, "..") },
		"Instruct":           func(c ctx, s svc) (any, error) { return s.Instruct(c, "i-1", drover.VerbDrain, "maintenance") },
		"Instruct, killed":   func(c ctx, s svc) (any, error) { return s.Instruct(c, "i-1", drover.VerbKill, "") },
		"Pools":              func(c ctx, s svc) (any, error) { return s.Pools(c) },
		"ResizePool":         func(c ctx, s svc) (any, error) { return s.ResizePool(c, "web", 3, "a launch & more") },
		"Offers, all":        func(c ctx, s svc) (any, error) { return s.Offers(c, drover.OfferFilter{}) },
		"Status":             func(c ctx, s svc) (any, error) { return s.Status(c) },
		"Explain":            func(c ctx, s svc) (any, error) { return s.Explain(c, "aws/us-east-1a/m7.large/spot") },
		"Costs": func(c ctx, s svc) (any, error) {
			return s.Costs(c, drover.CostFilter{By: "label:a b&c", Since: 1, Until: drover.Time(time.Hour), Limit: 3, Step: time.Minute})
		},
		"Summary":        func(c ctx, s svc) (any, error) { return s.Summary(c) },
		"Costs, all":     func(c ctx, s svc) (any, error) { return s.Costs(c, drover.CostFilter{By: drover.CostByJob}) },
		"Explain, all":   func(c ctx, s svc) (any, error) { return s.Explain(c, "") },
		"Explain, a job": func(c ctx, s svc) (any, error) { return s.Explain(c, "17.3") },
		"Tokens":         func(c ctx, s svc) (any, error) { return s.Tokens(c) },
		"RevokeToken":    func(c ctx, s svc) (any, error) { return nil, s.RevokeToken(c, "t/1") },
		"CreateToken, for a day": func(c ctx, s svc) (any, error) {
			return s.CreateToken(c, drover.TokenRequest{User: "u", Role: "view", TTL: 24 * time.Hour})
		},
		"CreateToken, for ever": func(c ctx, s svc) (any, error) {
			return s.CreateToken(c, drover.TokenRequest{User: "u", Role: "nonsense"})
		},
		"Offers": func(c ctx, s svc) (any, error) {
			return s.Offers(c, drover.OfferFilter{Cloud: "aws", All: true, Need: drover.Resources{CPU: 1500, Memory: drover.GiB + 1, Disk: 3, GPUs: 1, Arch: "arm64"}})
		},
		"Events": func(c ctx, s svc) (any, error) {
			var events []drover.Event
			for e, err := range s.Events(c, drover.EventFilter{After: "e 1", Job: element, Instance: "i", Level: "warn", Recent: true, Last: 9}) {
				if err != nil {
					return nil, err
				}
				events = append(events, e)
			}
			return events, nil
		},
		"Dump": func(c ctx, s svc) (any, error) {
			var b strings.Builder
			err := s.Dump(c, &b)
			return b.String(), err
		},
	}
}

func text(r io.ReadCloser, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	return string(b), err
}

// TestRoundTrip calls a Service directly and through Handler and Client. Arguments, answers and errors are the same.
// covers D22 K8
func TestRoundTrip(t *testing.T) {
	direct, remote := &fake{}, &fake{}
	_, s := serve(t, remote)
	c := client(t, s.URL, "admin")
	as := drover.WithIdentity(t.Context(), drover.Identity{User: "adminer", Role: drover.RoleAdmin})
	for name, call := range calls() {
		t.Run(name+" has the same arguments and answer", func(t *testing.T) {
			direct.asked, remote.asked = nil, nil
			want, err := call(as, direct)
			if err != nil {
				t.Fatal(err)
			}
			got, err := call(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(direct.asked, remote.asked, cmpopts.EquateEmpty()); diff != "" && name != "OpenOutput" { // the outputs are also listed, for size and hash
				t.Errorf("arguments (-direct +through the client)\n%s", diff)
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("answer (-direct +through the client)\n%s", diff)
			}
		})
	}
	inner := httpapi.Within(serveWithin(remote), drover.NewSecret("admin"))
	for name, call := range calls() {
		t.Run(name+" has the same arguments and answer within the process", func(t *testing.T) {
			direct.asked, remote.asked = nil, nil
			want, err := call(as, direct)
			got, innerErr := call(t.Context(), inner)
			if err != nil || innerErr != nil {
				t.Fatal(err, innerErr)
			}
			if name == "OpenOutput" { // the outputs are also listed, for size and hash
				remote.asked = direct.asked
			}
			if diff := cmp.Diff(direct.asked, remote.asked, cmpopts.EquateEmpty()) + cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
	for _, err := range errorsOfEveryKind() {
		t.Run("an error of kind "+string(err.Kind)+" arrives unchanged", func(t *testing.T) {
			remote.err = err
			defer func() { remote.err = nil }()
			for name, call := range calls() {
				_, got := call(t.Context(), c)
				if diff := cmp.Diff(error(err), got); diff != "" {
					t.Errorf("%s (-want +got)\n%s", name, diff)
				}
			}
		})
	}
	t.Run("an error without a kind is internal", func(t *testing.T) {
		remote.err = io.ErrNoProgress
		defer func() { remote.err = nil }()
		_, err := c.Status(t.Context())
		if diff := cmp.Diff(&drover.Error{Kind: drover.KindInternal, Message: io.ErrNoProgress.Error()}, err); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
	t.Run("an empty list stays empty", func(t *testing.T) {
		_, s := serve(t, empty{remote})
		c := client(t, s.URL, "admin")
		page, err := c.Jobs(t.Context(), drover.JobFilter{})
		if err != nil || len(page.Items) != 0 || page.Next != "" {
			t.Errorf("got %+v, %v", page, err)
		}
	})
}

func errorsOfEveryKind() []*drover.Error {
	var all []*drover.Error
	for _, kind := range []drover.ErrorKind{
		drover.KindTransient, drover.KindQuota, drover.KindCapacity, drover.KindRateLimit, drover.KindUnsupported, drover.KindAuthentication, drover.KindNotFound,
		drover.KindInvalid, drover.KindUnreachable, drover.KindForbidden, drover.KindConflict, drover.KindHostKey, drover.KindInternal,
	} {
		all = append(all, &drover.Error{
			Kind: kind, Scope: drover.ScopeZone, Market: drover.Spot, RetryAt: drover.TimeOf(time.Now().Add(time.Hour)), Message: "a <message> \"with\" signs", Hint: "a hint",
		})
	}
	return all
}

// empty has no jobs.
type empty struct{ drover.Service }

func (empty) Jobs(context.Context, drover.JobFilter) (drover.Page[drover.Job], error) {
	return drover.Page[drover.Job]{}, nil
}

func TestPaging(t *testing.T) {
	_, s := serve(t, &fake{})
	c := client(t, s.URL, "view")
	jobs, err := c.Jobs(t.Context(), drover.JobFilter{Labels: map[string]string{"a": "b>; c"}})
	if err != nil || jobs.Next != "17.3" {
		t.Errorf("the next page of jobs is %q, %v", jobs.Next, err)
	}
	instances, err := c.Instances(t.Context(), drover.InstanceFilter{})
	if err != nil || instances.Next != "18" {
		t.Errorf("the next page of instances is %q, %v", instances.Next, err)
	}
}
