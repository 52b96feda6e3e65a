package store

import (
	"slices"
	"strings"
	"testing"

	"drover"
	"drover/internal/engine"
)

// over is hello at its end: of the array, element 1 succeeded at its second attempt, element 2 failed, element 3 was
// cancelled on its own during its first attempt, and the rest were cancelled together. The other two jobs were
// cancelled.
func over(t testing.TB, s *Store) {
	halfDone(t, s)
	enough := drover.Reason{Code: drover.ReasonCancelled, Text: "enough"}
	lost := attempt(2, 3, 1)
	lost.Instance, lost.State, lost.Ended = 2, drover.AttemptCancelled, 2*hour
	code := 3
	commit(t, s,
		engine.Write{Attempt: &engine.AttemptRow{Attempt: lost, Cost: drover.Dollar}},
		engine.Write{Element: &engine.ElementRow{Job: 2, Element: engine.Element{Index: 2, Number: 4, Lost: 2, Retried: 1}, State: drover.JobFailed, Code: &code, Ended: 3 * hour}},
		engine.Write{Element: &engine.ElementRow{Job: 2, Element: engine.Element{Index: 3, Number: 1}, State: drover.JobCancelled, Reason: enough, Ended: 3 * hour}},
		engine.Write{Ended: &engine.JobEnd{Number: 2, State: drover.JobFailed, At: 3 * hour, Succeeded: 1, Failed: 1, Cancelled: 18,
			Reason: drover.Reason{Code: drover.ReasonExit, Text: "1 of 20 failed"}}},
		engine.Write{Ended: &engine.JobEnd{Number: 1, State: drover.JobCancelled, At: 3 * hour, Cancelled: 1, Reason: enough}},
	)
}

func again(t *testing.T, s *Store, id string) engine.Job {
	t.Helper()
	job, err := drover.ParseJobID(id)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Retry(t.Context(), job, drover.UserLimits{}); err != nil {
		t.Fatal(err)
	}
	pending, err := s.Pending(t.Context())
	if err != nil || len(pending) == 0 {
		t.Fatalf("pending %v, error %v", pending, err)
	}
	return pending[len(pending)-1]
}

// statesOf counts the elements of a job by their listed state.
func statesOf(t *testing.T, s *Store, job int64) map[drover.JobState]int {
	t.Helper()
	jobs, err := s.Jobs(t.Context(), 4*hour, drover.JobFilter{Job: job, Elements: true})
	if err != nil {
		t.Fatal(err)
	}
	counts := map[drover.JobState]int{drover.JobFailed: 0}
	for _, j := range jobs {
		counts[j.State]++
	}
	return counts
}

func retrySuite(t *testing.T, openers func(testing.TB) opener) {
	t.Run("redoes unsuccessful jobs with their new specification, and reopens the fleet", func(t *testing.T) {
		open := openers(t)
		s := open(t)
		over(t, s)
		commit(t, s, engine.Write{Closing: true})
		before, err := s.Job(t.Context(), 4*hour, drover.JobID{Number: 2, Index: -1})
		if err != nil {
			t.Fatal(err)
		}
		n, err := s.Redo(t.Context(), []drover.JobSpec{{Name: before.Name, Command: []string{"better"}, Priority: 9, Attempts: 3}, {Name: "another"}})
		if err != nil || n != 3 {
			t.Fatalf("%d jobs, error %v; want 3", n, err)
		}
		after, err := s.Job(t.Context(), 4*hour, drover.JobID{Number: 2, Index: -1})
		if err != nil || after.Command[0] != "better" || after.Priority != 9 || after.Counts[drover.JobQueued] != 19 || after.Counts[drover.JobSucceeded] != 1 {
			t.Errorf("job %+v, error %v", after, err)
		}
		equal(t, "the unchanged part", []any{after.Array, after.Labels, after.After}, []any{before.Array, before.Labels, before.After})
		if state := begun(t, open(t)); state.Closing {
			t.Error("the fleet is still closing")
		}
	})
	t.Run("requeues a job with a batch's new specification, except its labels", func(t *testing.T) {
		s := openers(t)(t)
		over(t, s)
		whole := drover.JobID{Number: 2, Index: -1}
		before, _, err := s.Spec(t.Context(), 2)
		if err != nil {
			t.Fatal(err)
		}
		better := before
		better.Command, better.Resources.CPU, better.Labels = []string{"better"}, 3000, map[string]string{"project": "another"}
		for says, change := range map[string]func(*drover.JobSpec){
			"no job":                func(s *drover.JobSpec) { s.Name = "another" },
			"a different array":     func(s *drover.JobSpec) { s.Array.Last++ },
			"a different gang":      func(s *drover.JobSpec) { s.Gang = 2 },
			"a different after":     func(s *drover.JobSpec) { s.After = append(s.After, "more") },
			"has not been uploaded": func(s *drover.JobSpec) { s.Files = []drover.File{{Path: "x", Hash: strings.Repeat("0", 64)}} },
		} {
			wrong := better
			change(&wrong)
			err := s.RetryWith(t.Context(), whole, drover.Batch{Jobs: []drover.JobSpec{wrong}}, Terms{Sender: "eve"})
			if drover.KindOf(err) != drover.KindInvalid || !strings.Contains(err.Error(), says) {
				t.Errorf("error %v, want %q", err, says)
			}
		}
		if err := s.RetryWith(t.Context(), whole, drover.Batch{Jobs: []drover.JobSpec{{Name: "x"}, better}}, Terms{}); err != nil {
			t.Fatal(err)
		}
		after, _, err := s.Spec(t.Context(), 2)
		want := better
		want.Labels = before.Labels
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "specification", after, want)
		pending, err := s.Pending(t.Context())
		if err != nil || len(pending) != 1 || pending[0].Shape.Need.CPU != 3000 || pending[0].Queued.Count() != 19 {
			t.Errorf("pending %+v, error %v", pending, err)
		}
		if err := s.RetryWith(t.Context(), whole, drover.Batch{Jobs: []drover.JobSpec{better}}, Terms{}); drover.KindOf(err) != drover.KindConflict {
			t.Errorf("a waiting job: error %v, want a conflict", err)
		}
	})
	t.Run("requeues everything that failed or was cancelled", func(t *testing.T) {
		open := openers(t)
		s := open(t)
		over(t, s)
		job := again(t, s, "2")
		equal(t, "waits", job.Queued, engine.Ranges{{First: 2, Last: 20}})
		equal(t, "tried", job.Tried, []engine.Element{{Index: 2, Number: 4}, {Index: 3, Number: 1}})
		equal(t, "counts", []int64{int64(job.Succeeded), int64(job.Failed), int64(job.Cancelled), job.Again}, []int64{1, 0, 0, 1})
		equal(t, "elements", statesOf(t, s, 2), map[drover.JobState]int{drover.JobSucceeded: 1, drover.JobFailed: 0, drover.JobQueued: 19})
		whole, err := s.Job(t.Context(), 4*hour, drover.JobID{Number: 2, Index: -1})
		if err != nil || whole.State != drover.JobQueued || whole.Ended != nil || whole.Reason != nil || whole.Counts[drover.JobQueued] != 19 {
			t.Errorf("job %+v, error %v; want it queued as if it had never ended", whole, err)
		}
		if state := begun(t, open(t)); len(state.Jobs) != 0 || state.LastAgain != 0 || state.LastJob != 3 {
			t.Errorf("state %+v, want none of it taken", state)
		}
		commit(t, s, engine.Write{Job: &job})
		state := begun(t, open(t))
		if state.LastAgain != 1 || state.LastJob != 3 {
			t.Errorf("state %+v, want it taken", state)
		}
		equal(t, "taken", state.Jobs, []engine.Job{job})
	})

	t.Run("requeues one element and leaves the others as they ended", func(t *testing.T) {
		for id, want := range map[string]struct{ failed, cancelled int }{"2.2": {0, 18}, "2.3": {1, 17}, "2.7": {1, 17}} {
			s := openers(t)(t)
			over(t, s)
			job := again(t, s, id)
			index := job.Queued[0].First
			if job.Succeeded != 1 || job.Failed != want.failed || job.Cancelled != want.cancelled || job.Queued.Count() != 1 {
				t.Errorf("%s: job %+v", id, job)
			}
			if len(job.Tried) != 1 || job.Tried[0].Index != index {
				t.Errorf("%s: tried %+v, want the element, whose row must end with it", id, job.Tried)
			}
			equal(t, id, statesOf(t, s, 2), map[drover.JobState]int{
				drover.JobSucceeded: 1, drover.JobFailed: want.failed, drover.JobCancelled: want.cancelled, drover.JobQueued: 1,
			})
			waiting, err := s.Jobs(t.Context(), 4*hour, drover.JobFilter{Job: 2, Elements: true, States: states(drover.JobQueued)})
			if err != nil || len(waiting) != 1 || waiting[0].ID.String() != id || waiting[0].ExitCode != nil {
				t.Errorf("%s: waiting %+v, error %v", id, waiting, err)
			}
		}
	})

	t.Run("refuses what cannot be retried", func(t *testing.T) {
		s := openers(t)(t)
		over(t, s)
		for _, c := range []struct {
			id   drover.JobID
			kind drover.ErrorKind
			says string
		}{
			{drover.JobID{Number: 9, Index: -1}, drover.KindNotFound, "there is no job 9"},
			{drover.JobID{Number: 2, Index: 0}, drover.KindNotFound, "there is no job 2.0"},
			{drover.JobID{Number: 3, Index: 0}, drover.KindNotFound, "there is no job 3.0"},
			{drover.JobID{Number: 2, Index: 1}, drover.KindConflict, "job 2.1 has succeeded"},
			{drover.JobID{Number: 1, Index: -1}, drover.KindConflict, "greet (job 2)"},
		} {
			if err := s.Retry(t.Context(), c.id, drover.UserLimits{}); drover.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.says) {
				t.Errorf("job %v: error %v, want %s: %s", c.id, err, c.kind, c.says)
			}
		}
		again(t, s, "2.2")
		if err := s.Retry(t.Context(), drover.JobID{Number: 2, Index: 3}, drover.UserLimits{}); drover.KindOf(err) != drover.KindConflict {
			t.Errorf("error %v, want a conflict, since the job is no longer final", err)
		}
		if state := begun(t, s); state.LastAgain != 0 {
			t.Errorf("last %d, want 0", state.LastAgain)
		}
	})

	t.Run("waits for the jobs that it must run after until they are done", func(t *testing.T) {
		s := openers(t)(t)
		over(t, s)
		greet := again(t, s, "2")
		last := again(t, s, "1")
		equal(t, "after", last.After, []int64{2})
		for _, c := range []struct {
			state drover.JobState
			left  []int64
		}{{drover.JobFailed, []int64{2}}, {drover.JobSucceeded, nil}} {
			commit(t, s, engine.Write{Job: &greet}, engine.Write{Ended: &engine.JobEnd{Number: 2, State: c.state}})
			pending, err := s.Pending(t.Context())
			if err != nil || len(pending) != 1 || !slices.Equal(pending[0].After, c.left) {
				t.Errorf("it %s: pending %+v, error %v; want one that must run after %v", c.state, pending, err, c.left)
			}
		}
	})

	t.Run("keeps the job's last priority", func(t *testing.T) {
		s := openers(t)(t)
		jobs := submitted(t, s)
		jobs[2].Priority = 9
		commit(t, s, engine.Write{Job: &jobs[2]})
		if job, err := s.Job(t.Context(), hour, drover.JobID{Number: 3, Index: -1}); err != nil || job.Priority != 9 {
			t.Errorf("job %+v, error %v; want priority 9", job, err)
		}
		commit(t, s, engine.Write{Ended: &engine.JobEnd{Number: 3, State: drover.JobCancelled, Cancelled: 1}})
		if job := again(t, s, "3"); job.Priority != 9 {
			t.Errorf("priority %d, want 9", job.Priority)
		}
	})
}

func lifeSuite(t *testing.T, openers func(testing.TB) opener) {
	s := openers(t)(t)
	over(t, s)
	lives := func(t *testing.T, number int64, index int, state drover.JobState, want int64) {
		t.Helper()
		job, life, err := s.JobLife(t.Context(), 4*hour, drover.JobID{Number: number, Index: index})
		if err != nil || job.State != state || life != want {
			t.Errorf("job %d.%d is %s in life %d, error %v; want %s in life %d", number, index, job.State, life, err, state, want)
		}
	}
	t.Run("change whenever a job is requeued", func(t *testing.T) {
		lives(t, 2, 2, drover.JobFailed, 0)
		for life := int64(1); life <= 2; life++ {
			job := again(t, s, "2")
			if job.Again != life {
				t.Errorf("the engine gets life %d, want %d", job.Again, life)
			}
			lives(t, 2, -1, drover.JobQueued, life)
			lives(t, 2, 2, drover.JobQueued, life)
			commit(t, s, engine.Write{Job: &job})
			lives(t, 2, -1, drover.JobQueued, life)
			commit(t, s, engine.Write{Ended: &engine.JobEnd{Number: 2, State: drover.JobFailed, Succeeded: 1, Failed: 19}})
			lives(t, 2, -1, drover.JobFailed, life)
		}
		lives(t, 3, -1, drover.JobCancelled, 0)
	})
	t.Run("exist only for existing jobs", func(t *testing.T) {
		if _, _, err := s.JobLife(t.Context(), hour, drover.JobID{Number: 99, Index: -1}); drover.KindOf(err) != drover.KindNotFound {
			t.Errorf("error %v, want not found", err)
		}
	})
}

func keySuite(t *testing.T, openers func(testing.TB) opener) {
	s := openers(t)(t)
	submission := func(user, key, batch string) drover.Submission {
		b := hello()
		b.User, b.Name = user, batch
		return drover.Submission{Batch: b, Key: key}
	}
	for _, c := range []struct {
		does             string
		user, key, batch string
		want             []int64
		kind             drover.ErrorKind
	}{
		{"a new key is accepted", "ada", "k", "hello", []int64{1, 2, 3}, ""},
		{"the same batch gets the same numbers", "ada", "k", "hello", []int64{1, 2, 3}, ""},
		{"another batch is a conflict", "ada", "k", "other", nil, drover.KindConflict},
		{"another user's keys are their own", "bob", "k", "other", []int64{4, 5, 6}, ""},
		{"without a key every batch is new", "ada", "", "hello", []int64{7, 8, 9}, ""},
		{"too long a key is refused", "ada", strings.Repeat("k", 300), "hello", nil, drover.KindInvalid},
	} {
		t.Run(c.does, func(t *testing.T) {
			numbers, err := s.Submit(t.Context(), submission(c.user, c.key, c.batch), Terms{})
			if err != nil && drover.KindOf(err) != c.kind || err == nil && c.kind != "" {
				t.Fatalf("error %v, want %q", err, c.kind)
			}
			equal(t, "numbers", numbers, c.want)
		})
	}

	for _, c := range []struct {
		does             string
		user, key, batch string
		want             []int64
		kind             drover.ErrorKind
	}{
		{"an earlier submission is done, whatever else changed", "ada", "k", "hello", []int64{1, 2, 3}, ""},
		{"a new one is not", "ada", "another", "hello", nil, ""},
		{"nor is one without a key", "ada", "", "hello", nil, ""},
		{"nor is one from another user", "eve", "k", "hello", nil, ""},
		{"another batch under a key is a conflict before anything else", "ada", "k", "other", nil, drover.KindConflict},
	} {
		t.Run(c.does, func(t *testing.T) {
			numbers, done, err := s.Submitted(t.Context(), submission(c.user, c.key, c.batch))
			if err != nil && drover.KindOf(err) != c.kind || err == nil && c.kind != "" || done != (c.want != nil) {
				t.Fatalf("done %v, error %v; want %v, %q", done, err, c.want != nil, c.kind)
			}
			equal(t, "numbers", numbers, c.want)
		})
	}

	t.Run("a key is forgotten after a day", func(t *testing.T) {
		if _, err := s.write.Exec(`UPDATE keys SET submitted = submitted - ?`, 25*hour); err != nil {
			t.Fatal(err)
		}
		if _, done, err := s.Submitted(t.Context(), submission("ada", "k", "other")); err != nil || done {
			t.Errorf("done %v, error %v", done, err)
		}
		numbers, err := s.Submit(t.Context(), submission("ada", "k", "other"), Terms{})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "numbers", numbers, []int64{10, 11, 12})
	})
}
