//go:build chaos

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"drover"
)

// ledger records the requests to the fleet, and what must become of them.
type ledger struct {
	place  *place
	folder string // where the jobs record what happens to them

	mu      sync.Mutex
	jobs    map[int64]drover.SubmittedJob // acknowledged; guarded by mu
	kept    map[int64]bool                // those with outputs; guarded by mu
	cancels map[drover.JobID]time.Time    // requested; the time is that of the answer, if one came; guarded by mu
	lows    map[drover.JobID]bool         // may have priority 0; guarded by mu
	batches int                           // guarded by mu
	errors  []string                      // guarded by mu
}

func newLedger(p *place, folder string) *ledger {
	return &ledger{
		place: p, folder: folder, jobs: map[int64]drover.SubmittedJob{}, kept: map[int64]bool{},
		cancels: map[drover.JobID]time.Time{}, lows: map[drover.JobID]bool{},
	}
}

// patient is part of every job, so that nothing done to the job or to its instance keeps it from finishing.
const patient = `resources: {vcpus: 0.5, memory: 16Mi, disk: 16Mi}, attempts: 100, retry: {exit_codes: [137], times: 100}`

// batch returns one of the batches that the fleet works on.
func (l *ledger) batch(n int) string {
	text := fmt.Sprintf(`name: batch-%d
jobs:
  - {name: short, array: 24, command: [witness, %[2]s, 20ms-300ms], %[3]s}
  - {name: medium, array: 4, command: [witness, %[2]s, 1s-4s], %[3]s}
  - {name: make, array: 3, outputs: [result.txt], command: [sh, -c, "echo attempt $DROVER_ATTEMPT; witness %[2]s 50ms-200ms && echo $DROVER_ATTEMPT > result.txt"], %[3]s}
  - {name: use, inputs: [{from: make}], command: [sh, -c, "cat make/0/result.txt make/1/result.txt make/2/result.txt && witness %[2]s 50ms-100ms"], %[3]s}
`, n, l.folder, patient)
	if n%3 == 0 {
		text += fmt.Sprintf("  - {name: long, priority: 5, command: [witness, %s, 8s-15s], %s}\n", l.folder, patient)
	}
	return text
}

// submit submits a batch whenever little work is left, until the trouble is over. It repeats a submission with the same
// key until it is acknowledged.
func (l *ledger) submit(ctx context.Context, client drover.Service) {
	for n := 0; ctx.Err() == nil; n++ {
		l.submitOne(n)
		for ctx.Err() == nil && l.waiting(ctx, client) > 30 {
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	}
}

// waiting returns how many jobs are not final, according to the controller.
func (l *ledger) waiting(ctx context.Context, client drover.Service) int {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	status, err := client.Status(ctx)
	if err != nil {
		return 1000
	}
	return status.Jobs[drover.JobQueued] + status.Jobs[drover.JobRunning]
}

func (l *ledger) submitOne(n int) {
	name, key := fmt.Sprintf("batch-%d.yaml", n), fmt.Sprintf("chaos-%d", n)
	l.place.write(name, l.batch(n))
	for range 20 {
		var receipt drover.Receipt
		cmd := exec.Command(filepath.Join(binaries, "drover"), "submit", "-c", "drover.yaml", "--retry-for", "1m", "--key", key, "-o", "json", name)
		cmd.Dir, cmd.Env = l.place.dir, append(cmd.Environ(), "XDG_STATE_HOME="+l.place.state)
		var complaint strings.Builder
		cmd.Stderr = &complaint
		out, err := cmd.Output()
		if err == nil {
			err = json.Unmarshal(out, &receipt)
		}
		if err == nil {
			l.acknowledge(receipt)
			return
		}
		l.fault("submitting %s: %v: %s", name, err, complaint.String())
	}
}

func (l *ledger) acknowledge(r drover.Receipt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.batches++
	for _, j := range r.Jobs {
		l.jobs[j.ID.Number] = j
		l.kept[j.ID.Number] = j.Name == "make"
	}
}

func (l *ledger) fault(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errors = append(l.errors, fmt.Sprintf(format, args...))
}

// someJob returns one of the recent jobs.
func (l *ledger) someJob(d *dice) (drover.JobID, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	numbers := slices.Sorted(maps.Keys(l.jobs))
	if len(numbers) == 0 {
		return drover.JobID{}, false
	}
	late := numbers[max(0, len(numbers)-10):]
	return l.jobs[late[d.below(len(late))]].ID, true
}

// victim returns a job or an element to cancel.
func (l *ledger) victim(d *dice) (drover.JobID, bool) {
	id, ok := l.someJob(d)
	if !ok {
		return id, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	id.Index = -1
	if n := l.jobs[id.Number].Elements; n > 1 && d.float() < 0.9 {
		id.Index = d.below(n)
	}
	if _, before := l.cancels[id]; !before {
		l.cancels[id] = time.Time{}
	}
	return id, true
}

// cancelled records the answer to a cancel.
func (l *ledger) cancelled(id drover.JobID, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && l.cancels[id].IsZero() {
		l.cancels[id] = time.Now()
	}
}

func (l *ledger) lowered(id drover.JobID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lows[id] = true
}

// raise resets the priorities of jobs that are not final. A controller without disk space may end only now, before the
// next one starts.
func (l *ledger) raise(t *testing.T, client drover.Service) {
	for id := range l.lows {
		eventually(t, 30*time.Second, fmt.Sprintf("the priority of %v is raised", id), func() bool {
			_, err := client.SetPriority(t.Context(), id, 1)
			return err == nil || drover.KindOf(err) == drover.KindConflict
		})
	}
}

// audit checks that every acknowledged job exists and is final, and that the jobs' own records agree with the
// controller's.
func (l *ledger) audit(t *testing.T, client drover.Service, jobs []drover.Job) {
	t.Helper()
	for _, fault := range l.errors {
		t.Error(fault)
	}
	seen, saw := map[int64]int{}, testimony(t, l.folder)
	for _, j := range jobs {
		seen[j.ID.Number]++
		l.auditJob(t, j, saw[j.ID.String()])
		if j.State == drover.JobSucceeded && l.kept[j.ID.Number] {
			auditResults(t, client, j)
		}
		delete(saw, j.ID.String())
	}
	for job, w := range saw {
		t.Errorf("job %s is not in the records, but began %q", job, w.begins)
	}
	for number, j := range l.jobs {
		if seen[number] != j.Elements {
			t.Errorf("%d of %d elements of job %v are in the records", seen[number], j.Elements, j.ID)
		}
		delete(seen, number)
	}
	for number := range seen {
		t.Errorf("job %d was never acknowledged", number)
	}
}

// auditJob checks that a job ended as it should, and ran as often as recorded, one attempt after the other.
func (l *ledger) auditJob(t *testing.T, j drover.Job, w testament) {
	asked, acknowledged := l.cancelOf(j.ID)
	last := 0
	if n := len(j.Attempts); n > 0 {
		last = j.Attempts[n-1].Number
		if acknowledged && j.State == drover.JobSucceeded && j.Attempts[n-1].Started.After(l.answered(j.ID).Add(3*time.Second)) {
			t.Errorf("job %v was cancelled at %v, but started at %v", j.ID, l.answered(j.ID), j.Attempts[n-1].Started)
		}
	}
	needed := j.Name == "use" // it is cancelled with the job that it needs
	if !(j.State == drover.JobSucceeded || j.State == drover.JobCancelled && (asked || needed)) {
		t.Errorf("job %v (%s) is %s: %+v", j.ID, j.Name, j.State, j.Reason)
	}
	for i, a := range j.Attempts {
		if a.Number != i+1 || a.State.Live() {
			t.Errorf("attempt %d of job %v is %s, and has index %d of %d", a.Number, j.ID, a.State, i, len(j.Attempts))
		}
	}
	if err := w.check(j.State == drover.JobSucceeded, last); err != nil {
		t.Errorf("job %v is %s after %d attempts; it began %q and ended %q: %v", j.ID, j.State, last, w.begins, w.ends, err)
	}
}

func (l *ledger) cancelOf(id drover.JobID) (asked, acknowledged bool) {
	_, one := l.cancels[id]
	_, all := l.cancels[drover.JobID{Number: id.Number, Index: -1}]
	return one || all, !l.answered(id).IsZero()
}

// answered returns when a cancel was first acknowledged.
func (l *ledger) answered(id drover.JobID) (first time.Time) {
	for _, id := range []drover.JobID{id, {Number: id.Number, Index: -1}} {
		if at := l.cancels[id]; !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// check checks that each attempt began at most once, that they began in order, and that only the last one succeeded.
func (w testament) check(succeeded bool, last int) error {
	if w.overlaps > 0 {
		return fmt.Errorf("two of its attempts ran at once")
	}
	before, finished := 0, 0
	for _, who := range w.begins {
		n := numberOf(who)
		if n <= before || n > last {
			return fmt.Errorf("attempt %d began after attempt %d, of %d", n, before, last)
		}
		before = n
	}
	for _, who := range w.ends {
		if numberOf(who) == last {
			finished++
		}
	}
	if succeeded && (finished != 1 || before != last) {
		return fmt.Errorf("its last attempt ended %d times", finished)
	}
	return nil
}

// numberOf returns the attempt number in a witness's record.
func numberOf(who string) (n int) {
	fmt.Sscan(who, &n)
	return n
}

// auditResults checks that a job's output and files come from the attempt that succeeded.
func auditResults(t *testing.T, client drover.Service, j drover.Job) {
	want := fmt.Sprintln(j.Attempts[len(j.Attempts)-1].Number)
	if got, err := contents(client.OpenOutput(t.Context(), j.ID, "result.txt", 0)); got != want {
		t.Errorf("job %v left %q, not %q (%v)", j.ID, got, want, err)
	}
	r := drover.LogRequest{Job: j.ID, Stream: drover.Stdout}
	if got, err := contents(client.Logs(t.Context(), r)); got != "attempt "+want {
		t.Errorf("job %v wrote %q, not attempt %q (%v)", j.ID, got, want, err)
	}
}

func contents(r io.ReadCloser, err error) (string, error) {
	if err != nil {
		return "", err
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	return string(text), err
}
