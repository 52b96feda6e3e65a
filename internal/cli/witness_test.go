package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// testament is what witness recorded about one job.
type testament struct {
	begins, ends []string // "attempt instance"
	overlaps     int
}

// testimony reads what witness recorded in a folder, by job.
func testimony(t *testing.T, folder string) map[string]testament {
	t.Helper()
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]testament{}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(folder, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		var w testament
		for line := range strings.Lines(string(text)) {
			words := append(strings.Fields(line), "", "", "")
			what, who := words[0], words[1]+" "+words[2]
			switch what {
			case "begin":
				w.begins = append(w.begins, who)
			case "end":
				w.ends = append(w.ends, who)
			default:
				w.overlaps++
			}
		}
		all[f.Name()] = w
	}
	return all
}

// begun returns how many jobs of a folder have started, and ended how many have finished.
func begun(t *testing.T, folder string) (begun, ended int) {
	for _, w := range testimony(t, folder) {
		begun += min(1, len(w.begins))
		ended += min(1, len(w.ends))
	}
	return begun, ended
}

// wantOnce checks that every job ended exactly once, and that no two of its attempts overlapped.
func wantOnce(t *testing.T, folder string, jobs int) {
	t.Helper()
	all := testimony(t, folder)
	if len(all) != jobs {
		t.Errorf("%d jobs began, not %d", len(all), jobs)
	}
	for job, w := range all {
		if len(w.ends) != 1 || w.overlaps > 0 {
			t.Errorf("job %s began %q, ended %q, and overlapped %d times", job, w.begins, w.ends, w.overlaps)
		}
	}
}

// outcome is the part of `run -o json` that tests read.
type outcome struct {
	Jobs, Succeeded, Failed, Cancelled, Attempts, Instances int
	InstanceSeconds                                         float64 `json:"instance_seconds"`
	Cost                                                    float64 `json:"cost_usd"`
	JobCost                                                 float64 `json:"job_cost_usd"`
	Seconds                                                 float64
	Failures                                                []struct {
		Name, State string
		Reason      reason
		Attempts    []struct {
			Number          int
			Instance, State string
			Reason          reason
		}
	}
}

type reason struct{ Code, Text string }

func (r *process) outcome() (o outcome) {
	r.t.Helper()
	if err := json.Unmarshal([]byte(r.out.String()), &o); err != nil {
		r.t.Fatalf("reading the summary: %v", err)
	}
	return o
}

// runID waits until the only run of the place is recorded, and returns its ID.
func (p *place) runID() (id string) {
	p.t.Helper()
	eventually(p.t, 10*time.Second, "a run is recorded", func() bool {
		found, _ := filepath.Glob(filepath.Join(p.state, "drover", "run-*", "run.json"))
		if len(found) == 1 {
			id = filepath.Base(filepath.Dir(found[0]))
		}
		return id != ""
	})
	return id
}

// instanceFolder returns the local driver's folder for an instance of the run in the cloud here.
func (p *place) instanceFolder(name string) string {
	run := p.runID()
	return filepath.Join(p.state, "drover", run, "here", run, name)
}

// pid returns the pid of an instance's outermost process.
func (p *place) pid(instance string) int {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.instanceFolder(instance), "pid"))
	if err != nil {
		p.t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		p.t.Fatal(err)
	}
	return pid
}

// killInstance kills an instance suddenly.
func (p *place) killInstance(name string) {
	p.t.Helper()
	if err := syscall.Kill(p.pid(name), syscall.SIGKILL); err != nil {
		p.t.Fatal(err)
	}
}

// instanceOf returns the instance on which the last attempt of a job began.
func instanceOf(t *testing.T, folder, job string) string {
	t.Helper()
	w := testimony(t, folder)[job]
	if len(w.begins) == 0 {
		t.Fatalf("job %s has not begun", job)
	}
	_, instance, _ := strings.Cut(w.begins[len(w.begins)-1], " ")
	return instance
}
