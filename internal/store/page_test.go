package store

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"drover"
	"drover/internal/engine"
)

func pageSuite(t *testing.T, openers func(testing.TB) opener) {
	s := openers(t)(t)
	halfDone(t, s)

	t.Run("a whole array has the totals of its elements", func(t *testing.T) {
		job, err := s.Job(t.Context(), 4*hour, drover.JobID{Number: 2, Index: -1})
		if err != nil {
			t.Fatal(err)
		}
		spec, began := hello().Jobs[1], hour.Std()
		equal(t, "job", job, drover.Job{
			ID: drover.JobID{Number: 2, Index: -1}, Name: "greet", Batch: "hello", User: "ada", State: drover.JobRunning, Priority: 1,
			Labels: spec.Labels, Command: spec.Command, Resources: spec.Resources, Spot: spec.Spot,
			Submitted: job.Submitted, Started: &began, Cost: 1.75, Attempts: []drover.Attempt{}, Array: &spec.Array, Gang: spec.Gang,
			Counts: map[drover.JobState]int{
				drover.JobQueued: 17, drover.JobRunning: 1, drover.JobSucceeded: 1, drover.JobFailed: 1, drover.JobCancelled: 0,
			},
		})
	})

	t.Run("a job shows its max_price in dollars per hour", func(t *testing.T) {
		s, b := openers(t)(t), hello()
		b.Jobs[0].Placement = drover.Placement{Zone: "a", MaxPrice: drover.Dollar / 2}
		if _, err := s.Submit(t.Context(), drover.Submission{Batch: b}, Terms{}); err != nil {
			t.Fatal(err)
		}
		job, err := s.Job(t.Context(), 4*hour, drover.JobID{Number: 1, Index: -1})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(job.Placement)
		if want := `{"zone":"a","max_price_usd_per_hour":0.5}`; err != nil || string(text) != want {
			t.Errorf("placement %s, error %v, want %s", text, err, want)
		}
	})

	t.Run("a running job's cost counts up to now", func(t *testing.T) {
		for now, want := range map[drover.Time]float64{4 * hour: 0.75, 5 * hour: 1} {
			if job, err := s.Job(t.Context(), now, drover.JobID{Number: 2, Index: 3}); err != nil || job.Cost != want {
				t.Errorf("%v: job %+v, error %v; want it to cost %v", now, job, err, want)
			}
		}
	})

	t.Run("an ended job has its final cost, even before its output is stored", func(t *testing.T) {
		s := openers(t)(t)
		halfDone(t, s)
		free := attempt(2, 3, 1)
		free.Instance, free.State, free.Started, free.Ended = 2, drover.AttemptCollecting, hour, hour
		commit(t, s, engine.Write{Attempt: &engine.AttemptRow{Attempt: free}})
		for id, want := range map[drover.JobID]float64{{Number: 2, Index: 3}: 0, {Number: 2, Index: -1}: 1} {
			if job, err := s.Job(t.Context(), 4*hour, id); err != nil || job.Cost != want {
				t.Errorf("job %v: %+v, error %v; want it to cost %v", id, job, err, want)
			}
		}
	})

	t.Run("all pages together are the whole list", func(t *testing.T) {
		for name, f := range map[string]drover.JobFilter{
			"elements":      {Elements: true},
			"wholes":        {},
			"those queued":  {Elements: true, States: states(drover.JobQueued)},
			"not succeeded": {Elements: true, States: states(drover.JobQueued, drover.JobRunning, drover.JobFailed, drover.JobCancelled)},
		} {
			all, err := s.Jobs(t.Context(), 4*hour, f)
			if err != nil {
				t.Fatal(err)
			}
			var paged []drover.Job
			for f.Limit = 2; ; {
				page, err := s.Jobs(t.Context(), 4*hour, f)
				if err != nil {
					t.Fatal(err)
				}
				if len(page) == 0 {
					break
				}
				paged = append(paged, page...)
				f.After = page[len(page)-1].ID
			}
			equal(t, name, paged, all)
		}
	})

	t.Run("a page is limited unless everything is requested", func(t *testing.T) {
		s := openers(t)(t)
		batch := hello()
		batch.Jobs[1].Array = drover.Array{Last: 1999, Set: true}
		if _, err := s.Submit(t.Context(), drover.Submission{Batch: batch}, Terms{}); err != nil {
			t.Fatal(err)
		}
		for limit, want := range map[int]int{0: drover.MaxPage, 5000: drover.MaxPage, -1: 2002} {
			jobs, err := s.Jobs(t.Context(), hour, drover.JobFilter{Elements: true, Limit: limit})
			if err != nil || len(jobs) != want {
				t.Errorf("limit %d: %d jobs, error %v; want %d", limit, len(jobs), err, want)
			}
		}
	})

	for name, elements := range map[string]bool{"elements of an array": true, "jobs": false} {
		t.Run("a page of large "+name+" ends after a few MiB, and the next continues", func(t *testing.T) {
			s := openers(t)(t)
			const jobs = 60
			spec := drover.JobSpec{Name: "large", Command: []string{strings.Repeat("x", 200<<10)}, Array: drover.Array{Last: jobs - 1, Set: true}}
			batch := drover.Batch{Name: "b", Jobs: []drover.JobSpec{spec}}
			if !elements {
				batch.Jobs = nil
				spec.Array = drover.Array{}
				// The list of inputs is read although it is not shown.
				inputs := 20
				if testing.Short() {
					inputs = 2
				}
				spec.Files = slices.Repeat([]drover.File{{Path: strings.Repeat("f", 50_000), Hash: "h"}}, inputs)
				for i := range jobs {
					spec.Name = fmt.Sprint("large-", i)
					batch.Jobs = append(batch.Jobs, spec)
				}
			}
			if _, err := s.Submit(t.Context(), drover.Submission{Batch: batch}, Terms{}); err != nil {
				t.Fatal(err)
			}
			seen := map[drover.JobID]bool{}
			f := drover.JobFilter{Elements: elements}
			for more := true; more; {
				page, next, err := s.JobsPage(t.Context(), hour, f)
				if err != nil {
					t.Fatal(err)
				}
				text, err := json.Marshal(page)
				if err != nil || len(text) > 5<<20 {
					t.Fatalf("a page of %d bytes (%v)", len(text), err)
				}
				for _, j := range page {
					seen[j.ID] = true
				}
				f.After, more = next, next.Number != 0
			}
			if len(seen) != jobs {
				t.Errorf("%d jobs in all pages", len(seen))
			}
		})
	}

	t.Run("pages with the newest first are the reversed list", func(t *testing.T) {
		all, err := s.Jobs(t.Context(), 4*hour, drover.JobFilter{})
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range []drover.JobFilter{{}, {States: states(drover.JobQueued, drover.JobRunning, drover.JobFailed, drover.JobCancelled, drover.JobSucceeded)}} {
			f.Newest, f.Limit = true, 1
			var turned []drover.Job
			for more := true; more; {
				page, next, err := s.JobsPage(t.Context(), 4*hour, f)
				if err != nil || len(turned) > len(all) {
					t.Fatalf("%d jobs, error %v", len(turned), err)
				}
				turned = append(turned, page...)
				f.After, more = next, next.Number != 0
			}
			slices.Reverse(turned)
			equal(t, fmt.Sprint("filter ", i), turned, all)
		}
	})

	t.Run("a search matches the names of jobs and batches, and pauses after many jobs", func(t *testing.T) {
		s := openers(t)(t)
		const between = 12_000 // numbers, most of them of jobs that were pruned
		for i := range int64(3) {
			batch := drover.Batch{Name: fmt.Sprint("night-", i)}
			for j := range 900 {
				batch.Jobs = append(batch.Jobs, drover.JobSpec{Name: fmt.Sprint("tile-", j), Command: []string{"x"}})
			}
			if _, err := s.write.Exec(`UPDATE fleet SET last_job = ?`, i*between); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Submit(t.Context(), drover.Submission{Batch: batch}, Terms{}); err != nil {
				t.Fatal(err)
			}
		}
		for newest, want := range map[bool][]int64{true: {2*between + 78, between + 78, 78}, false: {78, between + 78, 2*between + 78}} {
			f, found, pages := drover.JobFilter{Match: "TILE-77", Newest: newest, Limit: 10}, []int64{}, 0
			for more := true; more; pages++ {
				page, next, err := s.JobsPage(t.Context(), 4*hour, f)
				if err != nil || pages > 40 {
					t.Fatalf("%d pages, error %v", pages, err)
				}
				for _, j := range page {
					if j.Name == "tile-77" {
						found = append(found, j.ID.Number)
					}
				}
				f.After, more = next, next.Number != 0
			}
			equal(t, fmt.Sprint("newest ", newest), found, want)
		}
		page, next, err := s.JobsPage(t.Context(), 4*hour, drover.JobFilter{Match: "night-1", Newest: true, Limit: 2})
		if err != nil || len(page) != 2 || next.Number != page[1].ID.Number {
			t.Errorf("a page of %d, next %v, error %v", len(page), next, err)
		}
		page, next, err = s.JobsPage(t.Context(), 4*hour, drover.JobFilter{Match: "nothing", Newest: true})
		if err != nil || len(page) != 0 || next.Number != 2*between+900-searched+1 {
			t.Errorf("a page of %d, next %v, error %v", len(page), next, err)
		}
	})

	t.Run("instances are listed with their last attempts", func(t *testing.T) {
		list, err := s.Instances(t.Context(), 4*hour, drover.InstanceFilter{Gone: true, Newest: true, Attempts: 2})
		if err != nil {
			t.Fatal(err)
		}
		had := map[int64][]drover.AttemptID{}
		for _, in := range list {
			for _, a := range in.Attempts {
				had[in.ID] = append(had[in.ID], drover.AttemptID{Job: a.Job, Number: a.Number})
			}
		}
		alone, err := s.Instances(t.Context(), 4*hour, drover.InstanceFilter{Gone: true, Attempts: 1})
		if err != nil || len(alone) != 3 || len(had) == 0 {
			t.Fatalf("%v, error %v", alone, err)
		}
		for _, in := range alone {
			if len(in.Attempts) > 1 || len(in.Attempts) == 1 && had[in.ID][0] != (drover.AttemptID{Job: in.Attempts[0].Job, Number: in.Attempts[0].Number}) {
				t.Errorf("instance %d has %v, and %v", in.ID, in.Attempts, had[in.ID])
			}
		}
	})

	t.Run("filters instances", func(t *testing.T) {
		for name, c := range map[string]struct {
			filter drover.InstanceFilter
			want   []int64
		}{
			"existing":       {drover.InstanceFilter{}, []int64{2, 3}},
			"including gone": {drover.InstanceFilter{Gone: true}, []int64{1, 2, 3}},
			"only gone":      {drover.InstanceFilter{States: []drover.InstanceState{drover.InstanceGone}}, []int64{1}},
			"of a cloud":     {drover.InstanceFilter{Cloud: "here", Gone: true}, []int64{1, 2}},
			"newest first":   {drover.InstanceFilter{Gone: true, Newest: true}, []int64{3, 2, 1}},
			"below one":      {drover.InstanceFilter{Gone: true, Newest: true, After: 3}, []int64{2, 1}},
			"gone since":     {drover.InstanceFilter{Since: 1}, []int64{1, 2, 3}},
			"not gone since": {drover.InstanceFilter{Since: 100 * hour}, []int64{2, 3}},
			"a page":         {drover.InstanceFilter{Gone: true, Limit: 1, After: 1}, []int64{2}},
			"in some states": {drover.InstanceFilter{States: []drover.InstanceState{drover.InstanceIdle, drover.InstanceCreating}}, []int64{3}},
		} {
			list, err := s.Instances(t.Context(), 4*hour, c.filter)
			if err != nil {
				t.Fatal(err)
			}
			var got []int64
			for _, in := range list {
				got = append(got, in.ID)
			}
			equal(t, name, got, c.want)
		}
	})

	t.Run("an instance is found by its id, its name and its cloud's id", func(t *testing.T) {
		commit(t, s, engine.Write{Instance: &engine.Instance{ID: 4, Name: "lab-1", ProviderID: "2", State: drover.InstanceRunning}},
			engine.Write{Instance: &engine.Instance{ID: 5, Name: "lab-5", ProviderID: "i-5", State: drover.InstanceRunning}})
		for name, want := range map[string]int64{"1": 1, "2": 2, "lab-2": 2, "lab-1": 4, "i-5": 5} {
			if in, err := s.Instance(t.Context(), 4*hour, name); err != nil || in.ID != want {
				t.Errorf("%q: instance %+v, error %v; want %d", name, in, err, want)
			}
		}
		if in, err := s.Instance(t.Context(), 4*hour, "2"); err != nil || len(in.Jobs) != 1 || in.Cost != 3 {
			t.Errorf("instance %+v, error %v; want its job and its cost", in, err)
		}
		for _, name := range []string{"", "9", "lab-9"} {
			if in, err := s.Instance(t.Context(), 4*hour, name); drover.KindOf(err) != drover.KindNotFound {
				t.Errorf("%q: instance %+v, error %v; want not found", name, in, err)
			}
		}
	})

	t.Run("an element's outputs are those of its last attempt, however it ended", func(t *testing.T) {
		for _, id := range []string{"2.2/1", "2.2/2"} {
			attempt, err := drover.ParseAttemptID(id)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.PutOutputs(t.Context(), attempt, []drover.File{{Path: id}}, nil); err != nil {
				t.Fatal(err)
			}
		}
		for id, want := range map[drover.JobID][]drover.File{{Number: 2, Index: 2}: {{Path: "2.2/2"}}, {Number: 3, Index: -1}: {}} {
			files, err := s.OutputsOf(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, id.String(), files, want)
		}
		for id, kind := range map[drover.JobID]drover.ErrorKind{
			{Number: 2, Index: -1}: drover.KindInvalid, {Number: 2, Index: 21}: drover.KindNotFound, {Number: 9, Index: -1}: drover.KindNotFound,
		} {
			if _, err := s.OutputsOf(t.Context(), id); drover.KindOf(err) != kind {
				t.Errorf("%v: error %v, want %s", id, err, kind)
			}
		}
	})
}

func TestListsUseIndexes(t *testing.T) {
	s := sqliteOpener(t)(t)
	for name, f := range map[string]drover.JobFilter{
		"all": {}, "tried": {Tried: true}, "of a user": {User: "ada"}, "of a batch": {Batch: "b"}, "with labels": {Labels: map[string]string{"a": "b", "c": "d"}},
		"in states": {States: states(drover.JobFailed, drover.JobQueued)},
		"newest":    {Newest: true, States: states(drover.JobFailed, drover.JobQueued)},
		"elements":  {Elements: true, States: states(drover.JobQueued, drover.JobRunning, drover.JobFailed, drover.JobCancelled)},
	} {
		query, args := choose(f, stretch{17, math.MaxInt64}, 100)
		checkPlan(t, name, s, selectJobs+query+`) ORDER BY j.number`+direction(f), args...)
		if l := (&lister{filter: f}); f.Elements {
			query, args := l.chooseElements(17, 3, false)
			checkPlan(t, name, s, query, args...)
		}
	}
	checkPlan(t, "counts", s, countsQuery)
}

func TestOldResults(t *testing.T) {
	s := sqliteOpener(t)(t)
	begun(t, s)
	if _, err := s.Submit(t.Context(), drover.Submission{Batch: singles(4)}, Terms{}); err != nil {
		t.Fatal(err)
	}
	sizes := map[drover.JobID]int64{{Number: 1, Index: 0}: 1, {Number: 1, Index: 1}: 1, {Number: 2, Index: -1}: 0, {Number: 3, Index: -1}: 1, {Number: 4, Index: -1}: 1}
	if err := s.PutResults(t.Context(), sizes); err != nil {
		t.Fatal(err)
	}
	old := func(before drover.Time, after int64, most int) []int64 {
		jobs, err := s.OldResults(t.Context(), before, after, most)
		if err != nil {
			t.Fatal(err)
		}
		return jobs
	}
	for n := range int64(4) {
		equal(t, "jobs of an unfinished batch", old(9*hour, 0, 9), []int64(nil))
		commit(t, s, engine.Write{Ended: &engine.JobEnd{Number: n + 1, State: drover.JobSucceeded, Succeeded: 1, At: drover.Time(n+1) * hour}})
	}
	equal(t, "the first", old(9*hour, 0, 2), []int64{1, 3})
	equal(t, "the next", old(9*hour, 3, 2), []int64{4})
	equal(t, "those of the first three hours", old(4*hour, 0, 9), []int64{1, 3})
}

func TestRepeatedQueriesDoNotReadWhatIsPast(t *testing.T) {
	s := sqliteOpener(t)(t)
	for query, scan := range map[string]string{tellings: "SCAN f", billsSince: "SCAN instances", oldResults: "SCAN "} {
		for _, step := range plan(t, s, query, slices.Repeat([]any{0}, strings.Count(query, "?"))...) {
			if strings.HasPrefix(step, scan) && step != "SCAN instances USING INDEX instances_open" {
				t.Errorf("%.60s: %s", query, step)
			}
		}
	}
}

// checkPlan checks that SQLite neither scans a whole table nor sorts.
func checkPlan(t *testing.T, name string, s *Store, query string, args ...any) {
	t.Helper()
	for _, step := range plan(t, s, query, args...) {
		if strings.HasPrefix(step, "SCAN") || strings.Contains(step, "TEMP B-TREE") || strings.Contains(step, "elements USING PRIMARY KEY (job=? AND idx>?)") {
			t.Errorf("%s: %s", name, step)
		}
	}
}

// plan returns the steps by which SQLite runs a query.
func plan(t *testing.T, s *Store, query string, args ...any) []string {
	t.Helper()
	steps, err := collect(t.Context(), s.read, func(row scanner) (step string, err error) {
		var rest int
		return step, row.Scan(&rest, &rest, &rest, &step)
	}, `EXPLAIN QUERY PLAN `+query, args...)
	if err != nil || len(steps) == 0 {
		t.Fatalf("%s: plan %q, error %v", query, steps, err)
	}
	return steps
}

// grown returns records with an array of 100,000 final elements, of which one in a thousand failed.
func grown(b *testing.B) *Store {
	s := sqliteOpener(b)(b)
	submitArray(b, s, 100_000)
	commit(b, s, engine.Write{Instance: &engine.Instance{ID: 1, State: drover.InstanceRunning}})
	var writes []engine.Write
	for i := range 100_000 {
		row := engine.ElementRow{Job: 1, Element: engine.Element{Index: i, Number: 1}, State: drover.JobSucceeded, Ended: hour}
		if i%1000 == 999 {
			row.State = drover.JobFailed
		}
		a := attempt(1, i, 1)
		a.State, a.Ended = drover.AttemptSucceeded, hour
		writes = append(writes, engine.Write{Element: &row}, engine.Write{Attempt: &engine.AttemptRow{Attempt: a, Cost: 1}})
	}
	end := engine.JobEnd{Number: 1, State: drover.JobFailed, Succeeded: 99_900, Failed: 100, At: hour}
	commit(b, s, append(writes, engine.Write{Ended: &end})...)
	return s
}

func submitArray(b *testing.B, s *Store, n int) {
	spec := hello().Jobs[1]
	spec.Array = drover.Array{Last: n - 1, Set: true}
	if _, err := s.Submit(b.Context(), drover.Submission{Batch: drover.Batch{Name: "b", Jobs: []drover.JobSpec{spec}}}, Terms{}); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkSubmitArray submits an array of 100,000 elements.
func BenchmarkSubmitArray(b *testing.B) {
	s := sqliteOpener(b)(b)
	for b.Loop() {
		submitArray(b, s, 100_000)
	}
}

// BenchmarkPendingNothing queries new jobs when there are none.
func BenchmarkPendingNothing(b *testing.B) {
	s := grown(b)
	for b.Loop() {
		if jobs, err := s.Pending(b.Context()); err != nil || len(jobs) != 0 {
			b.Fatal(jobs, err)
		}
	}
}

// BenchmarkCounts counts a thousand jobs.
func BenchmarkCounts(b *testing.B) {
	s := sqliteOpener(b)(b)
	submittedSingly(b, s, 1000)
	for b.Loop() {
		if counts, err := s.Counts(b.Context()); err != nil || counts[drover.JobQueued] != 1000 {
			b.Fatal(counts, err)
		}
	}
}

// BenchmarkJobs lists pages of a hundred of 100,000 elements.
func BenchmarkJobs(b *testing.B) {
	s := grown(b)
	for name, f := range map[string]drover.JobFilter{
		"whole":   {},
		"first":   {Elements: true, Limit: 100},
		"last":    {Elements: true, Limit: 100, After: drover.JobID{Number: 1, Index: 99_899}},
		"failed":  {Elements: true, Limit: 100, States: []drover.JobState{drover.JobFailed}},
		"not yet": {Elements: true, Limit: 100, States: []drover.JobState{drover.JobQueued, drover.JobRunning}},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := s.Jobs(b.Context(), hour, f); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
