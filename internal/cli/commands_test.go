package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover"
)

func TestJobsCommand(t *testing.T) {
	jobs := append([]drover.Job{aJob(1, "greet", drover.JobSucceeded)}, anArray(2, "many", 3, drover.JobRunning)...)
	t.Run("lists every page, with one line for each array", func(t *testing.T) {
		f := &fakeController{jobs: jobs, page: 1}
		f.serve(t)
		r := droverCommand(t, "jobs")
		r.want(t, 0, "ID  NAME   BATCH  USER  STATE             AGE   REASON\n2   many   hello  ada   running 0/3 done  1h0m\n1   greet  hello  ada   succeeded         1h0m\n", "")
	})
	t.Run("prints one list for programs, even from several pages", func(t *testing.T) {
		f := &fakeController{jobs: jobs, page: 1}
		f.serve(t)
		var read []drover.Job
		r := droverCommand(t, "jobs", "--elements", "-o", "json")
		if err := json.Unmarshal([]byte(r.out), &read); err != nil || len(read) != 4 || read[3].ID.String() != "2.2" {
			t.Errorf("%v: %s", err, r.out)
		}
		r = droverCommand(t, "jobs", "--state", "failed", "-o", "json")
		r.want(t, 0, "[]\n", "")
		droverCommand(t, "jobs", "-o", "yaml").want(t, 0, "- id: \"1\"\n  name: greet\n", "")
		droverCommand(t, "jobs", "-o", "yaml").want(t, 0, "- id: \"2\"\n", "")
		droverCommand(t, "jobs", "-o", "name").want(t, 0, "2\n1\n", "")
	})
	t.Run("shows one job in full, with its attempts", func(t *testing.T) {
		job := aJob(7, "greet", drover.JobFailed)
		three := 3
		job.ExitCode, job.Reason = &three, &drover.Reason{Code: "exit", Text: "exit code 3"}
		job.Attempts = []drover.Attempt{{Number: 1, Instance: "lab-x", Market: drover.Spot, State: drover.AttemptFailed, ExitCode: &three, Started: time.Now()}}
		f := &fakeController{jobs: []drover.Job{job}}
		f.serve(t)
		r := droverCommand(t, "jobs", "7")
		for _, want := range []string{"exit code:  3\n", "command:    sh -c 'echo hello'\n", "1  lab-x     spot    failed     3"} {
			r.want(t, 0, want, "")
		}
		droverCommand(t, "jobs", "8").want(t, 2, "", "there is no job 8")
		f.jobs[0].Attempts[0].State = drover.AttemptLost
		droverCommand(t, "jobs", "7").want(t, 0, "\nThe last lines of the runner's log: drover instances lab-x\n", "")
	})
	t.Run("keeps a job's text from controlling the terminal", func(t *testing.T) {
		job := aJob(7, "greet", drover.JobFailed)
		job.Reason = &drover.Reason{Text: "\x1b]0;title\x07\u202eevil\nnext"}
		f := &fakeController{jobs: []drover.Job{job}}
		f.serve(t)
		for _, args := range [][]string{{"jobs"}, {"jobs", "7"}} {
			r := droverCommand(t, args...)
			if strings.ContainsAny(r.out, "\x1b\x07\u202e") || !strings.Contains(r.out, "evil next") {
				t.Errorf("%q", r.out)
			}
		}
	})
	t.Run("shows how many elements of an array start together", func(t *testing.T) {
		jobs := anArray(2, "many", 6, drover.JobRunning)
		jobs[0].Gang = 3
		(&fakeController{jobs: jobs}).serve(t)
		droverCommand(t, "jobs", "2").want(t, 0, "2 of 3 elements each", "")
	})
	t.Run("shows how many elements of a final array succeeded, and how to list the failed ones", func(t *testing.T) {
		for state, want := range map[drover.JobState]string{
			drover.JobFailed: "failed, 0/3 succeeded", drover.JobCancelled: "cancelled, 0/3 succeeded", drover.JobSucceeded: "succeeded 3/3",
		} {
			f := &fakeController{jobs: anArray(2, "many", 3, state)}
			f.serve(t)
			droverCommand(t, "jobs").want(t, 0, want, "")
			r := droverCommand(t, "jobs", "2")
			if failed := state == drover.JobFailed; strings.Contains(r.out, "drover jobs 2 --elements --state failed\n") != failed {
				t.Errorf("%s", r.out)
			}
		}
	})
	t.Run("shows the elements of several jobs", func(t *testing.T) {
		(&fakeController{jobs: append(anArray(2, "many", 2, drover.JobFailed), aJob(3, "greet", drover.JobFailed)), page: 10}).serve(t)
		droverCommand(t, "jobs", "2", "3", "--elements", "-o", "name").want(t, 0, "2.0\n2.1\n3\n", "")
	})
	t.Run("refuses invalid arguments", func(t *testing.T) {
		(&fakeController{jobs: jobs}).serve(t)
		droverCommand(t, "jobs", "1", "--state", "failed").want(t, 2, "", "a JOB cannot be used together with --state")
		droverCommand(t, "jobs", "--state", "done").want(t, 2, "", "--state done is not valid")
		droverCommand(t, "jobs", "x").want(t, 2, "", `"x" is not a job id`)
		droverCommand(t, "jobs", "--label", "x").want(t, 2, "", "is not NAME=VALUE")
	})
	t.Run("reports on stderr that there are no jobs", func(t *testing.T) {
		(&fakeController{}).serve(t)
		if r := droverCommand(t, "jobs"); r.out != "" || r.err != "no jobs\n" || r.code != 0 {
			t.Errorf("%+v", r)
		}
	})
	t.Run("--watch repeats until it is interrupted, and survives errors", func(t *testing.T) {
		f := &fakeController{jobs: jobs[:1]}
		f.serve(t)
		ctx, cancel := context.WithCancel(t.Context())
		f.onJob = func(n int) {
			switch n {
			case 1:
				f.faults = []error{drover.Errorf(drover.KindTransient, "not now")}
			case 4:
				cancel()
			}
		}
		r := droverUntil(t, ctx, "jobs", "--watch", "1ms", "1")
		r.want(t, 130, "\n\nid:", "drover: not now\n")
	})
	t.Run("--watch ends when the token is no longer valid", func(t *testing.T) {
		f := &fakeController{jobs: jobs[:1]}
		f.serve(t)
		f.onJob = func(n int) {
			if n == 1 {
				f.faults = []error{drover.Errorf(drover.KindAuthentication, "the token has expired")}
			}
		}
		droverCommand(t, "jobs", "--watch", "1ms", "1").want(t, 4, "id:", "the token has expired")
	})
}

func TestExplainCommand(t *testing.T) {
	t.Run("shows why jobs wait, since when and until when", func(t *testing.T) {
		now := drover.TimeOf(time.Now())
		f := &fakeController{jobs: anArray(17, "greet", 20, drover.JobQueued), explained: []drover.Explanation{
			{Subject: "17", Waiting: true, Count: 12, Since: now.Add(-3 * time.Hour), Reasons: []drover.Reason{
				{Code: "capacity", Text: "all 4 instances are full", Until: now.Add(time.Minute)},
			}},
		}}
		f.serve(t)
		r := droverCommand(t, "explain")
		r.want(t, 0, "job 17 (greet): 12 of 20 have been waiting since ", "")
		r.want(t, 0, " (3h0m):\n  capacity: all 4 instances are full; changes by ", "")
	})
	t.Run("groups similar jobs", func(t *testing.T) {
		(&fakeController{jobs: anArray(17, "greet", 20, drover.JobQueued), explained: []drover.Explanation{
			{Subject: "17", Waiting: true, Jobs: 2, Count: 13}, {Subject: "9", Waiting: true, Jobs: 3, Count: 3},
		}}).serve(t)
		r := droverCommand(t, "explain")
		r.want(t, 0, "job 17 (greet) and 1 similar job (13 in all, counting array elements) are waiting\n", "")
		r.want(t, 0, "job 9 and 2 similar jobs are waiting\n", "")
	})
	t.Run("shows when it retries a cloud that does not answer, and promises no change", func(t *testing.T) {
		now := drover.TimeOf(time.Now())
		for _, code := range []string{drover.ReasonUnlisted, drover.ReasonCatalogue} {
			(&fakeController{explained: []drover.Explanation{{Subject: "here", Reasons: []drover.Reason{{Code: code, Text: "no answer", Until: now.Add(time.Minute)}}}}}).serve(t)
			r := droverCommand(t, "explain")
			if r.want(t, 0, code+": no answer; next try at ", ""); strings.Contains(r.out, "changes") {
				t.Errorf("%s", r.out)
			}
		}
	})
	t.Run("reports that nothing is waiting", func(t *testing.T) {
		(&fakeController{}).serve(t)
		droverCommand(t, "explain", "17", "18").want(t, 2, "", "takes only one subject, but also got 18")
		droverCommand(t, "explain").want(t, 0, "nothing is waiting\n", "")
		droverCommand(t, "explain", "-o", "json").want(t, 0, "[]\n", "")
	})
}

func TestLogsCommand(t *testing.T) {
	t.Run("prints each stream separately, byte for byte", func(t *testing.T) {
		f := &fakeController{jobs: []drover.Job{aJob(1, "a", drover.JobSucceeded)}, logs: map[drover.Stream][]string{
			drover.Stdout: {"out\x1b\xff"}, drover.Stderr: {"err"},
		}}
		f.serve(t)
		if r := droverCommand(t, "logs", "1"); r.out != "out\x1b\xff" || r.err != "err" || r.code != 0 {
			t.Errorf("%+v", r)
		}
		if r := droverCommand(t, "logs", "--stderr", "1"); r.out != "" || r.err != "err" {
			t.Errorf("%+v", r)
		}
	})
	t.Run("follows past a connection that ends before the job, and repeats nothing", func(t *testing.T) {
		job := aJob(1, "a", drover.JobRunning)
		job.Attempts = []drover.Attempt{{Number: 1}}
		f := &fakeController{jobs: []drover.Job{job}, logs: map[drover.Stream][]string{drover.Stdout: {"one\n", "one\ntwo\n"}}}
		f.onLogs = func(n int) {
			if n == 2 {
				f.jobs[0].State = drover.JobSucceeded
			}
		}
		f.serve(t)
		if r := droverCommand(t, "logs", "-f", "--stdout", "1"); r.out != "one\ntwo\n" || r.code != 0 {
			t.Errorf("%+v", r)
		}
	})
	t.Run("gives up when only the output cannot be followed", func(t *testing.T) {
		full := drover.Errorf(drover.KindTransient, "the disk is full")
		f := &fakeController{jobs: []drover.Job{aJob(1, "a", drover.JobRunning)}, faults: []error{nil, nil, full, nil, nil, nil}}
		f.serve(t)
		ctx, cancel := context.WithCancel(t.Context())
		f.onLogs = func(int) { cancel() }
		droverUntil(t, ctx, "logs", "-f", "--stdout", "--retry-for", "0s", "1").want(t, 3, "", "drover: the disk is full")
	})
}

func TestOutputsCommand(t *testing.T) {
	one, two := drover.JobID{Number: 1, Index: -1}, drover.JobID{Number: 2, Index: 1}
	outputs := map[drover.JobID]map[string]string{one: {"a/b.png": "picture", "c": ""}, two: {"d": "dee"}}
	jobs := append([]drover.Job{aJob(1, "x", drover.JobSucceeded)}, anArray(2, "y", 2, drover.JobSucceeded)...)
	t.Run("lists a job's outputs", func(t *testing.T) {
		f := &fakeController{jobs: jobs, outputs: outputs}
		f.serve(t)
		droverCommand(t, "outputs", "1").want(t, 0, "1       7  a/b.png\n1       0  c\n", "")
		droverCommand(t, "outputs", "2", "-o", "json").want(t, 0, `[{"job":"2.1","path":"d","size_bytes":3,"sha256":"`, "")
	})
	t.Run("fetches outputs, an array's by index", func(t *testing.T) {
		f := &fakeController{jobs: jobs, outputs: outputs}
		f.serve(t)
		to := filepath.Join(t.TempDir(), "results")
		droverCommand(t, "outputs", "1", "--to", to).want(t, 0, filepath.Join(to, "a/b.png"), "")
		droverCommand(t, "outputs", "2", "--to", to).want(t, 0, filepath.Join(to, "1/d"), "")
		for path, want := range map[string]string{"a/b.png": "picture", "c": "", "1/d": "dee"} {
			if got, err := os.ReadFile(filepath.Join(to, path)); err != nil || string(got) != want {
				t.Errorf("%s: %q, %v", path, got, err)
			}
		}
	})
	t.Run("leaves nothing of an output that does not match its hash", func(t *testing.T) {
		f := &fakeController{jobs: jobs, outputs: outputs, lies: "PICTURE"}
		f.serve(t)
		to := t.TempDir()
		droverCommand(t, "outputs", "1", "--to", to).want(t, 3, "", "does not match its hash")
		if files, err := os.ReadDir(filepath.Join(to, "a")); err != nil || len(files) != 0 {
			t.Errorf("%v, %v", files, err)
		}
	})
	t.Run("leaves nothing of an output if a folder is in its place", func(t *testing.T) {
		f := &fakeController{jobs: jobs, outputs: outputs}
		f.serve(t)
		to := t.TempDir()
		if err := os.MkdirAll(filepath.Join(to, "a", "b.png"), 0o700); err != nil {
			t.Fatal(err)
		}
		droverCommand(t, "outputs", "1", "--to", to).want(t, 2, "", "fetching a/b.png of job 1")
		if files, err := os.ReadDir(filepath.Join(to, "a")); err != nil || len(files) != 1 {
			t.Errorf("%v, %v", files, err)
		}
	})
	for name, path := range map[string]string{"an upward path": "../evil", "an absolute path": "/tmp/evil", "a link": "link/evil"} {
		t.Run("never leaves the folder by "+name, func(t *testing.T) {
			f := &fakeController{jobs: jobs, outputs: map[drover.JobID]map[string]string{one: {path: "x"}}}
			f.serve(t)
			to, elsewhere := filepath.Join(t.TempDir(), "to"), t.TempDir()
			if err := os.Mkdir(to, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(elsewhere, filepath.Join(to, "link")); err != nil {
				t.Fatal(err)
			}
			if r := droverCommand(t, "outputs", "1", "--to", to); r.code == 0 {
				t.Errorf("%+v", r)
			}
			for _, folder := range []string{elsewhere, filepath.Dir(to)} {
				if _, err := os.Stat(filepath.Join(folder, "evil")); err == nil {
					t.Errorf("it wrote into %s", folder)
				}
			}
		})
	}
}

func TestChangeCommands(t *testing.T) {
	jobs := func() []drover.Job {
		return []drover.Job{aJob(1, "a", drover.JobQueued), aJob(2, "b", drover.JobSucceeded), aJob(3, "c", drover.JobRunning)}
	}
	t.Run("cancel requires jobs", func(t *testing.T) {
		(&fakeController{}).serve(t)
		droverCommand(t, "cancel").want(t, 2, "", "name a JOB, or use --batch NAME or --all")
		droverCommand(t, "cancel", "--all", "1").want(t, 2, "", "cannot be used together")
	})
	t.Run("cancel reports a missing job and continues", func(t *testing.T) {
		f := &fakeController{jobs: jobs()}
		f.serve(t)
		droverCommand(t, "cancel", "9", "1", "--reason", "enough").want(t, 2, "job 1 (a): cancelled: enough\n", "there is no job 9")
	})
	t.Run("cancel ends with one error and its exit code when the controller is away", func(t *testing.T) {
		down := drover.Errorf(drover.KindUnreachable, "down")
		f := &fakeController{jobs: jobs(), faults: []error{nil, nil, down, down}}
		f.serve(t)
		r := droverCommand(t, "cancel", "9", "1", "2", "3")
		r.want(t, 3, "job 1 (a): cancelled", "drover: down\nthere is no job 9\n")
		if f.asked["Cancel"] != 3 {
			t.Errorf("it called the controller %d times", f.asked["Cancel"])
		}
	})
	t.Run("cancel --all cancels every job that is not final", func(t *testing.T) {
		f := &fakeController{jobs: jobs(), page: 1}
		f.serve(t)
		if r := droverCommand(t, "cancel", "--all", "-o", "name"); r.out != "1\n3\n" || r.code != 0 {
			t.Errorf("%+v", r)
		}
	})
	t.Run("priority takes the number last", func(t *testing.T) {
		f := &fakeController{jobs: jobs()}
		f.serve(t)
		droverCommand(t, "priority", "1", "3", "50").want(t, 0, "job 3 (c): running, priority 50", "")
		droverCommand(t, "priority", "1", "high").want(t, 2, "", "high is not a priority")
	})
}

func TestABatchThatDoesNotExistIsNotFound(t *testing.T) {
	f := &fakeController{jobs: []drover.Job{aJob(1, "a", drover.JobSucceeded)}}
	f.serve(t)
	for _, command := range []string{"cancel", "outputs", "wait", "logs"} {
		droverCommand(t, command, "--batch", "nosuch").want(t, 2, "", "there are no jobs in batch nosuch")
	}
	droverCommand(t, "cancel", "--batch", "hello").want(t, 0, "", "no jobs\n")
}

func TestWaitCommand(t *testing.T) {
	t.Run("waits until all jobs are final", func(t *testing.T) {
		f := &fakeController{jobs: []drover.Job{aJob(1, "a", drover.JobRunning)}}
		f.onJob = func(n int) {
			if n > 2 {
				f.jobs[0].State = drover.JobSucceeded
			}
		}
		f.serve(t)
		droverCommand(t, "wait", "1").want(t, 0, "", "1 job: 1 succeeded\n")
	})
	t.Run("names the first jobs that did not succeed, and exits 1", func(t *testing.T) {
		f := &fakeController{jobs: append(anArray(1, "a", 7, drover.JobFailed), aJob(2, "b", drover.JobSucceeded)), page: 10}
		f.serve(t)
		r := droverCommand(t, "wait", "--batch", "hello")
		r.want(t, 1, "", "job 1.4 (a) failed\nand 2 more\n")
		if strings.Contains(r.err, "1.5") {
			t.Errorf("it names too many:\n%s", r.err)
		}
	})
	t.Run("waits for a controller that does not answer, and reports it once", func(t *testing.T) {
		down := drover.Errorf(drover.KindUnreachable, "restarting")
		f := &fakeController{jobs: []drover.Job{aJob(1, "a", drover.JobSucceeded)}, faults: []error{down, down, down}}
		f.serve(t)
		r := droverCommand(t, "wait", "1")
		r.want(t, 0, "", "the controller is answering again\n")
		if strings.Count(r.err, "is not answering") != 1 {
			t.Errorf("%s", r.err)
		}
	})
	t.Run("every command with --retry-for waits for a controller that does not answer", func(t *testing.T) {
		down := drover.Errorf(drover.KindUnreachable, "restarting")
		for _, args := range [][]string{{"logs", "1"}, {"logs", "--batch", "hello"}, {"outputs", "1"}, {"submit", "--input", os.Args[0], "--", "true"}} {
			f := &fakeController{jobs: []drover.Job{aJob(1, "a", drover.JobSucceeded)}, faults: []error{down, down}, inputs: map[string]string{}}
			f.serve(t)
			r := droverCommand(t, args...)
			if r.want(t, 0, "", "the controller is answering again\n"); strings.Count(r.err, "is not answering") != 1 {
				t.Errorf("%s: %s", args, r.err)
			}
		}
	})
	t.Run("gives up when --retry-for is over", func(t *testing.T) {
		f := &fakeController{faults: slices.Repeat([]error{drover.Errorf(drover.KindTransient, "restarting")}, 100)}
		f.serve(t)
		droverCommand(t, "wait", "1", "--retry-for", "10ms").want(t, 3, "", "restarting")
		droverCommand(t, "wait", "1", "--patience", "10ms").want(t, 3, "", "restarting") // its former name
	})
	t.Run("reports that there is nothing to wait for", func(t *testing.T) {
		(&fakeController{}).serve(t)
		droverCommand(t, "wait").want(t, 0, "", "nothing is queued or running\n")
	})
	t.Run("says that the job continues when it is interrupted", func(t *testing.T) {
		f := &fakeController{jobs: []drover.Job{aJob(24, "a", drover.JobRunning)}}
		f.serve(t)
		ctx, cancel := context.WithCancel(t.Context())
		f.onJob = func(int) { cancel() }
		droverUntil(t, ctx, "wait", "24").want(t, 130, "", "job 24 continues; drover cancel 24 cancels it\n")
	})
	t.Run("gets many jobs with one call", func(t *testing.T) {
		f := &fakeController{page: 100}
		args := []string{"wait"}
		for i := range int64(50) {
			f.jobs = append(f.jobs, aJob(i+1, "a", drover.JobSucceeded))
			args = append(args, f.jobs[i].ID.String())
		}
		f.serve(t)
		droverCommand(t, args...).want(t, 0, "", "50 jobs: 50 succeeded")
		if f.asked["Jobs"] != 1 || f.asked["Job"] != 0 {
			t.Errorf("%v", f.asked)
		}
	})
}

func TestRetryCommand(t *testing.T) {
	f := &fakeController{jobs: []drover.Job{aJob(10, "count", drover.JobFailed), aJob(11, "sum", drover.JobCancelled), aJob(12, "sum", drover.JobCancelled)}}
	f.jobs[1].After, f.jobs[1].Submitted = []string{"count"}, f.jobs[0].Submitted
	f.jobs[2].After, f.jobs[2].Submitted = []string{"count"}, f.jobs[0].Submitted.Add(time.Hour)
	f.serve(t)
	r := droverCommand(t, "retry", "10")
	r.want(t, 0, "job 10 (count): queued\n", "")
	if want := "dependent job 11 (sum) stays cancelled; to requeue it: drover retry 11\n"; r.err != want {
		t.Errorf("it prints %q, not %q", r.err, want)
	}
	f.jobs[0].State = drover.JobFailed
	if r := droverCommand(t, "retry", "10", "11"); r.err != "" {
		t.Errorf("it prints %q about a job that is requeued too", r.err)
	}
}

func TestACommandWhoseOutputCannotBeWrittenFails(t *testing.T) {
	(&fakeController{jobs: []drover.Job{aJob(1, "a", drover.JobSucceeded)}}).serve(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	for _, args := range [][]string{{"config", "example"}, {"--help"}, {"jobs", "1"}, {"doctor"}, {"plan", "--", "true"}} {
		if code := run(t.Context(), underTest(), args, full, full); code != exitUsage {
			t.Errorf("%s ends with exit code %d", args, code)
		}
	}
}

func TestPrintDiff(t *testing.T) {
	var out, err bytes.Buffer
	a := &app{out: &out, err: &err}
	diff := drover.ConfigDiff{Fates: []drover.Fate{{Kind: "replace", Count: 2}}}
	if failed := a.printDiff(diff); failed != nil || err.Len() > 0 || !strings.HasPrefix(out.String(), "WOULD") {
		t.Errorf("without changed keys, it prints %q and %q (%v)", out.String(), err.String(), failed)
	}
}

func TestHelpCommand(t *testing.T) {
	droverCommand(t, "help", "nosuch").want(t, 2, "", "there is no command nosuch")
	droverCommand(t, "help", "config", "check").want(t, 0, "drover config check [FILE]", "")
	droverCommand(t, "help").want(t, 0, "The queue:", "")
	t.Setenv("DROVER_CONFIG", "/elsewhere/drover.yaml")
	if r := droverCommand(t, "jobs", "--help"); r.code != 0 || strings.Contains(r.out, "elsewhere") {
		t.Errorf("the help shows one user's configuration:\n%s", r.out)
	}
}

func TestCommandsWithOnlyAnExitCodeRefuseOutputFormats(t *testing.T) {
	(&fakeController{}).serve(t)
	droverCommand(t, "wait", "-o", "json").want(t, 2, "", "-o does not apply to drover wait: its only result is the exit code")
	droverCommand(t, "open", "-o", "json").want(t, 2, "", "-o does not apply to drover open: it prints a link")
	droverCommand(t, "config", "check", "-o", "yaml").want(t, 2, "", "-o does not apply to drover config check: its only result is the exit code")
}

func TestSubmitCommand(t *testing.T) {
	t.Run("uploads the missing inputs and prints the jobs' ids", func(t *testing.T) {
		f := &fakeController{inputs: map[string]string{}}
		f.serve(t)
		input := filepath.Join(t.TempDir(), "greeting.txt")
		if err := os.WriteFile(input, []byte("hello"), 0o600); err != nil {
			t.Fatal(err)
		}
		r := droverCommand(t, "submit", "--input", input, "--label", "project=demo", "--priority", "5", "--array", "3", "--name", "hello", "--", "cat", "greeting.txt")
		r.want(t, 0, "submitted batch hello: job 17 hello (3)\n", "")
		job := f.submitted[0].Batch.Jobs[0]
		if job.Labels["project"] != "demo" || job.Priority != 5 || len(job.Files) != 1 || f.inputs[job.Files[0].Hash] != "hello" {
			t.Errorf("%+v, %v", job, f.inputs)
		}
		droverCommand(t, "submit", "-o", "name", "--input", input, "--", "cat").want(t, 0, "17\n", "")
		if f.asked["PutInput"] != 1 {
			t.Errorf("%d uploads", f.asked["PutInput"])
		}
	})
	t.Run("--gang makes elements of the array start together", func(t *testing.T) {
		f := &fakeController{}
		f.serve(t)
		droverCommand(t, "submit", "--array", "1-8", "--gang", "4", "--", "true").want(t, 0, "job 17 true (8)\n", "")
		if job := f.submitted[0].Batch.Jobs[0]; job.Gang != 4 {
			t.Errorf("%+v", job)
		}
		droverCommand(t, "submit", "--array", "6", "--gang", "4", "--", "true").want(t, 2, "", "use --array 0-7, or another --gang")
	})
	t.Run("retries with the same key if it gets no answer", func(t *testing.T) {
		f := &fakeController{faults: []error{drover.Errorf(drover.KindTransient, "restarting")}}
		f.serve(t)
		droverCommand(t, "submit", "--", "true").want(t, 0, "job 17 true", "")
		if len(f.submitted) != 2 || f.submitted[0].Key == "" || f.submitted[0].Key != f.submitted[1].Key {
			t.Errorf("%+v", f.submitted)
		}
	})
	t.Run("--follow prints only the job's output, and fails if the job does", func(t *testing.T) {
		f := &fakeController{jobs: []drover.Job{aJob(17, "sh", drover.JobFailed)}, logs: map[drover.Stream][]string{drover.Stdout: {"data\n"}, drover.Stderr: {"oh\n"}}}
		f.serve(t)
		r := droverCommand(t, "submit", "--follow", "--", "sh", "-c", "exit 1")
		if r.code != 1 || r.out != "data\n" || !strings.Contains(r.err, "oh\n") || !strings.Contains(r.err, "job 17 (sh) failed") {
			t.Errorf("%+v", r)
		}
		droverCommand(t, "submit", "--follow", "--array", "2", "--", "true").want(t, 2, "", "--follow shows the output of one job")
	})
}

func TestInstanceCommands(t *testing.T) {
	created := time.Now().Add(-time.Hour)
	in := drover.Instance{
		ID: 3, Name: "lab-x", Cloud: "here", Type: "small", Zone: "z1", Market: drover.Spot, State: drover.InstanceRunning, Idle: drover.IdleHold,
		Jobs: []drover.JobID{{Number: 1, Index: -1}}, Created: &created, Price: 0.1, Cost: 0.1, ProviderID: "i-1",
	}
	t.Run("are listed", func(t *testing.T) {
		f := &fakeController{instances: []drover.Instance{in}}
		f.serve(t)
		droverCommand(t, "instances").want(t, 0, " 3  lab-x  small  z1    spot    running hold  1     1h0m  $0.1000  $0.1000\n", "")
		droverCommand(t, "instances", "-o", "wide").want(t, 0, "i-1", "")
		droverCommand(t, "instances", "3").want(t, 0, "provider id:    i-1\n", "")
		droverCommand(t, "instances", "3", "--cloud", "here").want(t, 2, "", "an INSTANCE and --cloud cannot be used together")
	})
	t.Run("show the last lines of the runner's log, which cannot control the terminal", func(t *testing.T) {
		dead := in
		dead.RunnerLog = []string{"daemon 7 begins", "\x1b]0;title\x07the disk is full"}
		(&fakeController{instances: []drover.Instance{dead}}).serve(t)
		r := droverCommand(t, "instances", "3")
		r.want(t, 0, "\n\nThe last lines of its runner's log:\n    daemon 7 begins\n", "")
		if strings.ContainsAny(r.out, "\x1b\x07") {
			t.Errorf("%q", r.out)
		}
	})
	t.Run("accept each verb, with a reason", func(t *testing.T) {
		f := &fakeController{instances: []drover.Instance{in}}
		f.serve(t)
		for _, verb := range drover.Verbs() {
			droverCommand(t, string(verb), "lab-x", "--reason", "why").want(t, 0, "lab-x "+toldTo[verb]+" (running, 1 job)\n", "")
		}
		if want := []string{"drain lab-x why", "hold lab-x why", "release lab-x why", "kill lab-x why"}; !slices.Equal(f.told, want) {
			t.Errorf("%q", f.told)
		}
		droverCommand(t, "kill").want(t, 2, "", "drover kill needs an INSTANCE")
	})
}

// brokenWatch breaks the stream after some events, the last of which reports missed ones. It records where it was asked
// to continue.
type brokenWatch struct {
	drover.Watch
	asked []string
}

func (w *brokenWatch) Events(_ context.Context, f drover.EventFilter) iter.Seq2[drover.Event, error] {
	return func(yield func(drover.Event, error) bool) {
		if w.asked = append(w.asked, f.After); len(w.asked) == 1 {
			_ = yield(drover.Event{ID: "1-1", Text: "one"}, nil) && yield(drover.Event{Missed: 5}, nil) &&
				yield(drover.Event{}, drover.Errorf(drover.KindUnreachable, "broken"))
		}
	}
}

// covers K8
func TestOtherCommands(t *testing.T) {
	t.Run("each event is one line, or one object for programs", func(t *testing.T) {
		f := &fakeController{events: []drover.Event{
			{ID: "1", Time: drover.TimeOf(time.Now()), Level: "warn", Text: "job failed", Job: &drover.JobID{Number: 7, Index: -1}, Instance: "lab-x"},
			{ID: "2", Missed: 5, Text: "events that are no longer available: 5"},
		}}
		f.serve(t)
		r := droverCommand(t, "events", "--recent")
		r.want(t, 0, "  warn: job failed (job 7, lab-x)\n… events that are no longer available: 5\n", "")
		r = droverCommand(t, "events", "--recent", "-o", "json")
		if lines := strings.Split(strings.TrimSpace(r.out), "\n"); len(lines) != 2 || !json.Valid([]byte(lines[1])) {
			t.Errorf("%s", r.out)
		}
	})
	t.Run("when the connection breaks, events continue after the last one with an id", func(t *testing.T) {
		var out bytes.Buffer
		a := &app{out: &out, err: io.Discard, answered: new(atomic.Bool), toldAway: new(atomic.Bool), patience: time.Minute, patient: true}
		w := &brokenWatch{}
		if err := a.events(t.Context(), w, eventsFlags{level: "info", recent: true}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"", "1-1"}, w.asked); diff != "" || strings.Count(out.String(), "one\n") != 1 {
			t.Errorf("%s (-want +got)\n%s", out.String(), diff)
		}
	})
	t.Run("offers show what is blocked and left out", func(t *testing.T) {
		until := drover.TimeOf(time.Now().Add(time.Hour))
		f := &fakeController{offers: []drover.Offer{{Cloud: "here", Zone: "z1", Type: "small", Market: drover.Spot, VCPUs: 2, Memory: 2 * drover.GiB, Arch: "amd64", Price: 0.04, Blocked: &drover.Blocked{Reason: "no capacity", Until: until}}}}
		f.serve(t)
		droverCommand(t, "offers").want(t, 0, "here   z1    small  spot        2     2Gi     0  amd64  $0.0400  until ", "")
		f.offers[0].LeftOut = "types.exclude matches it"
		droverCommand(t, "offers", "--all").want(t, 0, "$0.0400  left out: types.exclude matches it", "")
		droverCommand(t, "offers", "--memory", "much").want(t, 2, "", "--memory")
	})
	t.Run("only the token goes to stdout", func(t *testing.T) {
		(&fakeController{}).serve(t)
		r := droverCommand(t, "token", "create", "--user", "ada", "--role", "submit", "--expires", "30d")
		if r.out != "the-secret\n" || !strings.Contains(r.err, "token t1 for ada, role submit, expires ") {
			t.Errorf("%+v", r)
		}
		droverCommand(t, "token", "create").want(t, 2, "", "needs --user NAME and --role")
		droverCommand(t, "token", "create", "--user", "a", "--role", "view", "--expires", "soon").want(t, 2, "", "--expires soon")
		droverCommand(t, "token", "create", "--user", "a", "--role", "view", "--expires", "-200000000000000d").want(t, 2, "", "--expires -2")
	})
	t.Run("doctor ends silently when it is interrupted", func(t *testing.T) {
		noController(t)
		t.Setenv("DROVER_SERVER", "http://127.0.0.1:1")
		t.Setenv("DROVER_TOKEN", "good")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if r := droverUntil(t, ctx, "doctor", "--wait", "1m"); r.code != exitInterrupted || strings.Contains(r.out, "controller") {
			t.Errorf("%+v", r)
		}
	})
	t.Run("doctor reports faults", func(t *testing.T) {
		(&fakeController{}).serve(t)
		droverCommand(t, "doctor").want(t, 0, "ok     controller     fleet lab, version 1.2.3", "")
		droverCommand(t, "doctor", "--dump").want(t, 0, `{"jobs":[]}`, "")
		t.Setenv("DROVER_TOKEN", "bad")
		droverCommand(t, "doctor").want(t, 1, "fault  controller     ", "")
	})
	t.Run("doctor finds a controller that answers but is not ready", func(t *testing.T) {
		(&fakeController{notReady: errors.New("the disk is full")}).serve(t)
		droverCommand(t, "doctor").want(t, 1, "fault  controller     the controller answers, but /readyz reports: the controller is not ready\n", "")
	})
	t.Run("doctor reports unreadable records", func(t *testing.T) {
		(&fakeController{aside: []string{"attempt 0 of job 7: no number"}}).serve(t)
		droverCommand(t, "doctor").want(t, 1, "fault  controller     1 record could not be read, and the affected jobs are held: attempt 0 of job 7: no number", "")
	})
	t.Run("doctor finds a cloud that cannot be used", func(t *testing.T) {
		(&fakeController{}).serve(t)
		for _, cloud := range []struct{ keys, list, want string }{
			{"    types: [{name: small, vcpus: 2, memory: 4Gi, disk: 20Gi, price: 0.05}]", `"error": {"kind": "authentication", "message": "no permission"}`, "the instances of cloud lab cannot be listed: list: no permission"},
			{"", `"result": {"instances": []}`, "the configured clouds offer no instance type that the configuration allows"},
		} {
			folder := t.TempDir()
			program := "#!/bin/sh\ncase $1 in\nlist) echo '{" + cloud.list + "}' ;;\n*) echo '{\"result\": {\"calls\": [\"offerings\"], \"offerings\": []}}' ;;\nesac\n"
			config := "version: 1\nclouds:\n  lab:\n    driver: external\n    command: [./cloud.sh]\n" + cloud.keys + "\n"
			file := filepath.Join(folder, "drover.yaml")
			if err := errors.Join(os.WriteFile(filepath.Join(folder, "cloud.sh"), []byte(program), 0o700), os.WriteFile(file, []byte(config), 0o600)); err != nil {
				t.Fatal(err)
			}
			droverCommand(t, "doctor", "-c", file).want(t, 1, "fault  clouds         "+cloud.want, "")
		}
	})
	t.Run("doctor reports the same faults as config check", func(t *testing.T) {
		(&fakeController{}).serve(t)
		file := filepath.Join(t.TempDir(), "drover.yaml")
		text := "version: 1\nclouds:\n  lab: {driver: external}\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		droverCommand(t, "doctor", "-c", file).want(t, 1, "fault  configuration  "+file+":3:8: command is missing", "")
	})
	t.Run("doctor reports a configuration's faults once, each on its own line", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "drover.yaml")
		text := "version: 1\nstate: state.db\nclouds: {}\nfleets: lab\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r := droverCommand(t, "doctor", "-c", file)
		r.want(t, 1, "\n                      "+file+":4:1: unknown key", "")
		if n := strings.Count(r.out, ":2:8: "); n != 1 || strings.Contains(r.out, "controller") {
			t.Errorf("%s", r.out)
		}
	})
	t.Run("gc refuses the controller of another fleet", func(t *testing.T) {
		a := &app{connect: func(context.Context) (drover.Service, error) { return &fakeController{}, nil }}
		if _, err := a.askController(t.Context(), "other"); drover.KindOf(err) != drover.KindConflict {
			t.Errorf("the error is %v", err)
		}
	})
	t.Run("a command without names refuses -o name", func(t *testing.T) {
		droverCommand(t, "logs", "-o", "name", "1").want(t, 2, "", "drover logs does not support -o name")
	})
	t.Run("completion offers what the controller knows, and nothing if it is gone", func(t *testing.T) {
		f := &fakeController{jobs: []drover.Job{aJob(17, "greet", drover.JobRunning)}, instances: []drover.Instance{{Name: "lab-x", Type: "small", State: drover.InstanceIdle}}}
		server := f.serve(t)
		droverCommand(t, "__complete", "cancel", "").want(t, 0, "17\tgreet, running\n", "")
		droverCommand(t, "__complete", "drain", "").want(t, 0, "lab-x\tsmall, idle\n", "")
		droverCommand(t, "__complete", "wait", "--batch", "").want(t, 0, "hello\n", "")
		server.Close()
		if r := droverCommand(t, "__complete", "cancel", ""); r.out != ":4\n" || strings.Contains(r.err, "refused") {
			t.Errorf("%+v", r)
		}
	})
}
