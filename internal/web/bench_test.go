package web_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime/debug"
	"slices"
	"syscall"
	"testing"
	"time"

	"drover"
	"drover/internal/control"
	"drover/internal/engine"
	"drover/internal/httpapi"
	"drover/internal/store"
	"drover/internal/web"
)

var large = flag.Bool("large", false, "measure pages with a million jobs and 10,000 instances")

// TestLargeFleet measures every page with a million stored jobs, a hundred thousand of them elements of an array, and
// 10,000 instances.
func TestLargeFleet(t *testing.T) {
	if !*large {
		t.Skip("runs only with -large")
	}
	b := largeFleet(t, 1_000_000, 10_000)
	pages := []string{
		"/", "/jobs", "/jobs?state=running", "/jobs?state=failed", "/jobs?q=nothing-like-it", "/jobs?q=tile-7", "/jobs?q=project%3D3", "/jobs?user=ada", "/jobs?before=500000", "/jobs/17",
		fmt.Sprint("/jobs/", b.array), fmt.Sprint("/jobs/", b.array, "?state=running"), fmt.Sprint("/jobs/", b.array, ".7"), "/instances", "/instances?span=7d&before=5000", "/instances/i-77",
		"/offers", "/costs", "/costs?by=label&label=project&since=30d", "/events",
	}
	for _, path := range pages {
		b.get(t, path)
	}
	time.Sleep(time.Minute) // meanwhile the records are read for the first time, costs are added up, and the controller tries to reach its instances
	for _, path := range pages {
		var took []time.Duration
		before := cpu()
		for range 20 {
			began := time.Now()
			b.get(t, path)
			took = append(took, time.Since(began))
		}
		work := (cpu() - before) / 20
		slices.Sort(took)
		t.Logf("%-45s %6.1f ms of CPU time; takes %6.1f ms at best, %6.1f ms in the median", path, ms(work), ms(took[0]), ms(took[10]))
		if took[0] > 100*time.Millisecond { // the median depends on what else runs on this host
			t.Errorf("%s takes %v", path, took[0])
		}
	}
}

// TestOpenPageCostsLittle measures the CPU time of an open page in a controller that has little else to do.
func TestOpenPageCostsLittle(t *testing.T) {
	if !*large {
		t.Skip("runs only with -large")
	}
	b := largeFleet(t, 20_000, 10)
	for _, path := range []string{"/", "/jobs", "/instances"} {
		b.get(t, path)
	}
	time.Sleep(5 * time.Second)
	for _, path := range []string{"/", "/jobs", "/instances"} {
		alone := measured(10*time.Second, func(d time.Duration) { time.Sleep(d) })
		with := measured(10*time.Second, func(d time.Duration) { b.watch(t, path, d) })
		t.Logf("%-15s open for 10 s: %.2f %% of a core, without it %.2f %%", path, with, alone)
		if with-alone > 1 {
			t.Errorf("%s costs %.2f %% of a core while it is open", path, with-alone)
		}
	}
}

// measured returns how much of a core this process uses during do, in percent.
func measured(d time.Duration, do func(time.Duration)) float64 {
	before, began := cpu(), time.Now()
	do(d)
	return 100 * float64(cpu()-before) / float64(time.Since(began))
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// cpu returns the CPU time of this process.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// benched is a logged-in client of a controller's dashboard.
type benched struct {
	*http.Client
	url   string
	array int64
}

func (b *benched) get(t *testing.T, path string) {
	t.Helper()
	answer, err := b.Get(b.url + path)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != 200 {
		t.Fatalf("%s: %s, %v\n%s", path, answer.Status, err, text)
	}
}

// watch keeps a page open for a while.
func (b *benched) watch(t *testing.T, path string, while time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), while)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", b.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	answer, err := b.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if n, _ := io.Copy(io.Discard, answer.Body); n == 0 {
		t.Error("nothing was sent")
	}
}

// largeFleet returns a controller with records of this many jobs, each with an attempt, and of this many instances.
// None of the instances can be reached: their cloud is silent.
func largeFleet(t *testing.T, jobs, instances int) *benched {
	debug.SetGCPercent(100)
	path := filepath.Join(t.TempDir(), "drover.db")
	array := fillStore(t, path, jobs, instances)
	s, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	log := slog.New(slog.DiscardHandler)
	c, err := control.New(t.Context(), control.Config{Fleet: "large", Store: s, Log: log, Trust: true, Spool: t.TempDir(), Shared: true,
		Setup: control.Setup{Clouds: []control.Cloud{{Name: "silent", Driver: silent{}}}, Settings: engine.Settings{Clouds: []engine.CloudSettings{{Name: "silent", MaxInstances: 20_000, ListInterval: time.Hour}}, Lifecycle: engine.Lifecycle{ProbeInterval: time.Minute, ProbeTimeout: time.Hour, ShutdownTimeout: time.Hour, BootTimeout: time.Hour, PartitionTimeout: time.Hour}}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	authenticate := func(context.Context, drover.Secret) (drover.Identity, error) {
		return drover.Identity{User: "ada", Role: drover.RoleAdmin}, nil
	}
	cfg := httpapi.Config{Service: c, Authenticate: authenticate, Log: log, Limits: httpapi.Limits{Requests: httpapi.Rate{PerSecond: 1e6, Burst: 1e6}}}
	var handler *httpapi.Handler
	pages := web.New(web.Config{Fleet: "large", Authenticate: authenticate, Log: log, Service: func(token drover.Secret) drover.Service { return httpapi.Within(handler, token) }})
	cfg.Pages, cfg.Login = pages, pages.Login
	handler = httpapi.New(cfg)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	jar := &jar{}
	b := &benched{&http.Client{Jar: jar}, server.URL, array}
	link, err := pages.Login(drover.NewSecret("any"))
	if err != nil {
		t.Fatal(err)
	}
	b.get(t, link)
	return b
}
