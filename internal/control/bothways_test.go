package control

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/internal/engine"
	"drover/internal/httpapi"
)

// TestService calls a controller in this process and the same controller over HTTP: both must behave alike.
func TestService(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c, stop := f.begin()
	defer stop()
	f.until(c, "the types are known", func(e *engine.Engine) bool { _, known := e.Catalogue(); return known })
	both := map[string]drover.Service{"in this process": c, "over HTTP": overHTTP(t, c)}
	for name, svc := range both {
		t.Run(name+", at rest", func(t *testing.T) { explainsRest(t, svc) })
	}

	f.submit(c, "sleep 60", "true", "sleep 60")
	f.until(c, "two jobs run and one has ended", func(e *engine.Engine) bool {
		return runs(2)(e) && must(c.stored(t.Context(), job(2)))(t).State == drover.JobSucceeded
	})
	must(c.SetPriority(t.Context(), job(3), 0))(t)
	f.until(c, "the third waits", func(*engine.Engine) bool { return must(c.stored(t.Context(), job(3)))(t).State == drover.JobQueued })
	for name, svc := range both {
		t.Run(name+", at work", func(t *testing.T) { explainsWork(t, svc) })
		t.Run(name+", page by page", func(t *testing.T) { pages(t, svc) })
		t.Run(name+", unknown subjects", func(t *testing.T) { reportsUnknown(t, svc) })
	}
	t.Run("both answer alike", func(t *testing.T) {
		for what, ask := range lasting(must(c.Instances(t.Context(), drover.InstanceFilter{}))(t).Items[0].Name) {
			here, there := must(ask(t.Context(), both["in this process"]))(t), must(ask(t.Context(), both["over HTTP"]))(t)
			if diff := cmp.Diff(asJSON(t, here), asJSON(t, there)); diff != "" {
				t.Errorf("%s (-in this process +over HTTP):\n%s", what, diff)
			}
		}
	})
}

// overHTTP is a client of the service.
func overHTTP(t *testing.T, svc drover.Service) drover.Service {
	anybody := func(context.Context, drover.Secret) (drover.Identity, error) {
		return drover.Identity{User: "ada", Role: drover.RoleAdmin}, nil
	}
	h := httpapi.New(httpapi.Config{Service: svc, Authenticate: anybody, Log: slog.New(slog.DiscardHandler), Limits: httpapi.Limits{
		Requests: httpapi.Rate{PerSecond: 1000, Burst: 1000}, Attempts: httpapi.Rate{PerSecond: 1000, Burst: 1000}, Tries: httpapi.Rate{PerSecond: 1000, Burst: 1000},
	}})
	server, transport := httptest.NewServer(h), &http.Transport{}
	t.Cleanup(func() {
		h.Close()
		transport.CloseIdleConnections()
		server.Close()
	})
	return must(httpapi.NewClient(server.URL, drover.NewSecret("any"), &http.Client{Transport: transport}))(t)
}

func explainsRest(t *testing.T, svc drover.Service) {
	offering := must(svc.Offers(t.Context(), drover.OfferFilter{}))(t)[0]
	name := drover.Offering{Cloud: offering.Cloud, Zone: offering.Zone, Type: drover.InstanceType{Name: offering.Type}, Market: offering.Market}.Name()
	for subject, want := range map[string]string{
		"": drover.ReasonRest, "fleet": drover.ReasonRest, "here": drover.ReasonOffered, name: drover.ReasonOffered, "here/" + offering.Type: drover.ReasonOffered, "here/*": drover.ReasonOffered,
	} {
		list := must(svc.Explain(t.Context(), subject))(t)
		if len(list) != 1 || len(list[0].Reasons) != 1 || list[0].Reasons[0].Code != want {
			t.Errorf("%q is explained by %+v, want %s", subject, list, want)
		}
	}
}

// explainsWork checks explanations while one job runs, one has ended and one is held.
func explainsWork(t *testing.T, svc drover.Service) {
	instances := must(svc.Instances(t.Context(), drover.InstanceFilter{}))(t).Items
	at := slices.IndexFunc(instances, func(in drover.Instance) bool { return in.State == drover.InstanceRunning })
	if at < 0 {
		t.Fatalf("no instance runs anything: %+v", instances)
	}
	for subject, want := range map[string]string{
		"1": drover.ReasonRunning, "2": drover.ReasonExit, "3": drover.ReasonHeld, "fleet": drover.ReasonHeld, instances[at].Name: drover.ReasonRunning,
		instances[at].ProviderID: drover.ReasonRunning, "here": drover.ReasonOffered,
	} {
		list := must(svc.Explain(t.Context(), subject))(t)
		if len(list) != 1 || len(list[0].Reasons) == 0 || list[0].Reasons[0].Code != want && want != drover.ReasonOffered {
			t.Fatalf("%q is explained by %+v, want %s", subject, list, want)
		}
		if why := list[0].Reasons[0]; want != drover.ReasonOffered && want != drover.ReasonExit && why.Since == 0 {
			t.Errorf("the explanation of %q has no time: %+v", subject, why)
		}
	}
	all := must(svc.Explain(t.Context(), ""))(t)
	if len(all) < 2 || all[0].Subject != "fleet" || !slices.ContainsFunc(all, func(x drover.Explanation) bool { return x.Subject == "3" && x.Waiting }) {
		t.Errorf("everything is explained by %+v", all)
	}
	if costs := must(svc.Costs(t.Context(), drover.CostFilter{By: drover.CostByJob}))(t); !slices.ContainsFunc(costs.Lines, func(l drover.CostLine) bool { return l.Key == "1" }) {
		t.Errorf("the running job has cost nothing: %+v", costs)
	}
}

func pages(t *testing.T, svc drover.Service) {
	var ids []string
	for filter := (drover.JobFilter{Limit: 2}); ; {
		page := must(svc.Jobs(t.Context(), filter))(t)
		for _, j := range page.Items {
			ids = append(ids, j.ID.String())
		}
		if page.Next == "" {
			break
		}
		filter.After = must(drover.ParseJobID(page.Next))(t)
	}
	if got := strings.Join(ids, " "); got != "1 2 3" {
		t.Errorf("the jobs are %s", got)
	}
}

func reportsUnknown(t *testing.T, svc drover.Service) {
	ctx := t.Context()
	for _, subject := range []string{"nowhere", "here/nothing", "nowhere/*", "here/[", "here/a/b/c/d", "99"} {
		if list, err := svc.Explain(ctx, subject); err == nil || drover.KindOf(err) != drover.KindNotFound {
			t.Errorf("%q is explained by %+v: %v", subject, list, err)
		}
	}
	for what, err := range map[string]error{
		"a job": second(svc.Job(ctx, job(99))), "an instance": second(svc.Instance(ctx, "nobody")), "a verb": second(svc.Instruct(ctx, "nobody", drover.VerbHold, "")),
	} {
		if drover.KindOf(err) != drover.KindNotFound {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := svc.Costs(ctx, drover.CostFilter{By: drover.CostByJob, Since: 2e9, Until: 1e9}); drover.KindOf(err) != drover.KindInvalid {
		t.Errorf("costs until before since: %v", err)
	}
	if _, err := svc.Offers(ctx, drover.OfferFilter{Cloud: "elsewhere"}); drover.KindOf(err) != drover.KindInvalid {
		t.Errorf("offers of an unknown cloud: %v", err)
	}
	if _, err := svc.Costs(ctx, drover.CostFilter{By: "weather"}); drover.KindOf(err) != drover.KindInvalid {
		t.Errorf("costs by weather: %v", err)
	}
}

// lasting returns calls, some about an instance, whose answers stay the same while nothing happens.
func lasting(instance string) map[string]func(context.Context, drover.Service) (any, error) {
	type ctx = context.Context
	explains := func(subject string) func(ctx, drover.Service) (any, error) {
		return func(c ctx, s drover.Service) (any, error) { return s.Explain(c, subject) }
	}
	return map[string]func(context.Context, drover.Service) (any, error){
		"everything": explains(""), "the fleet": explains("fleet"), "a running job": explains("1"), "a finished job": explains("2"), "a held job": explains("3"),
		"an instance": explains(instance), "the cloud": explains("here"), "offerings": explains("here/*"),
		"a job's record": func(c ctx, s drover.Service) (any, error) { return s.Job(c, job(2)) },
		"offers":         func(c ctx, s drover.Service) (any, error) { return s.Offers(c, drover.OfferFilter{Cloud: "here"}) },
		"offers for an impossible need": func(c ctx, s drover.Service) (any, error) {
			return s.Offers(c, drover.OfferFilter{Need: drover.Resources{CPU: 1 << 40}})
		},
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	return string(must(json.MarshalIndent(v, "", " "))(t))
}
