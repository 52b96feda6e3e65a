package httpapi_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"drover"
	"drover/internal/httpapi"
)

// fake is a Service that records its calls and always gives the same answer, with every field set, or an error.
type fake struct {
	mu     sync.Mutex
	asked  []any
	err    error
	events iter.Seq2[drover.Event, error]              // nil: two events
	quiet  bool                                        // there are no events until the watcher leaves
	log    func(ctx context.Context) io.ReadCloser     // nil: a line
	put    func(hash string, contents io.Reader) error // nil: accepts all
	opened string                                      // the output opened last
}

// content is the content of every output of a fake.
const content = "<script>contents"

func (f *fake) ask(ctx context.Context, args ...any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, args...)
	return f.err
}

// answer returns a value with every field set, or the error.
func answer[T any](err error) (T, error) {
	var v T
	if err == nil {
		new(filler).fill(reflect.ValueOf(&v).Elem())
	}
	return v, err
}

func (f *fake) Submit(ctx context.Context, s drover.Submission) (drover.Receipt, error) {
	return answer[drover.Receipt](f.ask(ctx, "submit", s))
}

func (f *fake) MissingInputs(ctx context.Context, hashes []string) ([]string, error) {
	return answer[[]string](f.ask(ctx, "missing", hashes))
}

func (f *fake) PutInput(ctx context.Context, hash string, contents io.Reader) error {
	if f.put != nil {
		return f.put(hash, contents)
	}
	text, err := io.ReadAll(contents)
	if err != nil {
		return err
	}
	return f.ask(ctx, "put", hash, string(text))
}

func (f *fake) Jobs(ctx context.Context, filter drover.JobFilter) (drover.Page[drover.Job], error) {
	page, err := answer[drover.Page[drover.Job]](f.ask(ctx, "jobs", filter))
	if err == nil {
		page.Next = "17.3"
	}
	return page, err
}

func (f *fake) Job(ctx context.Context, id drover.JobID) (drover.Job, error) {
	job, err := answer[drover.Job](f.ask(ctx, "job", id))
	job.User = drover.IdentityOf(ctx).User
	if id.Number == 404 {
		err = drover.Errorf(drover.KindNotFound, "there is no job 404")
	}
	if id.Number == 5 {
		job.User = "somebody else"
	}
	return job, err
}

func (f *fake) Cancel(ctx context.Context, id drover.JobID, reason string) (drover.Job, error) {
	return answer[drover.Job](f.ask(ctx, "cancel", id, reason))
}

func (f *fake) Retry(ctx context.Context, id drover.JobID, reason string) (drover.Job, error) {
	return answer[drover.Job](f.ask(ctx, "retry", id, reason))
}

func (f *fake) Prune(ctx context.Context, before drover.Time) (drover.Pruned, error) {
	return answer[drover.Pruned](f.ask(ctx, "prune", before))
}

func (f *fake) RetryWith(ctx context.Context, id drover.JobID, batch drover.Batch, reason string) (drover.Job, error) {
	batch.User = "" // the job keeps its own
	return answer[drover.Job](f.ask(ctx, "retry with", id, batch, reason))
}

func (f *fake) SetPriority(ctx context.Context, id drover.JobID, priority int) (drover.Job, error) {
	return answer[drover.Job](f.ask(ctx, "priority", id, priority))
}

func (f *fake) SetPaused(ctx context.Context, paused bool, reason string) (drover.Status, error) {
	return answer[drover.Status](f.ask(ctx, "paused", paused, reason))
}

func (f *fake) Logs(ctx context.Context, r drover.LogRequest) (io.ReadCloser, error) {
	if err := f.ask(ctx, "logs", r); err != nil {
		return nil, err
	}
	if f.log != nil {
		return f.log(ctx), nil
	}
	return io.NopCloser(strings.NewReader("a line\n")), nil
}

func (f *fake) Outputs(ctx context.Context, id drover.JobID) ([]drover.File, error) {
	files, err := answer[[]drover.File](f.ask(ctx, "outputs", id))
	return append(files, drover.File{Path: f.opened, Mode: 0o640, Size: int64(len(content)), Hash: fmt.Sprintf("%x", sha256.Sum256([]byte(content)))}), err
}

func (f *fake) OpenOutput(ctx context.Context, id drover.JobID, path string, from int64) (io.ReadCloser, error) {
	if err := f.ask(ctx, "output", id, path); err != nil {
		return nil, err
	}
	f.opened = path
	return io.NopCloser(strings.NewReader(content[from:])), nil
}

func (f *fake) Summary(ctx context.Context) (drover.Summary, error) {
	return answer[drover.Summary](f.ask(ctx, "summary"))
}

func (f *fake) Instances(ctx context.Context, filter drover.InstanceFilter) (drover.Page[drover.Instance], error) {
	page, err := answer[drover.Page[drover.Instance]](f.ask(ctx, "instances", filter))
	if err == nil {
		page.Next = "18"
	}
	return page, err
}

func (f *fake) Instance(ctx context.Context, name string) (drover.Instance, error) {
	return answer[drover.Instance](f.ask(ctx, "instance", name))
}

func (f *fake) Instruct(ctx context.Context, name string, verb drover.Verb, reason string) (drover.Instance, error) {
	return answer[drover.Instance](f.ask(ctx, "instruct", name, verb, reason))
}

func (f *fake) Pools(ctx context.Context) ([]drover.Pool, error) {
	return answer[[]drover.Pool](f.ask(ctx, "pools"))
}

func (f *fake) ResizePool(ctx context.Context, name string, count int, reason string) (drover.Pool, error) {
	return answer[drover.Pool](f.ask(ctx, "resize", name, count, reason))
}

func (f *fake) Offers(ctx context.Context, filter drover.OfferFilter) ([]drover.Offer, error) {
	return answer[[]drover.Offer](f.ask(ctx, "offers", filter))
}

func (f *fake) Costs(ctx context.Context, filter drover.CostFilter) (drover.Costs, error) {
	return answer[drover.Costs](f.ask(ctx, "costs", filter))
}

func (f *fake) Status(ctx context.Context) (drover.Status, error) {
	return answer[drover.Status](f.ask(ctx, "status"))
}

func (f *fake) Explain(ctx context.Context, subject string) ([]drover.Explanation, error) {
	return answer[[]drover.Explanation](f.ask(ctx, "explain", subject))
}

func (f *fake) Events(ctx context.Context, filter drover.EventFilter) iter.Seq2[drover.Event, error] {
	err := f.ask(ctx, "events", filter)
	if err == nil && f.events != nil {
		return f.events
	}
	return func(yield func(drover.Event, error) bool) {
		switch {
		case err != nil:
			yield(drover.Event{}, err)
			return
		case f.quiet:
			<-ctx.Done()
			return
		}
		events, _ := answer[[2]drover.Event](nil)
		_ = yield(events[0], nil) && yield(events[1], nil)
	}
}

func (f *fake) Dump(ctx context.Context, w io.Writer) error {
	if err := f.ask(ctx, "dump"); err != nil {
		return err
	}
	_, err := io.WriteString(w, `{"all": "of it"}`)
	return err
}

func (f *fake) CreateToken(ctx context.Context, r drover.TokenRequest) (drover.NewToken, error) {
	return answer[drover.NewToken](f.ask(ctx, "create token", r))
}

func (f *fake) Tokens(ctx context.Context) ([]drover.Token, error) {
	return answer[[]drover.Token](f.ask(ctx, "tokens"))
}

func (f *fake) RevokeToken(ctx context.Context, id string) error {
	return f.ask(ctx, "revoke", id)
}

// filler sets every field of a value, each to a different value.
type filler struct{ n int }

func (f *filler) fill(v reflect.Value) {
	f.n++
	switch p := v.Addr().Interface().(type) {
	case *drover.JobID:
		*p = drover.JobID{Number: int64(f.n), Index: f.n}
		return
	case *drover.AttemptID:
		*p = drover.AttemptID{Job: drover.JobID{Number: int64(f.n), Index: -1}, Number: f.n}
		return
	case *time.Time:
		*p = time.Unix(int64(f.n), 1).UTC()
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("<é %d>", f.n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(f.n))
	case reflect.Uint32:
		v.SetUint(uint64(f.n))
	case reflect.Float64:
		v.SetFloat(float64(f.n) + 0.1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		f.fill(v.Index(0))
		f.fill(v.Index(1))
	case reflect.Array:
		for i := range v.Len() {
			f.fill(v.Index(i))
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		f.fill(key)
		f.fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			f.fill(v.Field(i))
		}
	default:
		panic("cannot fill a " + v.Type().String())
	}
}

// Tokens of these tests.
var (
	own   = drover.AttemptID{Job: drover.JobID{Number: 17, Index: 3}, Number: 1}
	other = drover.AttemptID{Job: drover.JobID{Number: 18, Index: 3}, Number: 1}
)

func authenticate(_ context.Context, token drover.Secret) (drover.Identity, error) {
	switch text := token.Reveal(); text {
	case "view", "submit", "operate", "admin":
		return drover.Identity{User: text + "er", Role: drover.Role(text)}, nil
	case "own":
		return drover.Identity{User: "submiter", Attempt: &own}, nil
	case "other":
		return drover.Identity{User: "submiter", Attempt: &other}, nil
	case "expired", "revoked":
		return drover.Identity{}, drover.Errorf(drover.KindAuthentication, "this token has %s", text)
	}
	return drover.Identity{}, drover.Errorf(drover.KindAuthentication, "there is no such token")
}

// lax has limits that these tests do not reach.
var lax = httpapi.Limits{Requests: httpapi.Rate{PerSecond: 1e6, Burst: 1e6}, Attempts: httpapi.Rate{PerSecond: 1e6, Burst: 1e6}, Tries: httpapi.Rate{PerSecond: 1e6, Burst: 1e6}}

func configFor(svc drover.Service) httpapi.Config {
	return httpapi.Config{Service: svc, Authenticate: authenticate, Log: slog.New(slog.DiscardHandler), Version: "1.2.3", Limits: lax,
		Compare: func(_ context.Context, name string, text []byte) (drover.ConfigDiff, error) {
			return drover.ConfigDiff{Changes: []drover.ConfigChange{{Key: name, To: string(text)}}}, nil
		},
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "up 1") }),
		Login:   func(drover.Secret) (string, error) { return "/login", nil }}
}

func serveWithin(svc drover.Service) *httpapi.Handler { return httpapi.New(configFor(svc)) }

// serve serves a Service over HTTP.
func serve(t *testing.T, svc drover.Service, change ...func(*httpapi.Config)) (*httpapi.Handler, *httptest.Server) {
	t.Helper()
	cfg := configFor(svc)
	for _, c := range change {
		c(&cfg)
	}
	h := httpapi.New(cfg)
	s := httptest.NewUnstartedServer(h)
	s.Config = httpapi.Server(h)
	s.Start()
	t.Cleanup(func() {
		h.Close()
		s.CloseClientConnections()
		s.Close()
	})
	return h, s
}

// client returns a Client with a token.
func client(t *testing.T, url, token string) *httpapi.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	c, err := httpapi.NewClient(url, drover.NewSecret(token), &http.Client{Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

type ctxt = context.Context

// panicking panics when its status is requested.
type panicking struct{ drover.Service }

func (panicking) Status(context.Context) (drover.Status, error) { panic("out of cheese") }

// logTo makes a Handler log everything to w, one line at a time.
func logTo(w io.Writer) func(*httpapi.Config) {
	return func(c *httpapi.Config) {
		c.Log = slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
}
