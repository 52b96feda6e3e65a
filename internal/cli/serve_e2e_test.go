//go:build e2e

package cli

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"drover"
	"drover/internal/httpapi"
)

func TestADaemonKilledFiveTimes(t *testing.T) {
	const jobs = 400
	p := newDaemonPlace(t, ", idle_timeout: 2s", "")
	folder := p.witnesses(jobs, "50ms-200ms", "")
	p.write("drover.yaml", p.configuration(", idle_timeout: 2s", ""))
	observer := observe(t, p.instancePath(filepath.Join("*", "record.json")))
	p.drover("submit", "batch.yaml")
	for range 5 {
		lived := time.Duration(rand.Int64N(int64(2 * time.Second)))
		time.Sleep(lived) // it must die at a random time
		p.restart()
		t.Logf("killed after %v", lived)
	}
	p.drover("wait", "--batch", "batch")
	wantOnce(t, folder, jobs)
	for job, w := range testimony(t, folder) {
		if len(w.begins) != 1 {
			t.Errorf("job %s began %d times", job, len(w.begins))
		}
	}
	var jobCost float64
	for _, j := range p.jobs() {
		if j.State != drover.JobSucceeded || len(j.Attempts) != 1 {
			t.Errorf("job %v is %s after %d attempts", j.ID, j.State, len(j.Attempts))
		}
		jobCost += j.Cost
	}
	eventually(t, 30*time.Second, "every instance is gone", func() bool { return len(p.instances()) == 0 })
	observer.wantBill(p.instances("--all"), jobCost)
}

// wantBill checks that the bill covers the instances that the observer saw, for as long as it saw them.
func (o *observer) wantBill(instances []drover.Instance, jobCost float64) {
	o.t.Helper()
	seen := o.end()
	var cost, seconds float64
	for _, in := range instances {
		cost += in.Cost
		seconds += in.Gone.Sub(*in.Created).Seconds()
	}
	o.t.Logf("%d instances seen for %v; billed %d for %.2fs, $%.6f, of which $%.6f in jobs", len(o.lifetime), seen, len(instances), seconds, cost, jobCost)
	if len(instances) != len(o.lifetime) || math.Abs(seconds-seen.Seconds()) > 1.5*float64(len(instances)) {
		o.t.Errorf("%d instances for %.2fs are billed, but %d were seen for %v", len(instances), seconds, len(o.lifetime), seen)
	}
	if want := seconds * pricePerSecond; cost > want+1e-6 || cost < want-2*pricePerSecond*float64(len(instances)) {
		o.t.Errorf("%.3f instance-seconds cost $%.6f, not $%.6f", seconds, want, cost)
	}
	if jobCost <= 0 || jobCost > cost {
		o.t.Errorf("jobs cost $%f of $%f", jobCost, cost)
	}
}

func TestVerbsUnderLoadAndAcrossARestart(t *testing.T) {
	p := newDaemonPlace(t, ", idle_timeout: 2s", "")
	folder := t.TempDir()
	p.write("batch.yaml", "jobs: [{name: w, array: 120, command: [witness, "+folder+", 300ms], resources: {memory: 128Mi, disk: 16Mi}}]\n")
	p.drover("submit", "batch.yaml")
	p.waitBegun(folder, 8)
	all := p.instances()
	if len(all) != 4 {
		t.Fatalf("%d instances", len(all))
	}
	held, drained, killed := all[0].Name, all[1].Name, all[2].Name
	p.drover("hold", held, "--reason", "a look at its disk")
	p.drover("drain", drained, "--reason", "too slow")
	p.restart()
	p.drover("kill", killed, "--reason", "broken fan")
	p.waitFor(drained, "is gone", func(in drover.Instance) bool { return in.State == drover.InstanceGone })
	p.waitFor(killed, "is gone", func(in drover.Instance) bool { return in.State == drover.InstanceGone })
	p.drover("wait", "--batch", "batch")
	for job, w := range testimony(t, folder) {
		// A command that had just ended when its instance was killed runs, and ends, a second time.
		if len(w.ends) == 0 || w.overlaps > 0 {
			t.Errorf("job %s began %q, ended %q, and overlapped %d times", job, w.begins, w.ends, w.overlaps)
		}
	}

	p.waitFor(held, "is idle", func(in drover.Instance) bool { return in.State == drover.InstanceIdle })
	eventually(t, 30*time.Second, "only the held instance is left", func() bool { return len(p.instances()) == 1 })
	time.Sleep(3 * time.Second) // longer than idle_timeout
	p.restart()
	time.Sleep(3 * time.Second)
	in := p.instance(held)
	if in.Idle != drover.IdleHold || in.State != drover.InstanceIdle {
		t.Errorf("the held instance is %s, %s", in.State, in.Idle)
	}
	if on := attemptsOn(p.jobs(), held); on == 0 || in.Reason == nil || in.Reason.Text == "" {
		t.Errorf("the held instance ran %d attempts, and is held for the reason %+v", on, in.Reason)
	}
	p.drover("release", held)
	p.waitFor(held, "is gone", func(in drover.Instance) bool { return in.State == drover.InstanceGone })
}

func attemptsOn(jobs []drover.Job, instance string) (n int) {
	for _, j := range jobs {
		for _, a := range j.Attempts {
			if a.Instance == instance {
				n++
			}
		}
	}
	return n
}

// covers P8
func TestALostDatabase(t *testing.T) {
	p := newDaemonPlace(t, ", idle_timeout: 2s", "")
	folder := t.TempDir()
	p.write("batch.yaml", "jobs: [{name: w, array: 8, command: [witness, "+folder+", 1m], resources: {memory: 128Mi, disk: 16Mi}}]\n")
	for range 3 {
		p.restart() // so that the instances know more controllers than the new records do
	}
	p.drover("submit", "batch.yaml")
	p.waitBegun(folder, 8)
	before := p.instances()
	p.drover("hold", before[0].Name)
	eventually(t, 10*time.Second, "the instance has the tag hold", func() bool {
		text, err := os.ReadFile(p.instancePath(filepath.Join(before[0].Name, "tags.json")))
		return err == nil && strings.Contains(string(text), "hold")
	})
	p.process.kill()
	p.wantsFleetKey(before[0].Name)
	for _, name := range []string{"drover.db", "drover.db-wal", "drover.db-shm"} {
		os.Remove(p.file(name))
	}
	p.wantsFleetKey("cloud here lists ")
	p.serve()
	eventually(t, 20*time.Second, "every instance is adopted", func() bool { return len(p.instances("--all")) == len(before) })
	eventually(t, 30*time.Second, "only the held instance is left", func() bool {
		left := p.instances()
		return len(left) == 1 && left[0].Name == before[0].Name && left[0].Idle == drover.IdleHold
	})
	eventually(t, 10*time.Second, "no attempt is still running", func() bool { return p.witnessing() == 0 })
}

// wantsFleetKey checks that no controller starts without the fleet's key while instances exist, and that the error
// includes a text about them.
func (p *daemonPlace) wantsFleetKey(says string) {
	p.t.Helper()
	key, aside := p.file("drover.d/fleet.key"), filepath.Join(p.t.TempDir(), "fleet.key")
	if err := os.Rename(key, aside); err != nil {
		p.t.Fatal(err)
	}
	r := p.run("serve", "-c", "drover.yaml")
	if said := r.err.String(); r.code() != 2 || !strings.Contains(said, "fleet.key is missing") || !strings.Contains(said, says) {
		p.t.Errorf("exit code %d: %s", r.code(), said)
	}
	if err := os.Rename(aside, key); err != nil {
		p.t.Fatal(err)
	}
}

// TestALostKey loses the fleet's key while instances exist. Once they are gone, the controller starts with another key,
// and the jobs run again.
func TestALostKey(t *testing.T) {
	p := newDaemonPlace(t, ", idle_timeout: 2s", "")
	folder := t.TempDir()
	p.write("batch.yaml", "jobs: [{name: w, array: 2, command: [witness, "+folder+", 1s], resources: {memory: 128Mi, disk: 16Mi}}]\n")
	p.drover("submit", "batch.yaml")
	p.waitBegun(folder, 2)
	p.process.kill()
	p.wantsFleetKey("destroy the instances by other means")
	for _, pid := range processesOf(p.state) {
		syscall.Kill(pid, syscall.SIGKILL)
	}
	p.nothingRuns(15 * time.Second)
	if err := os.Remove(p.file("drover.d/fleet.key")); err != nil {
		t.Fatal(err)
	}
	p.serve()
	p.drover("wait", "1")
}

// witnessing returns how many witnesses run on the place's instances.
func (p *place) witnessing() (n int) {
	for _, pid := range processesOf(p.state) {
		if strings.HasPrefix(commandLine(pid), "witness ") {
			n++
		}
	}
	return n
}

func TestAHundredFollowingClients(t *testing.T) {
	const jobs, talkers = 2000, 8
	talk := "i=0; while [ $i -lt 400 ]; do echo line $i; i=$((i+1)); sleep 0.02; done"
	batch := fmt.Sprintf(`jobs:
  - {name: talk, priority: 10, array: %d, command: ["sh", "-c", %q], resources: {vcpus: 0.1, memory: 16Mi, disk: 16Mi}}
  - {name: short, array: %d, command: ["true"], resources: {vcpus: 0.4, memory: 16Mi, disk: 16Mi}}
`, talkers, talk, jobs)
	measure := func(clients int) (took time.Duration, peak drover.Bytes) {
		p := newDaemonPlace(t, "", "")
		p.write("batch.yaml", batch)
		p.drover("queue", "pause")
		p.drover("submit", "batch.yaml")
		f := p.followers(clients, talkers)
		eventually(t, 30*time.Second, "every follower of events is connected", func() bool { return f.connected.Load() == int64(clients/2) })
		began := time.Now()
		p.drover("queue", "resume")
		p.drover("wait", "--batch", "batch")
		took = time.Since(began)
		f.want(talkers+jobs, 400)
		return took, p.peak()
	}
	aloneTook, alonePeak := measure(0)
	took, peak := measure(100)
	t.Logf("%d jobs with 100 clients: %v, at most %v of memory; without: %v, %v", jobs, took.Round(time.Millisecond), peak, aloneTook.Round(time.Millisecond), alonePeak)
	if peak > alonePeak+100*drover.MiB {
		t.Errorf("the controller's memory grew to %v, from %v without clients", peak, alonePeak)
	}
}

// peak returns the daemon's peak memory so far.
func (p *daemonPlace) peak() drover.Bytes {
	p.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.process.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "VmHWM:")
	kib, err := strconv.ParseInt(strings.Fields(after)[0], 10, 64)
	if err != nil {
		p.t.Fatal(err)
	}
	return drover.Bytes(kib) * drover.KiB
}

// followers are clients: half follow output and half follow events, and a tenth of each half never reads its response.
type followers struct {
	t      *testing.T
	cancel context.CancelFunc
	wg     sync.WaitGroup

	connected atomic.Int64 // how many followers of events have received one

	mu     sync.Mutex
	logs   []string // what each follower of output got; guarded by mu
	finals []int    // how many jobs each follower of events saw succeed; guarded by mu
	missed int      // guarded by mu
}

func (p *daemonPlace) followers(clients, talkers int) *followers {
	p.t.Helper()
	ctx, cancel := context.WithCancel(p.t.Context())
	f := &followers{t: p.t, cancel: cancel}
	p.t.Cleanup(cancel)
	token, err := os.ReadFile(filepath.Join(p.file("drover.d"), "token"))
	if err != nil {
		p.t.Fatal(err)
	}
	for i := range clients {
		c, err := httpapi.NewClient("http://"+p.address, drover.NewSecret(strings.TrimSpace(string(token))), &http.Client{Transport: &http.Transport{}})
		if err != nil {
			p.t.Fatal(err)
		}
		lazy := i/2%10 == 9
		if i%2 == 0 {
			f.wg.Go(func() { f.followLog(ctx, c, drover.JobID{Number: 1, Index: i / 2 % talkers}, lazy) })
		} else {
			f.wg.Go(func() { f.followEvents(ctx, c, lazy) })
		}
	}
	return f
}

func (f *followers) followLog(ctx context.Context, c *httpapi.Client, job drover.JobID, lazy bool) {
	r, err := c.Logs(ctx, drover.LogRequest{Job: job, Stream: drover.Stdout, Follow: true})
	if err != nil {
		f.t.Error(err)
		return
	}
	defer r.Close()
	if lazy {
		<-ctx.Done()
		return
	}
	text, err := io.ReadAll(r)
	if err != nil {
		f.t.Errorf("following %v: %v", job, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.logs = append(f.logs, string(text))
}

func (f *followers) followEvents(ctx context.Context, c *httpapi.Client, lazy bool) {
	finals, missed := 0, 0
	connected := sync.OnceFunc(func() { f.connected.Add(1) })
	for ev, err := range c.Events(ctx, drover.EventFilter{}) {
		if err != nil {
			break
		}
		connected()
		if lazy {
			<-ctx.Done()
			break
		}
		missed += ev.Missed
		if ev.Job != nil && strings.HasSuffix(ev.Text, " succeeded") {
			finals++
		}
		if finals == 2008 {
			break
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !lazy {
		f.finals = append(f.finals, finals)
	}
	f.missed += missed
}

// want checks that every client that reads its response has received everything.
func (f *followers) want(jobs, lines int) {
	f.t.Helper()
	time.AfterFunc(20*time.Second, f.cancel) // ends the clients that never read, or miss something
	done := make(chan struct{})
	go func() { f.wg.Wait(); close(done) }()
	eventually(f.t, 30*time.Second, "every client has ended", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.logs)+len(f.finals) >= 80 {
			f.cancel()
		}
		return isClosed(done)
	})
	for i, text := range f.logs {
		if got := strings.Count(text, "\n"); got != lines || !strings.HasSuffix(text, fmt.Sprintf("line %d\n", lines-1)) {
			f.t.Errorf("follower %d of output got %d lines, the last of which is %q", i, got, text[max(0, len(text)-20):])
		}
	}
	for i, n := range f.finals {
		if n != jobs {
			f.t.Errorf("follower %d of events saw %d jobs succeed", i, n)
		}
	}
	if f.missed > 0 {
		f.t.Errorf("the followers missed %d events", f.missed)
	}
}
