package web

import (
	"context"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"drover"
)

// nasty is text that tries in every way to escape from text, an attribute or an address, and to become markup.
const nasty = `"'></td><script>alert(1)</script><img src=x onerror=alert(2)>&amp;javascript:alert(3)` + "\x1b[31m\u202e`${7*7}{{.}}\r\rdata: more"

// fake is a Service that returns the same nasty text everywhere, and records its calls.
type fake struct {
	drover.Service
	mu        sync.Mutex
	asked     []string
	page      func(drover.JobFilter) (drover.Page[drover.Job], error)
	costs     func() (drover.Costs, error)
	instances func(drover.InstanceFilter) (drover.Page[drover.Instance], error)
	logs      func(drover.LogRequest) io.ReadCloser
	state     drover.JobState
	err       error
	quiet     bool // no events
}

func (f *fake) ask(words ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, strings.Join(words, " "))
}

func (f *fake) Status(context.Context) (drover.Status, error) { return filled[drover.Status](), f.err }

func (f *fake) Jobs(_ context.Context, filter drover.JobFilter) (drover.Page[drover.Job], error) {
	if f.page != nil {
		return f.page(filter)
	}
	return drover.Page[drover.Job]{Items: []drover.Job{f.job(), f.job()}, Next: "17.3"}, nil
}

func (f *fake) job() drover.Job {
	job := filled[drover.Job]()
	job.Array.Only, job.Array.First, job.Array.Last = "", 0, 9
	job.Counts = map[drover.JobState]int{drover.JobFailed: 4, drover.JobQueued: 6}
	if f.state != "" {
		job.State = f.state
	}
	return job
}

func (f *fake) Job(_ context.Context, id drover.JobID) (drover.Job, error) {
	job := f.job()
	if job.ID = id; id.Index >= 0 {
		job.Array, job.Counts = nil, nil
	}
	return job, f.err
}

func (f *fake) Explain(context.Context, string) ([]drover.Explanation, error) {
	return filled[[]drover.Explanation](), nil
}

func (f *fake) Outputs(context.Context, drover.JobID) ([]drover.File, error) {
	return filled[[]drover.File](), nil
}

func (f *fake) OpenOutput(context.Context, drover.JobID, string, int64) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(nasty)), f.err
}

func (f *fake) Logs(_ context.Context, r drover.LogRequest) (io.ReadCloser, error) {
	if f.logs != nil {
		return f.logs(r), nil
	}
	return io.NopCloser(strings.NewReader(nasty + "\xff\n" + nasty)), nil
}

func (f *fake) Instances(_ context.Context, filter drover.InstanceFilter) (page drover.Page[drover.Instance], err error) {
	if f.instances != nil {
		return f.instances(filter)
	}
	if page.Items = filled[[]drover.Instance](); filter.After == 0 {
		page.Next = "9"
	}
	return page, nil
}

func (f *fake) Instance(context.Context, string) (drover.Instance, error) {
	return filled[drover.Instance](), nil
}

func (f *fake) Instruct(_ context.Context, name string, verb drover.Verb, reason string) (drover.Instance, error) {
	f.ask("instruct", name, string(verb), reason)
	return drover.Instance{Name: name}, f.err
}

func (f *fake) Pools(context.Context) ([]drover.Pool, error) {
	p, group := filled[drover.Pool](), filled[drover.Pool]()
	p.Name, p.Stopped, p.Keeps, p.Lent = "x", 2, 1300, 3
	group.Name, group.Kind, group.Wanted, group.Min, group.Max, group.Stopped, group.Keeps, group.Lent = "group", drover.PoolGroup, 7, 2, 1200, 0, 0, 0
	p.Reason = nil
	return []drover.Pool{filled[drover.Pool](), p, group, {Name: "spare", Kind: drover.PoolSpare, Wanted: 1, Instances: 4, Ready: 4}}, nil
}

func (f *fake) ResizePool(_ context.Context, name string, count int, reason string) (drover.Pool, error) {
	f.ask("resize", name, strconv.Itoa(count), reason)
	return drover.Pool{Name: name}, f.err
}

func (f *fake) Cancel(_ context.Context, id drover.JobID, reason string) (drover.Job, error) {
	f.ask("cancel", id.String(), reason)
	return drover.Job{}, f.err
}

func (f *fake) Retry(_ context.Context, id drover.JobID, reason string) (drover.Job, error) {
	f.ask("retry", id.String(), reason)
	return drover.Job{}, f.err
}

func (f *fake) SetPriority(_ context.Context, id drover.JobID, n int) (drover.Job, error) {
	f.ask("priority", id.String(), string(rune('0'+n)))
	return drover.Job{}, f.err
}

func (f *fake) SetPaused(_ context.Context, paused bool, reason string) (drover.Status, error) {
	f.ask("paused", map[bool]string{true: "yes", false: "no"}[paused], reason)
	return drover.Status{}, f.err
}

func (f *fake) Offers(context.Context, drover.OfferFilter) ([]drover.Offer, error) {
	return filled[[]drover.Offer](), nil
}

func (f *fake) Costs(context.Context, drover.CostFilter) (drover.Costs, error) {
	if f.costs != nil {
		return f.costs()
	}
	c := filled[drover.Costs]()
	c.Steps = []drover.CostStep{{Since: 1, Until: 2, Cost: []float64{1, 2}, Other: 3}}
	return c, nil
}

func (f *fake) Events(context.Context, drover.EventFilter) iter.Seq2[drover.Event, error] {
	if f.quiet {
		return func(func(drover.Event, error) bool) {}
	}
	return func(yield func(drover.Event, error) bool) { yield(filled[drover.Event](), f.err) }
}

// filled returns a value with every field set, and every text nasty.
func filled[T any]() (v T) {
	fill(reflect.ValueOf(&v).Elem())
	return v
}

func fill(v reflect.Value) {
	switch p := v.Addr().Interface().(type) {
	case *drover.JobID:
		*p = drover.JobID{Number: 17, Index: 3}
		return
	case *drover.AttemptID:
		*p = drover.AttemptID{Job: drover.JobID{Number: 17, Index: 3}, Number: 1}
		return
	case *time.Time:
		*p = time.Now().Add(-time.Minute)
		return
	case *drover.Time:
		*p = drover.TimeOf(time.Now().Add(time.Minute))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(nasty)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(3)
	case reflect.Uint32:
		v.SetUint(3)
	case reflect.Float64:
		v.SetFloat(3.25)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0))
		fill(v.Index(1))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	}
}

// browser is a client that is logged in.
type browser struct {
	*http.Client
	t   *testing.T
	url string
	h   *Handler
}

// letIn logs in a browser with the token of a role.
func letIn(t *testing.T, svc drover.Service, role drover.Role) browser {
	t.Helper()
	return letInWith(t, svc, role, nil)
}

func letInWith(t *testing.T, svc drover.Service, role drover.Role, s Simulator) browser {
	t.Helper()
	h := New(Config{
		Fleet: nasty, Simulator: s, Log: slog.New(slog.DiscardHandler),
		Authenticate: func(_ context.Context, token drover.Secret) (drover.Identity, error) {
			if token.Reveal() == "revoked" {
				return drover.Identity{}, drover.Errorf(drover.KindAuthentication, "this token was revoked")
			}
			return drover.Identity{User: nasty, Role: drover.Role(token.Reveal())}, nil
		},
		Service: func(drover.Secret) drover.Service { return svc },
	})
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	b := browser{&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, Jar: &jar{}}, t, server.URL, h}
	b.login(role)
	return b
}

func (b browser) login(role drover.Role) {
	b.t.Helper()
	link, err := b.h.Login(drover.NewSecret(string(role)))
	if err != nil {
		b.t.Fatal(err)
	}
	if code, _, _ := b.get(link); code != http.StatusSeeOther {
		b.t.Fatalf("logging in: %d", code)
	}
}

// get requests a page.
func (b browser) get(path string) (code int, text string, head http.Header) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), "GET", b.url+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.do(r)
}

// post sends a form, as if from the page itself or from another site.
func (b browser) post(path, from string, form url.Values) (code int, text string, head http.Header) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), "POST", b.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", from)
	return b.do(r)
}

func (b browser) do(r *http.Request) (code int, text string, head http.Header) {
	b.t.Helper()
	answer, err := b.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return answer.StatusCode, string(body), answer.Header
}

// jar keeps the cookies of one site.
type jar struct{ cookies []*http.Cookie }

// SetCookies keeps the cookies that were set last.
func (j *jar) SetCookies(_ *url.URL, cookies []*http.Cookie) { j.cookies = cookies }

// Cookies returns these cookies.
func (j *jar) Cookies(*url.URL) []*http.Cookie { return j.cookies }
