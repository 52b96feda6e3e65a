package store

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"drover"
	"drover/internal/engine"
)

// child names the file of records into which this test binary, run again, writes until it is killed.
const child = "DROVER_STORE_TEST_CHILD"

func TestMain(m *testing.M) {
	if path := os.Getenv(child); path != "" {
		fmt.Fprintln(os.Stderr, writeForEver(path))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// writeForEver says the number of each job on stdout as soon as it is written down.
func writeForEver(path string) error {
	ctx := context.Background()
	s, err := Open(ctx, path)
	if err != nil {
		return err
	}
	for {
		numbers, err := s.Submit(ctx, drover.Submission{Batch: drover.Batch{Name: "b", Jobs: []drover.JobSpec{{Name: "one"}}}})
		if err != nil {
			return err
		}
		job := engine.Job{Number: numbers[0], Queued: engine.Ranges{{First: -1, Last: -1}}}
		if err := s.Commit(ctx, []engine.Write{{Job: &job}}); err != nil {
			return err
		}
		fmt.Println(job.Number)
	}
}

func TestWhatIsAcknowledgedSurvivesAKill(t *testing.T) {
	open := sqliteOpener(t)
	s := open(t)
	var path string
	if err := s.write.QueryRow(`SELECT file FROM pragma_database_list`).Scan(&path); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for round, acknowledged := 0, 0; round < 3; round++ {
		acknowledged += writeUntilKilled(t, path, 20)
		if taken := len(begun(t, open(t)).Jobs); taken < acknowledged {
			t.Fatalf("round %d: %d jobs are there, %d were acknowledged", round, taken, acknowledged)
		}
	}
}

// writeUntilKilled kills a child once it has acknowledged at least so many jobs, and returns how many it did.
func writeUntilKilled(t *testing.T, path string, least int) (acknowledged int) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), child+"="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if acknowledged++; acknowledged == least {
			cmd.Process.Kill()
		}
	}
	cmd.Wait()
	if acknowledged < least {
		t.Fatalf("the child acknowledged %d jobs and ended", acknowledged)
	}
	return acknowledged
}

// BenchmarkCommit writes what one job costs from start to end: its row, its element's and its attempt's, thrice, in groups of thirty.
func BenchmarkCommit(b *testing.B) {
	s := sqliteOpener(b)(b)
	jobs := submitted(b, s)
	commit(b, s, engine.Write{Instance: &engine.Instance{ID: 1, State: drover.InstanceRunning}})
	states := []drover.AttemptState{drover.AttemptStarting, drover.AttemptRunning, drover.AttemptSucceeded}
	writes := 0
	for n := 0; b.Loop(); n++ {
		var group []engine.Write
		for i := range 10 {
			a := attempt(2, n*10+i, 1)
			a.State = states[n%3]
			group = append(group, engine.Write{Job: &jobs[i%3]}, engine.Write{Attempt: &engine.AttemptRow{Attempt: a}},
				engine.Write{Element: &engine.ElementRow{Job: 2, Element: engine.Element{Index: n*10 + i}, State: drover.JobRunning}})
		}
		commit(b, s, group...)
		writes += len(latest(group))
	}
	b.ReportMetric(float64(writes)/b.Elapsed().Seconds(), "writes/s")
}

// BenchmarkSubmit writes down a batch of a thousand jobs.
func BenchmarkSubmit(b *testing.B) {
	s := sqliteOpener(b)(b)
	batch := drover.Batch{Name: "b"}
	for i := range 1000 {
		spec := hello().Jobs[2]
		spec.Name = fmt.Sprint("job-", i)
		batch.Jobs = append(batch.Jobs, spec)
	}
	for b.Loop() {
		if _, err := s.Submit(b.Context(), drover.Submission{Batch: batch}); err != nil {
			b.Fatal(err)
		}
	}
}
