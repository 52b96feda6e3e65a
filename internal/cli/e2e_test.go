//go:build e2e

package cli

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"drover"
	"drover/internal/blob"
)

// TestSlowScripts runs the sessions that need the runners of every architecture, and all other sessions with working
// instances.
func TestSlowScripts(t *testing.T) { runScripts(t, "e2e") }

func TestARunSurvivesFiveKills(t *testing.T) {
	const jobs = 400
	p := newPlace(t)
	folder := p.witnesses(jobs, "50ms-200ms", "")
	observer := p.observe()
	r := p.start("run", "-v", "-o", "json", "-c", "drover.yaml", "batch.yaml")
	id := p.runID()
	for range 5 {
		lived := time.Duration(rand.Int64N(int64(time.Second)))
		time.Sleep(lived) // it must die at a random time
		r.kill()
		t.Logf("killed after %v", lived)
		r = p.start("run", "-v", "-o", "json", "--resume", id)
	}
	if code := r.wait(2 * time.Minute); code != 0 {
		t.Errorf("exit code %d", code)
	}
	wantOnce(t, folder, jobs)
	for job, w := range testimony(t, folder) {
		if len(w.begins) != 1 {
			t.Errorf("job %s started %d times", job, len(w.begins))
		}
	}
	o := r.outcome()
	if o.Jobs != jobs || o.Succeeded != jobs || o.Attempts != jobs {
		t.Errorf("%+v", o)
	}
	observer.wantCost(o)
}

// observer watches from outside which instances exist, and for how long.
type observer struct {
	t        *testing.T
	stop     chan struct{}
	stopped  chan struct{}
	lifetime map[string]time.Duration // by folder; read only after it stops
}

func (p *place) observe() *observer {
	return observe(p.t, filepath.Join(p.state, "drover", "run-*", "*", "run-*", "*", "record.json"))
}

// observe watches the records of instances that the pattern matches.
func observe(t *testing.T, pattern string) *observer {
	o := &observer{t, make(chan struct{}), make(chan struct{}), map[string]time.Duration{}}
	go o.watch(pattern)
	return o
}

// end stops watching, and returns the total time for which instances were seen.
func (o *observer) end() (seen time.Duration) {
	close(o.stop)
	<-o.stopped
	for _, d := range o.lifetime {
		seen += d
	}
	return seen
}

func (o *observer) watch(pattern string) {
	defer close(o.stopped)
	born := map[string]time.Time{}
	for {
		found, _ := filepath.Glob(pattern)
		for _, f := range found {
			if born[f].IsZero() {
				born[f] = time.Now()
			}
			o.lifetime[f] = time.Since(born[f])
		}
		select {
		case <-o.stop:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// wantCost checks that the bill covers the seen instances for as long as they were seen.
func (o *observer) wantCost(out outcome) {
	o.t.Helper()
	seen := o.end()
	o.t.Logf("%d instances seen for %v; billed %d for %.2fs, $%.6f, of which $%.6f in jobs", len(o.lifetime), seen, out.Instances, out.InstanceSeconds, out.Cost, out.JobCost)
	if out.Instances != len(o.lifetime) || math.Abs(out.InstanceSeconds-seen.Seconds()) > float64(out.Instances) {
		o.t.Errorf("%d instances for %.2fs are billed, but %d were seen for %v", out.Instances, out.InstanceSeconds, len(o.lifetime), seen)
	}
	if want := out.InstanceSeconds * pricePerSecond; math.Abs(out.Cost-want) > 1e-6*float64(out.Instances) {
		o.t.Errorf("%.3f instance-seconds cost $%.6f, not $%.6f", out.InstanceSeconds, want, out.Cost)
	}
	if out.JobCost <= 0 || out.JobCost > out.Cost {
		o.t.Errorf("jobs cost $%f of $%f", out.JobCost, out.Cost)
	}
}

func TestAStoppedController(t *testing.T) {
	p := newPlace(t)
	folder := p.witnesses(12, "500ms-3s", "")
	long := p.witnessLong(folder)
	r := p.start("run", "-v", "-o", "json", "-c", "drover.yaml", long)
	p.waitBegun(folder, 8)
	before := p.instances()
	r.signal(syscall.SIGSTOP)
	// Longer than probe_timeout plus the delay until a controller notices that it was paused.
	time.Sleep(8 * time.Second)
	if after := p.instances(); after != before {
		t.Errorf("while it was stopped, the instances changed from %s to %s", before, after)
	}
	r.signal(syscall.SIGCONT)
	if code := r.wait(time.Minute); code != 0 {
		t.Errorf("exit code %d", code)
	}
	wantOnce(t, folder, 14)
	if o := r.outcome(); o.Succeeded != 14 || o.Attempts != 14 || o.Instances != len(strings.Fields(before)) {
		t.Errorf("on %s: %+v", before, o)
	}
	if strings.Contains(r.err.String(), "is broken") {
		t.Error("the controller gave up an instance")
	}
}

// witnessLong writes the batch of witnesses plus two that outlive a stop of the controller.
func (p *place) witnessLong(folder string) string {
	text, err := os.ReadFile(filepath.Join(p.dir, "batch.yaml"))
	if err != nil {
		p.t.Fatal(err)
	}
	long := fmt.Sprintf(`, {name: long, array: 2, priority: 10, command: [witness, %s, 11s], resources: {memory: 128Mi, disk: 16Mi}}]`, folder)
	p.write("long.yaml", strings.TrimSuffix(strings.TrimSpace(string(text)), "]")+long)
	return "long.yaml"
}

// instances returns the names of the existing instances.
func (p *place) instances() string {
	found, _ := filepath.Glob(p.instanceFolder("*"))
	for i, f := range found {
		found[i] = filepath.Base(f)
	}
	return strings.Join(found, " ")
}

func TestAGibibyteOfOutput(t *testing.T) {
	const shorts = 120
	measure := func(flood string) (peak drover.Bytes, slowest time.Duration, dir string) {
		p := newPlace(t)
		p.write("drover.yaml", impatient)
		p.write("batch.yaml", fmt.Sprintf(`jobs:
  - {name: flood, priority: 10, command: [sh, -c, %q]}
  - {name: short, array: %d, command: ["sh", "-c", "sleep 0.05"], resources: {vcpus: 2}}
`, flood, shorts))
		r := p.start("run", "-v", "-c", "drover.yaml", "--max-instances", "2", "batch.yaml")
		memory := r.watchMemory()
		slowest = r.slowest("job short[")
		if code := r.wait(2 * time.Minute); code != 0 {
			t.Errorf("exit code %d", code)
		}
		return <-memory, slowest, p.dir
	}
	quietPeak, quietSlowest, _ := measure("true")
	peak, slowest, dir := measure("echo the beginning; head -c 1073741824 /dev/zero; echo the end")
	t.Logf("peak memory %v instead of %v; at most %v from one short job's end to the next instead of %v", peak, quietPeak, slowest, quietSlowest)
	if peak > quietPeak+200*drover.MiB {
		t.Errorf("the controller's memory grew to %v, from %v without output", peak, quietPeak)
	}
	if slowest > quietSlowest*busy+2*time.Second {
		t.Errorf("%v passed from one short job's end to the next, but only %v without output", slowest, quietSlowest)
	}
	wantCutLog(t, filepath.Join(dir, "drover-out", "batch", "logs", "flood.out"))
}

// slowest follows a run's output until it ends, and returns the longest time between two lines with a prefix.
func (r *process) slowest(prefix string) (longest time.Duration) {
	seen, last := 0, time.Time{}
	for {
		if n := strings.Count(r.err.String(), prefix); n > seen {
			if seen > 0 {
				longest = max(longest, time.Since(last))
			}
			seen, last = n, time.Now()
		}
		select {
		case <-r.ended:
			return longest
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// watchMemory returns the process's peak memory once it has ended. The kernel's figure at a process's end is unusable:
// on Linux it starts with the memory of the parent process, here this test.
func (r *process) watchMemory() <-chan drover.Bytes {
	peak := make(chan drover.Bytes, 1)
	path := fmt.Sprintf("/proc/%d/status", r.cmd.Process.Pid)
	go func() {
		var most drover.Bytes
		for {
			text, _ := os.ReadFile(path)
			if _, after, ok := strings.Cut(string(text), "VmHWM:"); ok {
				n, _ := strconv.Atoi(strings.Fields(after)[0])
				most = drover.Bytes(n) * drover.KiB
			}
			select {
			case <-r.ended:
				peak <- most
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return peak
}

// wantCutLog checks that a log has both its ends, and a note about what is missing between them.
func wantCutLog(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if limit := blob.DefaultLimits().Log; int64(len(text)) > limit+1000 {
		t.Errorf("the log has %d bytes", len(text))
	}
	if !strings.HasPrefix(string(text), "the beginning\n") || !strings.HasSuffix(string(text), "the end\n") || !strings.Contains(string(text), "bytes left out]") {
		t.Errorf("the log begins with %q and ends with %q", text[:min(20, len(text))], text[max(0, len(text)-20):])
	}
}

func TestAGibibyteThroughAPipe(t *testing.T) {
	p := newPlace(t)
	count := exec.Command("wc", "-c")
	pipe, err := count.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var counted strings.Builder
	count.Stdout = &counted
	if err := count.Start(); err != nil {
		t.Fatal(err)
	}
	r := p.startTo(pipe, "run", "--", "head", "-c", "1073741824", "/dev/zero")
	memory := r.watchMemory()
	if code := r.wait(3 * time.Minute); code != 0 {
		t.Errorf("exit code %d", code)
	}
	pipe.Close()
	if err := count.Wait(); err != nil || strings.TrimSpace(counted.String()) != "1073741824" {
		t.Errorf("%s bytes came through (%v)", counted.String(), err)
	}
	if peak := <-memory; peak == 0 || peak > 300*drover.MiB {
		t.Errorf("the controller's memory grew to %v", peak)
	}
}
