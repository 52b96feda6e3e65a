package store

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"
	"strconv"
	"time"

	"drover"
	"drover/internal/engine"
)

// Retry puts the failed or cancelled elements of a final job, or one such element, back in the queue, and resets its
// losses and retries. The engine then takes the job again: see Pending. Attempt numbers continue, since they are
// fences.
//
// KindNotFound: there is no such job. KindConflict: it is not final, there is nothing to retry in it, or a job that
// it must run after is final and did not succeed. KindQuota: it would take its user over a limit.
func (s *Store) Retry(ctx context.Context, id drover.JobID, limits drover.UserLimits) error {
	return s.change(ctx, "putting job "+id.String()+" back in the queue", func(tx *sql.Tx) error {
		r, err := retryOne(ctx, tx, id)
		if err != nil {
			return err
		}
		return checkUsage(ctx, tx, r.job.User, limits, math.MaxInt64)
	})
}

// RetryWith is Retry with a new specification from batch, by the job's name; array, gang, labels and order stay. If
// it names one element, only that one is put back; the others have the new specification when they are retried.
// KindInvalid: there is no such job in batch, or it has another array, gang or order.
func (s *Store) RetryWith(ctx context.Context, id drover.JobID, batch drover.Batch, terms Terms) error {
	return s.change(ctx, "putting job "+id.String()+" back in the queue", func(tx *sql.Tx) error {
		spec, user, err := newSpec(ctx, tx, id, batch)
		if err != nil {
			return err
		}
		before, err := usage(ctx, tx, user)
		if err != nil {
			return err
		}
		in := arrival{batch: drover.Batch{User: user, Jobs: []drover.JobSpec{spec}}, at: drover.TimeOf(time.Now())}
		if err := s.useInputs(ctx, tx, in, terms.Sender); err != nil {
			return err
		}
		if err := respecify(ctx, tx, id.Number, spec); err != nil {
			return err
		}
		if _, err := retryOne(ctx, tx, id); err != nil {
			return err
		}
		return checkUsage(ctx, tx, user, terms.Limits, before.Inputs)
	})
}

// newSpec returns the specification in a batch under a job's name, if the job can take it, and the job's user.
func newSpec(ctx context.Context, tx *sql.Tx, id drover.JobID, batch drover.Batch) (spec drover.JobSpec, user string, err error) {
	var was drover.JobSpec
	err = tx.QueryRowContext(ctx, `SELECT user_name, spec FROM jobs WHERE number = ?`, id.Number).Scan(&user, into(&was))
	if errors.Is(err, sql.ErrNoRows) {
		return spec, user, noJob(id)
	}
	if err != nil {
		return spec, user, err
	}
	if spec, err = batch.Job(was.Name); err != nil {
		return spec, user, err
	}
	if _, err := spec.CheckRetry(was); err != nil {
		return spec, user, err
	}
	spec.Labels = was.Labels
	return spec, user, nil
}

// Redo reopens a fleet whose jobs are all final: every job that did not succeed is put back in the queue, as by
// Retry, with the new specification of its name in specs, except its array, labels and order. Jobs that nevertheless
// ran after one of these are repeated as well, and so are those that ran after them. It returns how many jobs were
// put back.
func (s *Store) Redo(ctx context.Context, specs []drover.JobSpec) (jobs int, err error) {
	err = s.change(ctx, "requeueing failed jobs", func(tx *sql.Tx) error {
		if err := execute(ctx, tx, `UPDATE fleet SET closing = FALSE`); err != nil {
			return err
		}
		for _, spec := range specs {
			if err := redefine(ctx, tx, spec); err != nil {
				return err
			}
		}
		left, err := collect(ctx, tx, readColumn[int64], `SELECT number FROM jobs WHERE engine IS NULL AND state <> 'succeeded' ORDER BY number`)
		if err != nil {
			return err
		}
		stale, err := staleAfter(ctx, tx, left)
		if err != nil {
			return err
		}
		for _, number := range stale {
			if err := unfinish(ctx, tx, number); err != nil {
				return err
			}
		}
		left = append(left, stale...)
		jobs = len(left)
		return retryAll(ctx, tx, left)
	})
	return jobs, err
}

// staleAfter returns the numbers of the jobs that succeeded after one of those to be repeated, which are in order.
func staleAfter(ctx context.Context, tx *sql.Tx, again []int64) (stale []int64, err error) {
	type job struct {
		number    int64
		succeeded bool
		spec      drover.JobSpec
	}
	all, err := collect(ctx, tx, func(row scanner) (j job, err error) { return j, row.Scan(&j.number, &j.succeeded, into(&j.spec)) },
		`SELECT number, state = 'succeeded', spec FROM jobs ORDER BY number`)
	if err != nil {
		return nil, err
	}
	redone := map[string]bool{}
	for _, j := range all {
		_, redone[j.spec.Name] = slices.BinarySearch(again, j.number)
	}
	for found := true; found; {
		found = false
		for _, j := range all {
			after := slices.Concat(j.spec.After, j.spec.AfterAny)
			if j.succeeded && !redone[j.spec.Name] && slices.ContainsFunc(after, func(name string) bool { return redone[name] }) {
				redone[j.spec.Name], found = true, true
				stale = append(stale, j.number)
			}
		}
	}
	return stale, nil
}

// unfinish makes a job that succeeded count as cancelled, to be retried.
func unfinish(ctx context.Context, tx *sql.Tx, number int64) error {
	if err := execute(ctx, tx, `UPDATE elements SET state = 'cancelled' WHERE job = ?`, number); err != nil {
		return err
	}
	return execute(ctx, tx, `UPDATE jobs SET cancelled = cancelled + succeeded, succeeded = 0, state = 'cancelled' WHERE number = ?`, number)
}

// redefine gives spec to the final job of its name that did not succeed, if there is one.
func redefine(ctx context.Context, tx *sql.Tx, spec drover.JobSpec) error {
	var number int64
	var was drover.JobSpec
	err := tx.QueryRowContext(ctx, `SELECT number, spec FROM jobs WHERE name = ? AND engine IS NULL AND state <> 'succeeded'`, spec.Name).Scan(&number, into(&was))
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	spec.Array, spec.Gang, spec.Labels, spec.After, spec.AfterAny = was.Array, was.Gang, was.Labels, was.After, was.AfterAny
	return respecify(ctx, tx, number, spec)
}

// respecify gives a job another specification.
func respecify(ctx context.Context, tx *sql.Tx, number int64, spec drover.JobSpec) error {
	return execute(ctx, tx, `UPDATE jobs SET spec = ?, priority = ?, cpu_milli = ? WHERE number = ?`, asJSON{spec}, spec.Priority, spec.Resources.CPU, number)
}

// retryAll puts jobs back, each after those that it must run after.
func retryAll(ctx context.Context, tx *sql.Tx, numbers []int64) error {
	for len(numbers) > 0 {
		var later []int64
		var why error
		for _, number := range numbers {
			_, err := retryOne(ctx, tx, drover.JobID{Number: number, Index: -1})
			if drover.KindOf(err) == drover.KindConflict {
				later, why = append(later, number), err
			} else if err != nil {
				return err
			}
		}
		if len(later) == len(numbers) {
			return why
		}
		numbers = later
	}
	return nil
}

func retryOne(ctx context.Context, tx *sql.Tx, id drover.JobID) (r *retry, err error) {
	if r, err = readRetry(ctx, tx, id); err != nil {
		return nil, err
	}
	if err := r.plan(ctx, tx); err != nil {
		return nil, err
	}
	return r, r.write(ctx, tx)
}

// retry is one job being put back.
type retry struct {
	id         drover.JobID
	spec       drover.JobSpec
	submission int64
	inEngine   bool
	job        engine.Job
}

func readRetry(ctx context.Context, tx *sql.Tx, id drover.JobID) (*retry, error) {
	r := &retry{id: id}
	var user string
	var priority, succeeded, failed, cancelled int
	err := tx.QueryRowContext(ctx, `SELECT submission, user_name, priority, engine IS NOT NULL, succeeded, failed, cancelled, spec
		FROM jobs WHERE number = ?`, id.Number).Scan(&r.submission, &user, &priority, &r.inEngine, &succeeded, &failed, &cancelled, into(&r.spec))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, noJob(id)
	}
	if err != nil {
		return nil, err
	}
	alone := r.spec
	alone.After, alone.AfterAny = nil, nil // see planAfter
	if r.job, err = newJob(id.Number, user, alone, nil, drover.TimeOf(time.Now())); err != nil {
		return nil, err
	}
	r.job.Priority, r.job.Succeeded, r.job.Failed, r.job.Cancelled = priority, succeeded, failed, cancelled
	return r, nil
}

// plan decides which elements wait from now on, or returns why none may.
func (r *retry) plan(ctx context.Context, tx *sql.Tx) (err error) {
	a := r.spec.Array
	switch {
	case !indexed(a, r.id.Index):
		return noElement(r.id, a)
	case r.inEngine:
		not := drover.Errorf(drover.KindConflict, "job %d is not final yet", r.id.Number)
		if r.id.Index >= 0 {
			not.Message += ", and until it is, none of its elements can be retried"
		}
		return not.WithHint("wait for it first: drover wait %d", r.id.Number)
	case r.job.Failed+r.job.Cancelled == 0:
		return r.nothing()
	case r.id.Index >= 0:
		err = r.planElement(ctx, tx)
	default:
		err = r.planAll(ctx, tx)
	}
	if err != nil {
		return err
	}
	return r.planAfter(ctx, tx)
}

func (r *retry) nothing() error {
	return drover.Errorf(drover.KindConflict, "job %v has succeeded, so there is nothing to retry", r.id)
}

// planAll puts back all elements except those that succeeded, which have rows.
func (r *retry) planAll(ctx context.Context, tx *sql.Tx) error {
	r.job.Failed, r.job.Cancelled = 0, 0
	var done engine.Ranges
	err := each(ctx, tx, func(row scanner) error {
		var index int
		err := row.Scan(&index)
		done.Add(index)
		return err
	}, `SELECT idx FROM elements WHERE job = ? AND state = 'succeeded' ORDER BY idx`, r.id.Number)
	r.job.Queued = engine.RangesOf(r.spec.Array).Without(done)
	return err
}

// planElement puts one element back and leaves the others as they ended.
func (r *retry) planElement(ctx context.Context, tx *sql.Tx) error {
	state := drover.JobCancelled // together with all elements without a row
	err := tx.QueryRowContext(ctx, `SELECT state FROM elements WHERE job = ? AND idx = ?`, r.id.Number, r.id.Index).Scan(&state)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	switch state {
	case drover.JobSucceeded:
		return r.nothing()
	case drover.JobFailed:
		r.job.Failed--
	default:
		r.job.Cancelled--
	}
	r.job.Queued = engine.Ranges{{First: r.id.Index, Last: r.id.Index}}
	return nil
}

// planAfter makes the job wait for those that it must run after and that are not final yet.
func (r *retry) planAfter(ctx context.Context, tx *sql.Tx) error {
	names := slices.Concat(r.spec.After, r.spec.AfterAny)
	var ids []int64 // names that are numbers of other jobs
	for _, name := range names {
		if id, err := drover.ParseJobID(name); err == nil {
			ids = append(ids, id.Number)
		}
	}
	return each(ctx, tx, func(row scanner) error {
		var number int64
		var name string
		var state drover.JobState
		var inEngine bool
		if err := row.Scan(&number, &name, &state, &inEngine); err != nil {
			return err
		}
		must := slices.ContainsFunc(r.spec.After, func(after string) bool { return after == name || after == strconv.FormatInt(number, 10) })
		switch {
		case inEngine && must:
			r.job.After = append(r.job.After, number)
		case inEngine:
			r.job.AfterAny = append(r.job.AfterAny, number)
		case must && state != drover.JobSucceeded:
			return drover.Errorf(drover.KindConflict, "job %d must run after %s (job %d), which did not succeed: its state is %s", r.id.Number, name, number, state).
				WithHint("retry that job first: drover retry %d", number)
		}
		return nil
	}, `SELECT number, name, state, engine IS NOT NULL FROM jobs j
		WHERE submission = ?1 AND name IN (SELECT value FROM json_each(?2)) OR number IN (SELECT value FROM json_each(?3))
		AND NOT EXISTS (SELECT 1 FROM jobs s WHERE s.submission = ?1 AND s.name = CAST(j.number AS TEXT)) ORDER BY number`,
		r.submission, asJSON{names}, asJSON{ids})
}

const (
	requeueElements = `UPDATE elements SET state = 'queued', lost = 0, retried = 0, interrupted = 0, memory = 0, not_before = 0, code = NULL, ended = 0, reason = '{}'
		WHERE job = ? AND state IN ('failed', 'cancelled')`
	// If only one element of an array waits, it needs a row: elements without one are cancelled.
	requeueElement = `INSERT INTO elements (job, idx, number, lost, retried, state, code, ended, reason)
		VALUES (?, ?, 0, 0, 0, 'queued', NULL, 0, '{}')
		ON CONFLICT (job, idx) DO UPDATE SET state = 'queued', lost = 0, retried = 0, interrupted = 0, memory = 0, not_before = 0, code = NULL, ended = 0,
		reason = '{}'`
	requeueJob = `UPDATE jobs SET taken = FALSE, again = ?, state = 'queued', queued = ?, succeeded = ?, failed = ?, cancelled = ?, ended = 0,
		reason = '{}', engine = ? WHERE number = ?`
)

func (r *retry) write(ctx context.Context, tx *sql.Tx) (err error) {
	if r.id.Index < 0 {
		err = execute(ctx, tx, requeueElements, r.id.Number)
	} else {
		err = execute(ctx, tx, requeueElement, r.id.Number, r.id.Index)
	}
	if err != nil {
		return err
	}
	err = tx.QueryRowContext(ctx, `UPDATE fleet SET last_again = last_again + 1 RETURNING last_again`).Scan(&r.job.Again)
	if err != nil {
		return err
	}
	j := r.job
	return execute(ctx, tx, requeueJob, j.Again, j.Queued.Count(), j.Succeeded, j.Failed, j.Cancelled, asJSON{j}, j.Number)
}
