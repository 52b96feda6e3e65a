//go:build chaos

package cli

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"drover"
	"drover/internal/httpapi"
)

var (
	chaosTime = flag.Duration("chaos", 3*time.Minute, "how long the trouble lasts")
	chaosSeed = flag.Uint64("seed", 0, "the seed of the troubles; 0: a random one")
)

// How long the fleet may take to come to rest after the trouble.
const (
	workTime  = 5 * time.Minute // until every job is final
	emptyTime = 2 * time.Minute // until every instance is gone
)

// TestChaos puts a fleet of real processes to work. At random it kills and stops controllers, runners, supervisors,
// jobs and instances, cuts, delays, silences and reorders connections, fills the disk, cancels jobs and instructs
// instances. Afterwards the fleet must come to rest with no job lost, no job run twice at once, and nothing left.
// covers D1 D5 D9 D12 D13 K7 K12
func TestChaos(t *testing.T) {
	seed := *chaosSeed
	if seed == 0 {
		seed = rand.Uint64N(1e9) + 1
	}
	t.Logf("make chaos SEED=%d CHAOS_TIME=%v", seed, *chaosTime)
	c := newChaos(t, seed)
	go c.warden.run()
	c.client = c.connect(t)

	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), *chaosTime)
	defer cancel()
	c.ctx = ctx
	submitted := make(chan struct{})
	go func() { defer close(submitted); c.ledger.submit(ctx, c.client) }()
	c.run()
	trouble := time.Since(began)
	<-submitted

	c.rest(t)
	work := time.Since(began) - trouble
	jobs, err := gather(allJobs(t.Context(), c.client, drover.JobFilter{Elements: true}))
	if err != nil {
		t.Fatal(err)
	}
	c.ledger.audit(t, c.client, jobs)
	c.empty(t)
	t.Logf("trouble for %v, then %v until all jobs were final and %v until nothing was left",
		trouble.Round(time.Second), work.Round(time.Second), (time.Since(began) - trouble - work).Round(time.Second))
	c.report(t, jobs)
}

func newChaos(t *testing.T, seed uint64) *chaos {
	p := newPlace(t)
	d := newDice(seed)
	folder := filepath.Join(p.state, "drover", "lab")
	instances := filepath.Join(folder, "drover.d", "here")
	t.Cleanup(func() { os.RemoveAll(folder) })
	c := &chaos{
		place: p, dice: d, met: map[string]int{},
		disk:    newDisk(t, folder, instances, filepath.Join(p.state, "instances")),
		network: newNetwork(d, filepath.Join(instances, "lab", "*", "record.json")),
		ledger:  newLedger(p, t.TempDir()),
		warden:  newWarden(p, d, newLog(t)),
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); c.network.run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	t.Cleanup(func() { c.warden.end(t, 10*time.Second) })
	p.write("drover.yaml", fmt.Sprintf(chaosConfiguration, freeAddress(t), seed))
	return c
}

// chaosConfiguration has short times, so that each is often reached, and a cloud with faults of its own. It has several
// types, since a type is blocked for a while after an instance of it was killed while booting.
const chaosConfiguration = `version: 1
fleet: lab
listen: %s
clouds:
  here:
    driver: local
    max_instances: 5
    list_interval: 1s
    zones: [a, b]
    types:
      - {name: small, vcpus: 2, memory: 2Gi, disk: 8Gi, price: 0.36}
      - {name: large, vcpus: 3, memory: 2Gi, disk: 8Gi, price: 0.54}
    faults:
      seed: %d
      announce: 127.0.0.2
      boot_delay: 50ms
      boot_failures: 0.05
      latency: {create: 20ms, list: 10ms, destroy: 800ms}
      error_rate: {create: 0.05, list: 0.05, destroy: 0.05}
instances: {boot_timeout: 15s, probe_interval: 500ms, probe_timeout: 3s, idle_timeout: 3s, term_timeout: 1s, shutdown_timeout: 1s}
`

// newLog returns the log of the controllers and of the faults. It is kept if the test fails.
func newLog(t *testing.T) *os.File {
	t.Helper()
	f, err := os.CreateTemp("", "drover-chaos-*.log")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		f.Close()
		if t.Failed() {
			t.Logf("the controllers' log: %s", f.Name())
		} else {
			os.Remove(f.Name())
		}
	})
	return f
}

// connect waits for the first controller, and returns a client of whichever one is running.
func (c *chaos) connect(t *testing.T) drover.Service {
	t.Helper()
	folder := filepath.Join(c.place.state, "drover", "lab", "drover.d")
	var address, token []byte
	eventually(t, 30*time.Second, "the first controller answers", func() bool {
		address, _ = os.ReadFile(filepath.Join(folder, "address"))
		token, _ = os.ReadFile(filepath.Join(folder, "token"))
		return len(address) > 0 && len(token) > 0
	})
	client, err := httpapi.NewClient("http://"+strings.TrimSpace(string(address)), drover.NewSecret(strings.TrimSpace(string(token))), &http.Client{Transport: &http.Transport{}})
	if err != nil {
		t.Fatal(err)
	}
	client.Repeat = (&app{answered: new(atomic.Bool), toldAway: new(atomic.Bool)}).patiently
	return client
}

// rest waits, without more trouble, until every job is final. It also does what people must do: it releases held
// instances.
func (c *chaos) rest(t *testing.T) {
	t.Helper()
	eventually(t, 30*time.Second, "the controller answers", func() bool {
		_, err := c.client.Status(t.Context())
		return err == nil
	})
	c.ledger.raise(t, c.client)
	var page drover.Page[drover.Instance]
	eventually(t, 30*time.Second, "the controller lists its instances", func() (ok bool) {
		var err error
		page, err = c.client.Instances(t.Context(), drover.InstanceFilter{})
		return err == nil
	})
	for _, in := range page.Items {
		if in.Idle == drover.IdleHold {
			if _, err := c.client.Instruct(t.Context(), in.Name, drover.VerbRelease, "chaos is over"); err != nil {
				t.Logf("releasing %s: %v", in.Name, err) // the instance may be gone
			}
		}
	}
	end := time.Now().Add(workTime * busy)
	for c.ledger.waiting(t.Context(), c.client) > 0 {
		if time.Now().After(end) {
			why, _ := c.client.Explain(t.Context(), "")
			t.Fatalf("after %v, some jobs are not final: %+v", workTime*busy, why)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// empty waits until the fleet is gone, ends the controller, and checks that only the records are left, and that they
// can be replayed.
func (c *chaos) empty(t *testing.T) {
	t.Helper()
	eventually(t, emptyTime, "every instance is gone", func() bool {
		page, err := c.client.Instances(t.Context(), drover.InstanceFilter{})
		return err == nil && len(page.Items) == 0
	})
	c.warden.end(t, 15*time.Second)
	for _, why := range c.warden.gaveUp {
		t.Errorf("a controller ended by itself: %s", why)
	}
	if left, _ := filepath.Glob(filepath.Join(c.place.state, "instances", "lab", "*")); len(left) > 0 {
		t.Errorf("the cloud still has %q", left)
	}
	gc := c.place.run("gc", "-c", "drover.yaml", "-o", "json")
	if gc.code() != 0 || strings.TrimSpace(gc.out.String()) != "[]" {
		t.Errorf("gc exited with %d and found %s", gc.code(), gc.out.String())
	}
	if replay := c.place.run("replay", "-c", "drover.yaml"); replay.code() != 0 {
		t.Errorf("replay exited with %d", replay.code())
	}
	var left []int
	for end := time.Now().Add(5 * time.Second * busy); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if left = processesOf(c.place.state); len(left) == 0 {
			return
		}
	}
	for _, pid := range left {
		t.Errorf("process %d is left: %s %s", pid, roleOf(pid), commandLine(pid))
	}
}

// report prints what happened.
func (c *chaos) report(t *testing.T, jobs []drover.Job) {
	counts, attempts := map[drover.JobState]int{}, 0
	for _, j := range jobs {
		counts[j.State]++
		attempts += len(j.Attempts)
	}
	var met []string
	total := 0
	for _, name := range slices.Sorted(maps.Keys(c.met)) {
		met = append(met, fmt.Sprintf("%d × %s", c.met[name], name))
		total += c.met[name]
	}
	t.Logf("%d jobs in %d batches: %v in %d attempts, with %d controllers", len(jobs), c.ledger.batches, counts, attempts, c.warden.starts)
	t.Logf("%d troubles: %s", total, strings.Join(met, ", "))
	t.Logf("connections: %v", c.network.fates)
}
