//go:build e2e

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"drover"
)

// withFaults returns the daemon's configuration with faults in its cloud.
func (p *daemonPlace) withFaults(instances, faults string) string {
	return strings.Replace(p.configuration(instances, ""), "driver: local\n", "driver: local\n    faults: "+faults+"\n", 1)
}

// newUnluckyPlace is newDaemonPlace with faults in its cloud.
func newUnluckyPlace(t *testing.T, instances, faults string) *daemonPlace {
	p := &daemonPlace{place: newPlace(t), address: freeAddress(t)}
	p.write("drover.yaml", p.withFaults(instances, faults))
	t.Cleanup(p.end)
	p.serve()
	return p
}

// nothingRuns waits until no process of the place is left. Nothing looks after the instances, so they must have ended
// themselves.
func (p *place) nothingRuns(limit time.Duration) {
	p.t.Helper()
	eventually(p.t, limit, "every process is gone", func() bool { return len(processesOf(p.state)) == 0 })
}

// running returns how many instances have processes.
func (p *daemonPlace) running() (n int) {
	pids, _ := filepath.Glob(p.instancePath(filepath.Join("*", "pid")))
	return len(pids)
}

// workAlone returns a place where an instance runs a job without a controller; the job writes into the folder.
func workAlone(t *testing.T, instances string) (p *daemonPlace, folder string) {
	t.Helper()
	p, folder = newDaemonPlace(t, instances, ""), t.TempDir()
	p.drover("submit", "--", "witness", folder, "6s")
	p.waitBegun(folder, 1)
	p.process.kill()
	return p, folder
}

// endsAlone waits until that job has ended, once, and then the instance.
func (p *daemonPlace) endsAlone(folder string) {
	p.t.Helper()
	eventually(p.t, 15*time.Second, "the job has ended", func() bool { _, ended := begun(p.t, folder); return ended == 1 })
	p.nothingRuns(15 * time.Second)
	wantOnce(p.t, folder, 1)
}

func TestAControllerThatNeverComesBack(t *testing.T) {
	const orphan = ", orphan_timeout: 2s"
	t.Run("idle instances power themselves off", func(t *testing.T) {
		t.Parallel()
		p := newDaemonPlace(t, orphan, "")
		p.drover("submit", "--wait", "--", "true")
		p.process.kill()
		if len(processesOf(p.state)) == 0 {
			t.Error("nothing was left to power itself off")
		}
		p.nothingRuns(15 * time.Second)
	})
	t.Run("instances without a first login power themselves off", func(t *testing.T) {
		t.Parallel()
		p := newUnluckyPlace(t, orphan, "{boot_delay: 1h}")
		p.drover("submit", "--", "true")
		eventually(t, 10*time.Second, "an instance boots", func() bool { return p.running() > 0 })
		p.process.kill()
		p.nothingRuns(15 * time.Second)
		p.write("drover.yaml", p.configuration(orphan, "")) // so that the job ends eventually
	})
	t.Run("an instance with a job powers off after the job", func(t *testing.T) {
		t.Parallel()
		p, folder := workAlone(t, orphan)
		p.endsAlone(folder)
	})
	t.Run("an instance with a job but no runner powers off after the job", func(t *testing.T) {
		t.Parallel()
		p, folder := workAlone(t, orphan)
		for _, pid := range processesOf(p.state) {
			if line := commandLine(pid); strings.Contains(line, "drover-runner") && strings.Contains(line, " daemon ") {
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		p.endsAlone(folder)
	})
	t.Run("gc finds a stopped young instance and leaves it alone", func(t *testing.T) {
		t.Parallel()
		p := newUnluckyPlace(t, orphan, "{power_off: stops}")
		p.drover("submit", "--wait", "--", "true")
		p.process.kill()
		p.nothingRuns(15 * time.Second)
		if n := len(p.instanceFolders()); n != 1 {
			t.Fatalf("%d instances are left stopped", n)
		}
		if err := os.Remove(p.file("drover.db")); err != nil {
			t.Fatal(err)
		}
		young := p.run("gc", "-c", "drover.yaml", "--destroy", "--without-state")
		if young.code() != 0 || !strings.Contains(young.err.String(), "left alone") {
			t.Errorf("gc did not leave the young instance alone: %s", young.err.tail())
		}
	})
}

func (p *daemonPlace) instanceFolders() []string {
	folders, _ := filepath.Glob(p.instancePath("*"))
	return folders
}

// covers D12
func TestInterruptedInstances(t *testing.T) {
	const jobs = 8
	p := newUnluckyPlace(t, "", "{reclaim: {after: 2s, notice: 2s}}")
	folder, saved := t.TempDir(), t.TempDir()
	p.write("batch.yaml", fmt.Sprintf("jobs: [{name: c, array: %d, attempts: 1, command: [checkpoint, %s, %s, 4s], resources: {memory: 128Mi, disk: 16Mi}}]\n", jobs, folder, saved))
	p.drover("submit", "batch.yaml")
	p.drover("wait", "--batch", "batch")
	wantOnce(t, folder, jobs)
	interrupted := 0
	for _, j := range p.jobs() {
		if j.State != drover.JobSucceeded {
			t.Errorf("job %v is %s: %v", j.ID, j.State, j.Reason)
		}
		for i, a := range j.Attempts {
			last := i == len(j.Attempts)-1
			if a.State == drover.AttemptInterrupted {
				interrupted++
			}
			if a.State != drover.AttemptInterrupted && !last || last && a.State != drover.AttemptSucceeded {
				t.Errorf("attempt %d of job %v is %s: %+v", a.Number, j.ID, a.State, a.Reason)
			}
		}
	}
	t.Logf("%d attempts of %d jobs were interrupted", interrupted, jobs)
	if interrupted < jobs/2 {
		t.Error("too few interruptions to prove anything")
	}
}

func TestCleaningUpWithoutRecords(t *testing.T) {
	p := newDaemonPlace(t, "", "")
	p.drover("submit", "--wait", "--", "true")
	p.process.kill()
	if err := os.Remove(p.file("drover.db")); err != nil {
		t.Fatal(err)
	}
	folder := p.instanceFolders()[0]
	// The times of creation and last contact are recorded; this makes them two hours older.
	age := func(file, pattern, to string) {
		t.Helper()
		path := filepath.Join(folder, file)
		text, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, regexp.MustCompile(pattern).ReplaceAll(text, []byte(to)), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	long := time.Now().Add(-2 * time.Hour).UTC().Format(time.RFC3339)
	clean := func(says string) {
		t.Helper()
		r := p.run("gc", "-c", "drover.yaml", "--destroy", "--without-state")
		if r.code() != 0 || !strings.Contains(r.err.String(), says) {
			t.Errorf("exit code %d, wanted %q: %s", r.code(), says, r.err.tail())
		}
	}
	clean("and a controller may still use it")
	age("record.json", `"created":"[^"]*"`, `"created":"`+long+`"`)
	clean("left alone: it heard from a controller")
	for _, pid := range processesOf(p.state) {
		if line := commandLine(pid); strings.Contains(line, "drover-runner") && strings.Contains(line, " daemon ") {
			syscall.Kill(pid, syscall.SIGKILL) // it would write further records
		}
	}
	age("home/.drover/heard", `.*`, long)
	clean("destroyed 1 instance")
	p.nothingRuns(5 * time.Second)
}
