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

// child is the environment variable with the file of records to which a child process of this test binary writes until
// it is killed.
const child = "DROVER_STORE_TEST_CHILD"

func TestMain(m *testing.M) {
	if path := os.Getenv(child); path != "" {
		fmt.Fprintln(os.Stderr, writeForever(path))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// writeForever prints the number of each job on stdout as soon as it is recorded.
func writeForever(path string) error {
	ctx := context.Background()
	s, err := Open(ctx, path)
	if err != nil {
		return err
	}
	for {
		numbers, err := s.Submit(ctx, drover.Submission{Batch: drover.Batch{Name: "b", Jobs: []drover.JobSpec{{Name: "one"}}}}, Terms{})
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

func TestAcknowledgedJobsSurviveAKill(t *testing.T) {
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
			t.Fatalf("round %d: %d jobs exist, %d were acknowledged", round, taken, acknowledged)
		}
	}
}

// writeUntilKilled kills a child once it has acknowledged at least this many jobs, and returns how many it
// acknowledged.
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

// BenchmarkCommit writes the rows of jobs from start to end: three decisions for each job, each with the rows of the
// job, its element and its attempt. A commit has this many decisions.
func BenchmarkCommit(b *testing.B) {
	for _, decisions := range []int{10, 256} {
		b.Run(fmt.Sprint(decisions, " decisions"), func(b *testing.B) { benchmarkCommit(b, decisions) })
	}
}

func benchmarkCommit(b *testing.B, decisions int) {
	s := sqliteOpener(b)(b)
	begun(b, s)
	jobs := submittedSingly(b, s, decisions)
	commit(b, s, engine.Write{Instance: &engine.Instance{ID: 1, State: drover.InstanceRunning}})
	states := []drover.AttemptState{drover.AttemptStarting, drover.AttemptRunning, drover.AttemptSucceeded}
	writes := 0
	for n := 0; b.Loop(); n++ {
		var group []engine.Write
		for _, job := range jobs {
			a := attempt(job.Number, -1, n/3+1)
			a.State = states[n%3]
			job.Queued = engine.Ranges{{First: -1, Last: -1}}[:n%2]
			row := engine.ElementRow{Job: job.Number, Element: engine.Element{Index: -1, Number: a.ID.Number}, State: drover.JobRunning}
			group = append(group, engine.Write{Job: &job}, engine.Write{Attempt: &engine.AttemptRow{Attempt: a}}, engine.Write{Element: &row})
		}
		commit(b, s, group...)
		writes += len(group)
	}
	b.ReportMetric(float64(writes)/b.Elapsed().Seconds(), "writes/s")
}

// submittedSingly submits n jobs that are not arrays and returns them.
func submittedSingly(b *testing.B, s *Store, n int) []engine.Job {
	if _, err := s.Submit(b.Context(), drover.Submission{Batch: singles(n)}, Terms{}); err != nil {
		b.Fatal(err)
	}
	jobs, err := s.Pending(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	return jobs
}

// singles returns a batch of n jobs that are not arrays.
func singles(n int) drover.Batch {
	batch := drover.Batch{Name: "b"}
	for i := range n {
		spec := hello().Jobs[2]
		spec.Name = fmt.Sprint("job-", i)
		batch.Jobs = append(batch.Jobs, spec)
	}
	return batch
}

// BenchmarkSubmit submits a batch of a thousand jobs.
func BenchmarkSubmit(b *testing.B) {
	s := sqliteOpener(b)(b)
	batch := singles(1000)
	for b.Loop() {
		if _, err := s.Submit(b.Context(), drover.Submission{Batch: batch}, Terms{}); err != nil {
			b.Fatal(err)
		}
	}
}
