//go:build e2e

package main

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drover"
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
		time.Sleep(lived) // when it dies is to be by chance
		p.restart()
		t.Logf("killed after %v", lived)
	}
	p.drover("wait", "--batch", "batch")
	wantOnce(t, folder, jobs)
	for job, w := range testimony(t, folder) {
		if len(w.begins) != 1 {
			t.Errorf("job %s was begun %d times", job, len(w.begins))
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

// wantBill wants the bill to be that of the instances which were seen, for as long as they were seen.
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
		o.t.Errorf("$%f of $%f are in jobs", jobCost, cost)
	}
}

func TestVerbsUnderLoadAndAcrossARestart(t *testing.T) {
	p := newDaemonPlace(t, ", idle_timeout: 2s", "")
	folder := t.TempDir()
	p.write("batch.yaml", "jobs: [{name: w, array: 120, command: [witness, "+folder+", 300ms], resources: {memory: 16Mi, disk: 16Mi}}]\n")
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
	wantOnce(t, folder, 120)

	p.waitFor(held, "is idle", func(in drover.Instance) bool { return in.State == drover.InstanceIdle })
	eventually(t, 30*time.Second, "only what is held is left", func() bool { return len(p.instances()) == 1 })
	time.Sleep(3 * time.Second) // longer than idle_timeout
	p.restart()
	time.Sleep(3 * time.Second)
	in := p.instance(held)
	if in.Idle != drover.IdleHold || in.State != drover.InstanceIdle {
		t.Errorf("what was held is %s, %s", in.State, in.Idle)
	}
	if on := attemptsOn(p.jobs(), held); on == 0 || in.Reason == nil || in.Reason.Text == "" {
		t.Errorf("%d attempts were on it, and it is held because %+v", on, in.Reason)
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

func TestALostDatabase(t *testing.T) {
	p := newDaemonPlace(t, ", idle_timeout: 2s", "")
	folder := t.TempDir()
	p.write("batch.yaml", "jobs: [{name: w, array: 8, command: [witness, "+folder+", 1m], resources: {memory: 16Mi, disk: 16Mi}}]\n")
	p.drover("submit", "batch.yaml")
	p.waitBegun(folder, 8)
	before := p.instances()
	p.drover("hold", before[0].Name)
	eventually(t, 10*time.Second, "the hold is on the instance", func() bool {
		text, err := os.ReadFile(p.instancePath(filepath.Join(before[0].Name, "record.json")))
		return err == nil && strings.Contains(string(text), "hold")
	})
	p.process.kill()
	for _, name := range []string{"drover.db", "drover.db-wal", "drover.db-shm"} {
		os.Remove(p.file(name))
	}
	p.serve()
	eventually(t, 20*time.Second, "every instance is adopted", func() bool { return len(p.instances("--all")) == len(before) })
	eventually(t, 30*time.Second, "all but what is held are gone", func() bool {
		left := p.instances()
		return len(left) == 1 && left[0].Name == before[0].Name && left[0].Idle == drover.IdleHold
	})
	eventually(t, 10*time.Second, "no attempt runs on", func() bool { return witnessing() == 0 })
}

// witnessing is how many witnesses run on this host.
func witnessing() (n int) {
	found, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range found {
		if text, err := os.ReadFile(f); err == nil && strings.HasPrefix(string(text), "witness\x00") {
			n++
		}
	}
	return n
}
