//go:build chaos || e2e

package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// impatient is a configuration with short times, and a price of a hundredth of a cent per second.
const impatient = `version: 1
clouds:
  here:
    driver: local
    max_instances: 4
    list_interval: 1s
    types: [{name: small, vcpus: 2, memory: 2Gi, disk: 8Gi, price: 0.36}]
instances: {probe_interval: 200ms, probe_timeout: 1s, term_timeout: 500ms, shutdown_timeout: 1s}
`

const pricePerSecond = 0.36 / 3600

// witnesses writes a batch of jobs that record what happens to them, each with the given duration, and returns the
// folder that they write to.
func (p *place) witnesses(jobs int, durations, more string) string {
	folder := p.t.TempDir()
	p.write("drover.yaml", impatient)
	p.write("batch.yaml", fmt.Sprintf("jobs: [{name: w, array: %d, command: [witness, %q, %s], resources: {memory: 128Mi, disk: 16Mi}%s}]\n",
		jobs, folder, durations, more))
	return folder
}

func TestALostJobWithoutAttemptsLeftFails(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	folder := p.witnesses(1, "1m", ", attempts: 1")
	r := p.start("run", "-o", "json", "-c", "drover.yaml", "batch.yaml")
	p.waitBegun(folder, 1)
	victim := instanceOf(t, folder, "1.0")
	p.killInstance(victim)
	if code := r.wait(20 * time.Second); code != 1 {
		t.Errorf("exit code %d", code)
	}
	rep := r.outcome()
	if len(rep.Failures) != 1 || len(rep.Failures[0].Attempts) != 1 {
		t.Fatalf("%+v", rep)
	}
	a := rep.Failures[0].Attempts[0]
	if rep.Failures[0].Reason.Code != "attempts" || a.State != "lost" || a.Instance != victim || !strings.Contains(a.Reason.Text, victim) {
		t.Errorf("%+v", rep.Failures[0])
	}
}

// covers D15
func TestALostJobShowsTheLastLinesOfTheRunnersLog(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	folder := p.witnesses(1, "1m", ", attempts: 1")
	r := p.start("run", "-c", "drover.yaml", "batch.yaml")
	p.waitBegun(folder, 1)
	victim := instanceOf(t, folder, "1.0")
	p.killInstance(victim)
	if code := r.wait(20 * time.Second); code != 1 {
		t.Errorf("exit code %d", code)
	}
	want := `(?m)^w\.0: lost once: .*\n    the last lines of the runner's log on ` + victim + `:\n        \d`
	if said := r.err.String(); !regexp.MustCompile(want).MatchString(said) || strings.Contains(said, "runner said") {
		t.Errorf("it printed %s", said)
	}
}

func TestCleaningUpAfterAKill(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	folder := p.witnesses(4, "1m", "")
	r := p.start("run", "-c", "drover.yaml", "batch.yaml")
	p.waitBegun(folder, 4)
	r.kill()

	listed := p.run("gc", "-o", "json")
	var strays []struct{ Fleet, Name string }
	if err := json.Unmarshal([]byte(listed.out.String()), &strays); err != nil || len(strays) != 2 || strays[0].Fleet != p.runID() {
		t.Errorf("gc lists %s (%v)", listed.out.String(), err)
	}
	if len(processesOf(p.state)) == 0 {
		t.Error("listing ended the instances")
	}
	if gc := p.run("gc", "--fleet", p.runID(), "--destroy"); gc.code() != 0 {
		t.Errorf("exit code %d", gc.code())
	}
}

func TestAResumedRunIsOneRun(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	folder := p.witnesses(8, "1500ms", "")
	p.write("other.yaml", impatient)
	began := time.Now()
	r := p.start("run", "-c", "drover.yaml", "--out", "results", "--max-instances", "2", "batch.yaml")
	p.waitBegun(folder, 5) // so that the first have ended
	r.kill()
	killed, id := time.Since(began), p.runID()

	for _, other := range [][]string{{"-c", "other.yaml"}, {"--out", "elsewhere"}, {"--max-instances", "3"}, {"--keep", "1h"}} {
		refused := p.run(append([]string{"run", "--resume", id}, other...)...)
		if refused.code() != 2 || !strings.Contains(refused.err.String(), "and must be resumed with the same flags") {
			t.Errorf("with %v the exit code is %d: %s", other, refused.code(), refused.err.String())
		}
	}
	r = p.run("run", "-o", "json", "--resume", id, "-c", "drover.yaml", "--out", "results", "--max-instances", "2")
	if r.code() != 0 {
		t.Fatalf("exit code %d", r.code())
	}
	wantOnce(t, folder, 8)
	if o := r.outcome(); o.Jobs != 8 || o.Succeeded != 8 || o.Attempts != 8 || o.Instances != 2 || o.InstanceSeconds < 4 || o.Seconds < killed.Seconds() {
		t.Errorf("killed after %v, it reports %+v", killed, o)
	}
}

// covers C4
func TestGCDestroysBothInstancesWithOneName(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	folder := p.witnesses(4, "1m", "")
	r := p.start("run", "-c", "drover.yaml", "batch.yaml")
	p.waitBegun(folder, 4)
	r.kill()
	p.giveOneName()

	gc := p.start("gc", "--fleet", p.runID(), "--destroy")
	if code := gc.wait(20 * time.Second); code != 0 || !strings.Contains(gc.err.String(), "destroyed 2 instances") {
		t.Errorf("exit code %d: %s", code, gc.err.String())
	}
}

// giveOneName gives all instances of the run the first one's name, as if one create call had been carried out twice.
func (p *place) giveOneName() {
	p.t.Helper()
	files, err := filepath.Glob(filepath.Join(p.instanceFolder("*"), "tags.json"))
	if err != nil || len(files) < 2 {
		p.t.Fatalf("found the tags of %v (%v)", files, err)
	}
	first, err := os.ReadFile(files[0])
	if err != nil {
		p.t.Fatal(err)
	}
	for _, file := range files[1:] {
		if err := os.WriteFile(file, first, 0o600); err != nil {
			p.t.Fatal(err)
		}
	}
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	for sig, name := range map[syscall.Signal]string{syscall.SIGINT: "SIGINT", syscall.SIGTERM: "SIGTERM", syscall.SIGHUP: "SIGHUP"} {
		t.Run("with --cancel-on-interrupt "+name+" cancels the jobs and destroys the instances", func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			folder := p.witnesses(12, "1m", "")
			r := p.start("run", "-o", "json", "-c", "drover.yaml", "--cancel-on-interrupt", "batch.yaml")
			p.waitBegun(folder, 2)
			r.signal(sig)
			if code := r.wait(15 * time.Second); code != 130 {
				t.Errorf("exit code %d", code)
			}
			rep := r.outcome()
			if rep.Cancelled != 12 || len(rep.Failures) == 0 || rep.Failures[0].Reason.Text != "cancelled: drover run received "+name {
				t.Errorf("%+v", rep)
			}
			if _, ended := begun(t, folder); ended > 0 {
				t.Errorf("%d jobs finished", ended)
			}
		})
	}
	t.Run("a job that ignores TERM is killed after term_timeout", func(t *testing.T) {
		t.Parallel()
		p := newPlace(t)
		p.write("drover.yaml", impatient)
		r := p.start("run", "-c", "drover.yaml", "--", "sh", "-c", `trap "echo asked" TERM; echo ready; while :; do sleep 0.02; done`)
		eventually(t, 10*time.Second, "the job runs", func() bool { return strings.Contains(r.out.String(), "ready") })
		asked := time.Now()
		r.signal(syscall.SIGINT)
		if code := r.wait(15 * time.Second); code != 130 {
			t.Errorf("exit code %d", code)
		}
		if took := time.Since(asked); took < 500*time.Millisecond || !strings.Contains(r.out.String(), "asked") {
			t.Errorf("ended after %v", took)
		}
		if gc := p.run("gc", "--fleet", p.runID(), "--destroy"); gc.code() != 0 {
			t.Errorf("exit code %d of gc", gc.code())
		}
	})
	t.Run("a second signal exits at once, and the printed command cleans up", func(t *testing.T) {
		t.Parallel()
		p := newPlace(t)
		p.write("drover.yaml", strings.Replace(impatient, "term_timeout: 500ms", "term_timeout: 10m", 1))
		r := p.start("run", "-c", "drover.yaml", "--", "sh", "-c", `trap "" TERM; echo ready; while :; do sleep 0.02; done`)
		eventually(t, 10*time.Second, "the job runs", func() bool { return strings.Contains(r.out.String(), "ready") })
		r.signal(syscall.SIGINT)
		eventually(t, 5*time.Second, "the first signal is reported", func() bool { return strings.Contains(r.err.String(), "send a second signal to exit immediately") })
		r.signal(syscall.SIGINT)
		if code := r.wait(2 * time.Second); code != 130 {
			t.Errorf("exit code %d", code)
		}
		line := regexp.MustCompile(`(?m)^ *drover (gc --fleet run-\w+ --destroy)$`).FindStringSubmatch(r.err.String())
		if line == nil {
			t.Fatal("no command that cleans up")
		}
		if len(processesOf(p.state)) == 0 {
			t.Error("the instance is gone already")
		}
		if gc := p.run(strings.Fields(line[1])...); gc.code() != 0 {
			t.Errorf("exit code %d of gc", gc.code())
		}
	})
}

func TestOneControllerAtATime(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	folder := p.witnesses(1, "1m", "")
	r := p.start("run", "-c", "drover.yaml", "batch.yaml")
	p.waitBegun(folder, 1)
	second := p.run("run", "--resume", p.runID())
	if code := second.code(); code != 3 || !strings.Contains(second.err.String(), "in use by another controller") {
		t.Errorf("exit code %d of a second controller: %s", code, second.err.String())
	}
	gc := p.run("gc", "--fleet", p.runID(), "--destroy")
	if gc.code() != 2 || !strings.Contains(gc.err.String(), "is still running, so its instances were not destroyed: ") {
		t.Errorf("gc exited with %d and printed %s", gc.code(), gc.err.String())
	}
	r.signal(syscall.SIGINT)
	r.wait(10 * time.Second)
	p.run("gc", "--fleet", p.runID(), "--destroy")
}

func (p *place) waitBegun(folder string, n int) {
	p.t.Helper()
	eventually(p.t, 20*time.Second, fmt.Sprintf("%d jobs have begun", n), func() bool {
		got, _ := begun(p.t, folder)
		return got >= n
	})
}
