package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"drover"
	"drover/internal/httpapi"
)

// fakeController is a small Service with the data that a test gives it. It has the methods that the commands' tests
// need; the others are nil and panic.
type fakeController struct {
	drover.Service

	mu        sync.Mutex
	jobs      []drover.Job // by id, elements of arrays after their array
	instances []drover.Instance
	explained []drover.Explanation
	events    []drover.Event
	tokens    []drover.Token
	offers    []drover.Offer
	pools     []drover.Pool
	logs      map[drover.Stream][]string // what each read of a stream returns
	outputs   map[drover.JobID]map[string]string
	lies      string // what OpenOutput returns instead
	inputs    map[string]string
	submitted []drover.Submission
	told      []string       // verbs, with names and reasons
	faults    []error        // errors of the next calls
	page      int            // jobs per page
	aside     []string       // unreadable records
	notReady  error          // the answer of /readyz
	onJob     func(n int)    // called at the nth call of Job
	onLogs    func(n int)    // and of Logs
	asked     map[string]int // calls by method
}

// call counts a call and returns its fault.
func (f *fakeController) call(method string) error {
	if f.asked == nil {
		f.asked = map[string]int{}
	}
	f.asked[method]++
	if len(f.faults) == 0 {
		return nil
	}
	err := f.faults[0]
	f.faults = f.faults[1:]
	return err
}

func (f *fakeController) Status(context.Context) (drover.Status, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return drover.Status{Fleet: "lab", Version: "1.2.3", SetAside: f.aside}, f.call("Status")
}

func (f *fakeController) Jobs(_ context.Context, filter drover.JobFilter) (page drover.Page[drover.Job], err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.call("Jobs"); err != nil {
		return page, err
	}
	limit := filter.Limit
	if limit == 0 {
		limit = max(f.page, 1)
	}
	for _, j := range f.jobs {
		element := j.ArrayIndex != nil
		after := j.ID.Number > filter.After.Number || j.ID.Number == filter.After.Number && j.ID.Index > filter.After.Index
		switch {
		case filter.After.Number != 0 && !after, filter.Job != 0 && j.ID.Number != filter.Job, filter.Batch != "" && j.Batch != filter.Batch:
		case filter.Elements && j.Array != nil, !filter.Elements && element:
		case filter.States != nil && !slices.Contains(filter.States, j.State):
		case len(page.Items) == limit:
			page.Next = page.Items[limit-1].ID.String()
			return page, nil
		default:
			page.Items = append(page.Items, j)
		}
	}
	return page, nil
}

func (f *fakeController) Job(_ context.Context, id drover.JobID) (drover.Job, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.call("Job"); err != nil {
		return drover.Job{}, err
	}
	if f.onJob != nil {
		f.onJob(f.asked["Job"])
	}
	return f.job(id)
}

func (f *fakeController) job(id drover.JobID) (drover.Job, error) {
	for _, j := range f.jobs {
		if j.ID == id {
			return j, nil
		}
	}
	return drover.Job{}, drover.Errorf(drover.KindNotFound, "there is no job %v", id)
}

func (f *fakeController) Cancel(_ context.Context, id drover.JobID, reason string) (drover.Job, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.call("Cancel"); err != nil {
		return drover.Job{}, err
	}
	for i := range f.jobs {
		if f.jobs[i].ID == id {
			f.jobs[i].State = drover.JobCancelled
			f.jobs[i].Reason = &drover.Reason{Code: drover.ReasonCancelled, Text: reason}
		}
	}
	return f.job(id)
}

func (f *fakeController) Retry(_ context.Context, id drover.JobID, _ string) (drover.Job, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.jobs {
		if f.jobs[i].ID == id {
			f.jobs[i].State = drover.JobQueued
		}
	}
	return f.job(id)
}

func (f *fakeController) SetPriority(_ context.Context, id drover.JobID, priority int) (drover.Job, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	j, err := f.job(id)
	j.Priority = priority
	return j, err
}

func (f *fakeController) SetPaused(ctx context.Context, _ bool, _ string) (drover.Status, error) {
	return f.Status(ctx)
}

func (f *fakeController) Submit(_ context.Context, s drover.Submission) (r drover.Receipt, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.submitted = append(f.submitted, s)
	if err := f.call("Submit"); err != nil {
		return r, err
	}
	r.Batch = s.Batch.Name
	for i, j := range s.Batch.Jobs {
		id := drover.JobID{Number: int64(17 + i), Index: -1}
		r.Jobs = append(r.Jobs, drover.SubmittedJob{ID: id, Name: j.Name, Elements: j.Array.Size()})
	}
	return r, nil
}

func (f *fakeController) MissingInputs(_ context.Context, hashes []string) (missing []string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.call("MissingInputs"); err != nil {
		return nil, err
	}
	for _, h := range hashes {
		if _, ok := f.inputs[h]; !ok {
			missing = append(missing, h)
		}
	}
	return missing, nil
}

func (f *fakeController) PutInput(_ context.Context, hash string, contents io.Reader) error {
	text, err := io.ReadAll(contents)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inputs[hash] = string(text)
	return f.call("PutInput")
}

func (f *fakeController) Logs(_ context.Context, r drover.LogRequest) (io.ReadCloser, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.call("Logs"); err != nil {
		return nil, err
	}
	if f.onLogs != nil {
		f.onLogs(f.asked["Logs"])
	}
	if len(f.logs[r.Stream]) == 0 {
		return io.NopCloser(strings.NewReader("")), nil
	}
	text := f.logs[r.Stream][0]
	if len(f.logs[r.Stream]) > 1 {
		f.logs[r.Stream] = f.logs[r.Stream][1:]
	}
	return io.NopCloser(strings.NewReader(text[min(int(r.Offset), len(text)):])), nil
}

func (f *fakeController) Outputs(_ context.Context, id drover.JobID) (files []drover.File, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for path, text := range f.outputs[id] {
		sum := sha256.Sum256([]byte(text))
		files = append(files, drover.File{Path: path, Mode: 0o640, Size: int64(len(text)), Hash: hex.EncodeToString(sum[:])})
	}
	slices.SortFunc(files, func(a, b drover.File) int { return strings.Compare(a.Path, b.Path) })
	return files, nil
}

func (f *fakeController) OpenOutput(_ context.Context, id drover.JobID, path string, from int64) (io.ReadCloser, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	text := f.outputs[id][path]
	if f.lies != "" {
		text = f.lies
	}
	return io.NopCloser(strings.NewReader(text[from:])), nil
}

func (f *fakeController) Instances(context.Context, drover.InstanceFilter) (drover.Page[drover.Instance], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return drover.Page[drover.Instance]{Items: f.instances}, f.call("Instances")
}

func (f *fakeController) Instance(_ context.Context, name string) (drover.Instance, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, in := range f.instances {
		if name == in.Name || name == strconv.FormatInt(in.ID, 10) {
			return in, nil
		}
	}
	return drover.Instance{}, drover.Errorf(drover.KindNotFound, "there is no instance %s", name)
}

func (f *fakeController) Instruct(ctx context.Context, name string, verb drover.Verb, reason string) (drover.Instance, error) {
	in, err := f.Instance(ctx, name)
	if err != nil {
		return in, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told = append(f.told, string(verb)+" "+in.Name+" "+reason)
	return in, nil
}

func (f *fakeController) Pools(context.Context) ([]drover.Pool, error) { return f.pools, nil }

func (f *fakeController) ResizePool(_ context.Context, name string, count int, reason string) (drover.Pool, error) {
	at := slices.IndexFunc(f.pools, func(p drover.Pool) bool { return p.Name == name })
	if at < 0 {
		return drover.Pool{}, drover.Errorf(drover.KindNotFound, "there is no pool %q", name)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told = append(f.told, fmt.Sprintf("resize %s %d %s", name, count, reason))
	f.pools[at].Wanted = count
	return f.pools[at], nil
}

func (f *fakeController) Offers(context.Context, drover.OfferFilter) ([]drover.Offer, error) {
	return f.offers, nil
}

func (f *fakeController) Explain(context.Context, string) ([]drover.Explanation, error) {
	return f.explained, nil
}

func (f *fakeController) Events(context.Context, drover.EventFilter) iter.Seq2[drover.Event, error] {
	return each(f.events)
}

func (f *fakeController) Dump(_ context.Context, w io.Writer) error {
	_, err := io.WriteString(w, `{"jobs":[]}`)
	return err
}

func (f *fakeController) CreateToken(_ context.Context, r drover.TokenRequest) (drover.NewToken, error) {
	expires := time.Now().Add(r.TTL)
	return drover.NewToken{Token: drover.Token{ID: "t1", User: r.User, Role: r.Role, Expires: &expires}, Secret: "the-secret"}, nil
}

func (f *fakeController) Tokens(context.Context) ([]drover.Token, error) { return f.tokens, nil }

func (f *fakeController) RevokeToken(_ context.Context, id string) error {
	f.tokens = slices.DeleteFunc(f.tokens, func(t drover.Token) bool { return t.ID == id })
	return nil
}

// serve serves the fake over HTTP, so that commands call it like a remote controller.
func (f *fakeController) serve(t *testing.T) *httptest.Server {
	t.Helper()
	handler := httpapi.New(httpapi.Config{
		Service: f,
		Authenticate: func(_ context.Context, token drover.Secret) (drover.Identity, error) {
			if token.Reveal() != "good" {
				return drover.Identity{}, drover.Errorf(drover.KindAuthentication, "no valid token")
			}
			return drover.Identity{User: "ada", Role: drover.RoleAdmin}, nil
		},
		Ready: func(context.Context) error { return f.notReady },
		Log:   slog.New(slog.DiscardHandler),
	})
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		handler.Close()
		server.Close()
	})
	t.Setenv("DROVER_SERVER", server.URL)
	t.Setenv("DROVER_TOKEN", "good")
	return server
}

// ran is a finished command line.
type ran struct {
	code     int
	out, err string
}

// droverCommand runs a command line.
func droverCommand(t *testing.T, args ...string) ran {
	t.Helper()
	return droverUntil(t, t.Context(), args...)
}

// droverUntil runs a command line until it ends or its context interrupts it.
func droverUntil(t *testing.T, ctx context.Context, args ...string) ran {
	t.Helper()
	folder := t.TempDir()
	var files [2]*os.File
	for i, name := range []string{"out", "err"} {
		f, err := os.Create(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files[i] = f
	}
	r := ran{code: run(ctx, underTest(), args, files[0], files[1])}
	for i, text := range []*string{&r.out, &r.err} {
		data, err := os.ReadFile(files[i].Name())
		if err != nil {
			t.Fatal(err)
		}
		*text = string(data)
	}
	return r
}

// want checks an exit code, and what the outputs contain.
func (r ran) want(t *testing.T, code int, out, err string) {
	t.Helper()
	if r.code != code || !strings.Contains(r.out, out) || !strings.Contains(r.err, err) {
		t.Errorf("exit code %d, want %d, with %q on stdout and %q on stderr:\n%s\n%s", r.code, code, out, err, r.out, r.err)
	}
}

// aJob returns a job that is not an array.
func aJob(number int64, name string, state drover.JobState) drover.Job {
	return drover.Job{
		ID: drover.JobID{Number: number, Index: -1}, Name: name, Batch: "hello", User: "ada", State: state, Priority: 1,
		Command: []string{"sh", "-c", "echo hello"}, Submitted: time.Now().Add(-time.Hour), Attempts: []drover.Attempt{},
	}
}

// anArray returns an array of this size, all in one state, followed by its elements.
func anArray(number int64, name string, size int, state drover.JobState) []drover.Job {
	whole := aJob(number, name, state)
	whole.Array, whole.Counts = &drover.Array{Last: size - 1, Set: true}, map[drover.JobState]int{state: size}
	all := []drover.Job{whole}
	for i := range size {
		e := aJob(number, name, state)
		e.ID.Index, e.ArrayIndex = i, &i
		all = append(all, e)
	}
	return all
}
