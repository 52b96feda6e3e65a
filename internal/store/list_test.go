package store

import (
	"fmt"
	"testing"
	"time"

	"drover"
	"drover/internal/engine"
)

const hour = drover.Time(time.Hour)

// halfDone is hello with element 1 of the array succeeded at the second attempt, element 2 failed, element 3 running
// and job 3 cancelled before its first attempt. Instance 1 is gone and instance 2 runs.
func halfDone(t testing.TB, s *Store) {
	jobs := submitted(t, s)
	greet := jobs[1]
	greet.Queued, greet.Succeeded, greet.Failed = engine.Ranges{{First: 4, Last: 20}}, 1, 1
	code := func(n int) *int { return &n }
	element := func(index, number int, state drover.JobState, c *int) engine.Write {
		row := engine.ElementRow{Job: 2, Element: engine.Element{Index: index, Number: number}, State: state, Code: c}
		if state.Final() {
			row.Ended = 2 * hour
		}
		return engine.Write{Element: &row}
	}
	try := func(index, number int, instance int64, state drover.AttemptState, cost drover.Money) engine.Write {
		a := attempt(2, index, number)
		a.Instance, a.State, a.Started = instance, state, hour
		if !state.Live() {
			a.Ended = 2 * hour
			a.Exit = &drover.Exit{CPU: 3 * time.Second, MaxRSS: drover.MiB}
		}
		return engine.Write{Attempt: &engine.AttemptRow{Attempt: a, Cost: cost}}
	}
	rent := func(id int64, state drover.InstanceState) engine.Write {
		return engine.Write{Instance: &engine.Instance{
			ID: id, Name: fmt.Sprint("lab-", id), Cloud: "here", Market: drover.Spot, State: state, Price: drover.Dollar,
			Resources: drover.Resources{CPU: 4000}, Created: hour, Idle: drover.IdleRun,
		}}
	}
	last := drover.Reason{Code: drover.ReasonCancelled, Text: "enough"}
	commit(t, s,
		engine.Write{Job: &greet}, rent(1, drover.InstanceRunning), rent(2, drover.InstanceRunning),
		engine.Write{Instance: &engine.Instance{ID: 3, Name: "lab-3", State: drover.InstanceCreating}},
		element(1, 2, drover.JobSucceeded, code(0)), element(2, 1, drover.JobFailed, code(3)), element(3, 1, drover.JobRunning, nil),
		try(1, 1, 1, drover.AttemptLost, drover.Dollar/4), try(1, 2, 2, drover.AttemptSucceeded, drover.Dollar/2),
		try(2, 1, 2, drover.AttemptFailed, drover.Dollar/4), try(3, 1, 2, drover.AttemptRunning, 0),
		engine.Write{Gone: &engine.InstanceEnd{ID: 1, At: 2 * hour, Cost: drover.Dollar, Reason: drover.Reason{Code: drover.ReasonSilent}}},
		engine.Write{Element: &engine.ElementRow{Job: 3, Element: engine.Element{Index: -1}, State: drover.JobCancelled, Reason: last, Ended: hour}},
		engine.Write{Ended: &engine.JobEnd{Number: 3, State: drover.JobCancelled, Reason: last, At: hour, Cancelled: 1}},
	)
}

func states(states ...drover.JobState) []drover.JobState { return states }

func ids(jobs []drover.Job) (ids []string) {
	for _, j := range jobs {
		ids = append(ids, j.ID.String())
	}
	return ids
}

func listSuite(t *testing.T, openers func(testing.TB) opener) {
	s := openers(t)(t)
	halfDone(t, s)

	t.Run("filters jobs", func(t *testing.T) {
		for name, c := range map[string]struct {
			filter drover.JobFilter
			want   []string
		}{
			"arrays as a whole":       {drover.JobFilter{}, []string{"1", "2", "3"}},
			"of a batch":              {drover.JobFilter{Batch: "other"}, nil},
			"of a user":               {drover.JobFilter{User: "ada", Limit: 2}, []string{"1", "2"}},
			"with labels":             {drover.JobFilter{Labels: map[string]string{"of": "greet", "is": "a"}}, []string{"2"}},
			"with other labels":       {drover.JobFilter{Labels: map[string]string{"of": "greet", "is": "b"}}, nil},
			"of one number":           {drover.JobFilter{Job: 3}, []string{"3"}},
			"tried":                   {drover.JobFilter{Tried: true}, []string{"2"}},
			"in some states":          {drover.JobFilter{States: states(drover.JobRunning, drover.JobCancelled)}, []string{"2", "3"}},
			"in an unknown state":     {drover.JobFilter{States: states("odd"), Elements: true}, nil},
			"after one":               {drover.JobFilter{After: drover.JobID{Number: 2, Index: -1}}, []string{"3"}},
			"elements":                {drover.JobFilter{Elements: true, Limit: 6}, []string{"1", "2.1", "2.2", "2.3", "2.4", "2.5"}},
			"elements tried":          {drover.JobFilter{Elements: true, Tried: true}, []string{"2.1", "2.2", "2.3"}},
			"elements in some states": {drover.JobFilter{Elements: true, States: states(drover.JobFailed, drover.JobCancelled)}, []string{"2.2", "3"}},
			"queued elements":         {drover.JobFilter{Elements: true, States: states(drover.JobQueued), Limit: 3}, []string{"1", "2.4", "2.5"}},
			"running and queued ones": {drover.JobFilter{Elements: true, States: states(drover.JobRunning, drover.JobQueued), Job: 2, Limit: 2}, []string{"2.3", "2.4"}},
			"elements from a cursor":  {drover.JobFilter{Elements: true, After: drover.JobID{Number: 2, Index: 18}}, []string{"2.19", "2.20", "3"}},
			"elements after an array": {drover.JobFilter{Elements: true, After: drover.JobID{Number: 2, Index: 20}}, []string{"3"}},
			"elements after a job":    {drover.JobFilter{Elements: true, After: drover.JobID{Number: 3, Index: -1}}, nil},
		} {
			jobs, err := s.Jobs(t.Context(), 4*hour, c.filter)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, name, ids(jobs), c.want)
		}
	})

	t.Run("a job or element has the memory with which it runs next", func(t *testing.T) {
		s := openers(t)(t)
		halfDone(t, s)
		for number, index := range map[int64]int{1: -1, 2: 1} {
			commit(t, s, engine.Write{Element: &engine.ElementRow{Job: number, Element: engine.Element{Index: index, Number: 1, Memory: 3 * drover.GiB}, State: drover.JobQueued}})
		}
		for id, want := range map[drover.JobID]drover.Bytes{{Number: 1, Index: -1}: 3 * drover.GiB, {Number: 2, Index: 1}: 3 * drover.GiB, {Number: 2, Index: 2}: drover.GiB, {Number: 2, Index: -1}: drover.GiB} {
			job, err := s.Job(t.Context(), 4*hour, id)
			if err != nil || job.Resources.Memory != want {
				t.Errorf("job %v needs %v of memory, not %v (%v)", id, job.Resources.Memory, want, err)
			}
		}
	})

	t.Run("a job has its attempts and their cost", func(t *testing.T) {
		jobs, err := s.Jobs(t.Context(), 4*hour, drover.JobFilter{Job: 2, Elements: true, Limit: 1})
		if err != nil || len(jobs) != 1 {
			t.Fatalf("jobs %v, error %v", jobs, err)
		}
		began, ended, index, code := hour.Std(), (2 * hour).Std(), 1, 0
		try := drover.Attempt{Number: 1, Instance: "lab-1", Market: drover.Spot, State: drover.AttemptLost, Started: began, Ended: &ended,
			MaxRSS: drover.MiB, CPUSeconds: 3, ExitCode: &code}
		again := try
		again.Number, again.Instance, again.State = 2, "lab-2", drover.AttemptSucceeded
		spec := hello().Jobs[1]
		equal(t, "job", jobs[0], drover.Job{
			ID: drover.JobID{Number: 2, Index: 1}, Name: "greet", Batch: "hello", User: "ada", State: drover.JobSucceeded, Priority: 1,
			ArrayIndex: &index, Labels: spec.Labels, Command: spec.Command, Resources: spec.Resources, Spot: spec.Spot, ExitCode: &code,
			Submitted: jobs[0].Submitted, Started: &began, Ended: &ended, Cost: 0.75, Attempts: []drover.Attempt{try, again},
		})
	})

	t.Run("one job can be read by its id, with or without attempts", func(t *testing.T) {
		for id, want := range map[drover.JobID]drover.JobState{
			{Number: 1, Index: -1}: drover.JobQueued, {Number: 2, Index: 2}: drover.JobFailed, {Number: 2, Index: 20}: drover.JobQueued,
		} {
			if job, err := s.Job(t.Context(), 4*hour, id); err != nil || job.State != want || job.ID != id {
				t.Errorf("job %v: %+v, error %v; want it %s", id, job, err, want)
			}
		}
		for _, id := range []drover.JobID{{Number: 1, Index: 0}, {Number: 2, Index: 0}, {Number: 2, Index: 21}, {Number: 9, Index: -1}} {
			if _, err := s.Job(t.Context(), 4*hour, id); drover.KindOf(err) != drover.KindNotFound {
				t.Errorf("job %v: error %v, want not found", id, err)
			}
		}
	})

	t.Run("failed elements are listed by state", func(t *testing.T) {
		failed, _, err := s.JobsPage(t.Context(), 4*hour, drover.JobFilter{States: []drover.JobState{drover.JobFailed}, Elements: true, Limit: 5})
		if err != nil || len(failed) != 1 || len(failed[0].Attempts) != 1 {
			t.Fatalf("failures %+v, error %v", failed, err)
		}
		equal(t, "failures", ids(failed), []string{"2.2"})
	})

	t.Run("counts include every element", func(t *testing.T) {
		counts, err := s.Counts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "counts", counts, map[drover.JobState]int{
			drover.JobQueued: 18, drover.JobRunning: 1, drover.JobSucceeded: 1, drover.JobFailed: 1, drover.JobCancelled: 1,
		})
	})

	t.Run("the summary includes costs up to now", func(t *testing.T) {
		sum, err := s.Summary(t.Context(), 4*hour)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "summary", sum, drover.Summary{
			Jobs: 22, Succeeded: 1, Failed: 1, Cancelled: 1, Attempts: 4, Instances: 2, InstanceSeconds: 4 * 3600, Cost: 4 * drover.Dollar,
			JobCost: drover.Dollar + 3*drover.Dollar/4, CPUSeconds: 9,
		})
	})

	t.Run("instances list their jobs", func(t *testing.T) {
		here, err := s.Instances(t.Context(), 4*hour, drover.InstanceFilter{})
		if err != nil || len(here) != 2 {
			t.Fatalf("instances %+v, error %v", here, err)
		}
		equal(t, "jobs", here[0].Jobs, []drover.JobID{{Number: 2, Index: 3}})
		equal(t, "cost", []float64{here[0].Cost, here[1].Cost}, []float64{3, 0})
		all, err := s.Instances(t.Context(), 4*hour, drover.InstanceFilter{Gone: true})
		if err != nil || len(all) != 3 || all[0].Gone == nil || all[0].State != drover.InstanceGone {
			t.Errorf("instances %+v, error %v; want the gone one too", all, err)
		}
	})

	t.Run("outputs are those of successful attempts", func(t *testing.T) {
		file := []drover.File{{Path: "a.png", Mode: 0o644, Size: 3, Hash: "abc"}}
		for _, id := range []string{"2.1/1", "2.1/2", "2.2/1"} {
			attempt, err := drover.ParseAttemptID(id)
			if err != nil {
				t.Fatal(err)
			}
			file[0].Path = id
			if err := s.PutOutputs(t.Context(), attempt, file, nil); err != nil {
				t.Fatal(err)
			}
		}
		outputs, err := s.Outputs(t.Context(), 2)
		if err != nil {
			t.Fatal(err)
		}
		file[0].Path = "2.1/2"
		equal(t, "outputs", outputs, map[int][]drover.File{1: file})
		var files string
		if err := s.read.QueryRowContext(t.Context(), `SELECT files FROM outputs WHERE job = 2 AND idx = 1 AND number = 1`).Scan(&files); err != nil || files != "[]" {
			t.Errorf("the replaced files of the first attempt are still listed: %s, %v", files, err)
		}
	})
}

func cancelSuite(t *testing.T, openers func(testing.TB) opener) {
	t.Run("elements without rows are cancelled once none waits", func(t *testing.T) {
		s := openers(t)(t)
		halfDone(t, s)
		commit(t, s, engine.Write{Ended: &engine.JobEnd{Number: 2, State: drover.JobFailed, At: 3 * hour, Succeeded: 1, Failed: 2, Cancelled: 17}})
		job, err := s.Job(t.Context(), 4*hour, drover.JobID{Number: 2, Index: 20})
		if err != nil || job.State != drover.JobCancelled || job.Reason.Code != drover.ReasonCancelled || !job.Ended.Equal((3 * hour).Std()) {
			t.Errorf("job %+v, error %v; want it cancelled after three hours", job, err)
		}
	})

	t.Run("elements without rows share their job's reason while others run", func(t *testing.T) {
		s := openers(t)(t)
		greet := submitted(t, s)[1]
		greet.Queued, greet.Cancelled = nil, greet.Array.Size()-1
		greet.Overdue = &engine.Verdict{Cause: drover.ReasonSchedule, Text: "out of capacity"}
		commit(t, s, engine.Write{Job: &greet})
		job, err := s.Job(t.Context(), 4*hour, drover.JobID{Number: 2, Index: 20})
		if err != nil || job.State != drover.JobCancelled {
			t.Errorf("job %+v, error %v; want it cancelled", job, err)
		}
		equal(t, "reason", job.Reason, new(greet.Overdue.Reason()))
		greet.Queued.Add(1) // lost with its instance
		commit(t, s, engine.Write{Job: &greet})
		if job, err = s.Job(t.Context(), 4*hour, drover.JobID{Number: 2, Index: -1}); err != nil || job.State != drover.JobQueued || job.Reason != nil {
			t.Errorf("job %+v, error %v; want it queued, without the reason of the cancelled elements", job, err)
		}
	})

	t.Run("elements without rows share their job's reason", func(t *testing.T) {
		s := openers(t)(t)
		submitted(t, s)
		why := drover.Reason{Code: drover.ReasonDependency, Text: "greet failed"}
		commit(t, s, engine.Write{Ended: &engine.JobEnd{Number: 1, State: drover.JobCancelled, Reason: why, At: hour, Cancelled: 1}})
		job, err := s.Job(t.Context(), 4*hour, drover.JobID{Number: 1, Index: -1})
		if err != nil || job.State != drover.JobCancelled {
			t.Errorf("job %+v, error %v; want it cancelled", job, err)
		}
		equal(t, "reason", job.Reason, &why)
	})
}
