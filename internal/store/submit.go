package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"drover"
	"drover/internal/engine"
)

const (
	insertJob = `INSERT INTO jobs (number, submission, batch, user_name, name, first_index, last_index, cpu_milli, priority, submitted, taken,
		state, queued, succeeded, failed, cancelled, ended, reason, engine, spec)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, FALSE, ?, ?, 0, 0, 0, 0, '{}', ?, ?)`
	countQueued = `UPDATE counts SET queued = queued + ? WHERE id = 1`
	insertLabel = `INSERT INTO labels (label, value, job) VALUES (?, ?, ?)`
)

// Terms are limits for a submission. The zero Terms limit nothing.
type Terms struct {
	Sender string            // who submits it: the inputs must be this user's, or the batch's user's; empty: anybody's
	Limits drover.UserLimits // the batch's user's
}

// Submit records the jobs of a batch and returns their numbers, in the batch's order. The engine takes them: see
// Pending.
//
// The same batch with the same key of the same user gets the same numbers, for a day; another batch is a conflict.
// KindInvalid: the batch has an input that its sender has not sent. KindQuota: it would take its user over a limit.
func (s *Store) Submit(ctx context.Context, sub drover.Submission, terms Terms) (numbers []int64, err error) {
	key, err := newOnce(sub)
	if err != nil {
		return nil, err
	}
	err = s.change(ctx, "submitting batch "+sub.Batch.Name, func(tx *sql.Tx) error {
		now := drover.TimeOf(time.Now())
		if numbers, err = key.before(ctx, tx, now); err != nil || numbers != nil {
			return err
		}
		if numbers, err = s.submit(ctx, tx, sub.Batch, terms, now); err != nil {
			return err
		}
		return key.remember(ctx, tx, numbers, now)
	})
	if err != nil {
		return nil, err
	}
	return numbers, nil
}

// Submitted returns the jobs' numbers if a submission was made before; done reports whether it was. A submission
// without a key costs nothing. KindConflict: its key was used for another batch.
func (s *Store) Submitted(ctx context.Context, sub drover.Submission) (numbers []int64, done bool, err error) {
	key, err := newOnce(sub)
	if err != nil || key == nil {
		return nil, false, err
	}
	err = s.look(ctx, "looking up a submission", func(tx *sql.Tx) error {
		numbers, err = key.before(ctx, tx, drover.TimeOf(time.Now()))
		return err
	})
	return numbers, numbers != nil, err
}

func (s *Store) submit(ctx context.Context, tx *sql.Tx, batch drover.Batch, terms Terms, now drover.Time) ([]int64, error) {
	numbers, err := takeNumbers(ctx, tx, len(batch.Jobs))
	if err != nil {
		return nil, err
	}
	in := arrival{batch, numbers, make(map[string]int64, len(numbers)), now}
	for i, number := range numbers {
		in.named[batch.Jobs[i].Name] = number
	}
	var before drover.Usage
	if terms.Limits.Inputs > 0 {
		if before, err = usage(ctx, tx, batch.User); err != nil {
			return nil, err
		}
	}
	if err := checkAfter(ctx, tx, in); err != nil {
		return nil, err
	}
	if err := s.useInputs(ctx, tx, in, terms.Sender); err != nil {
		return nil, err
	}
	if err := s.notify(ctx, tx, numbers[0], batch.Notify); err != nil {
		return nil, err
	}
	elements := 0
	for i, spec := range batch.Jobs {
		elements += spec.Array.Size()
		if err := s.insert(ctx, tx, in, i); err != nil {
			return nil, err
		}
	}
	if err := execute(ctx, tx, countQueued, elements); err != nil {
		return nil, err
	}
	return numbers, checkUsage(ctx, tx, batch.User, terms.Limits, before.Inputs)
}

// arrival is a batch whose jobs have their numbers.
type arrival struct {
	batch   drover.Batch
	numbers []int64
	named   map[string]int64 // the numbers by the jobs' names
	at      drover.Time
}

func takeNumbers(ctx context.Context, tx *sql.Tx, n int) ([]int64, error) {
	var last int64
	err := tx.QueryRowContext(ctx, `UPDATE fleet SET last_job = last_job + ? RETURNING last_job`, n).Scan(&last)
	if err != nil {
		return nil, err
	}
	return consecutive(last-int64(n)+1, n), nil
}

// newJob returns a job as the engine first receives it.
func newJob(number int64, user string, spec drover.JobSpec, named map[string]int64, now drover.Time) (job engine.Job, err error) {
	job = engine.NewJob(number, user, spec)
	job.Since = now
	if job.After, err = numbersOf(spec.Name, spec.After, named); err == nil {
		job.AfterAny, err = numbersOf(spec.Name, spec.AfterAny, named)
	}
	return job, err
}

// numbersOf returns the numbers of the jobs that one must run after: those of its batch by name, others by number.
func numbersOf(job string, after []string, named map[string]int64) (numbers []int64, err error) {
	for _, name := range after {
		n, ok := named[name]
		if id, err := drover.ParseJobID(name); !ok && err == nil && id.Index < 0 {
			n, ok = id.Number, true
		}
		if !ok {
			return nil, drover.Errorf(drover.KindInvalid, "job %s must run after %q, which is not in the batch", job, name)
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

// bounds returns the first and last index of a job's elements.
func bounds(a drover.Array) (first, last int) {
	if !a.Set {
		return -1, -1
	}
	return a.First, a.First + a.Size() - 1
}

// checkAfter refuses jobs that must run after a job of another batch that does not exist or has not succeeded.
func checkAfter(ctx context.Context, tx *sql.Tx, in arrival) error {
	for _, spec := range in.batch.Jobs {
		for i, name := range slices.Concat(spec.After, spec.AfterAny) {
			id, err := drover.ParseJobID(name)
			if _, ours := in.named[name]; ours || err != nil {
				continue
			}
			var state drover.JobState
			err = tx.QueryRowContext(ctx, `SELECT state FROM jobs WHERE number = ?`, id.Number).Scan(&state)
			switch {
			case errors.Is(err, sql.ErrNoRows):
				return drover.Errorf(drover.KindInvalid, "job %s must run after job %v, which does not exist", spec.Name, id).WithHint("drover jobs --all lists all jobs")
			case err != nil:
				return err
			case i < len(spec.After) && (state == drover.JobFailed || state == drover.JobCancelled):
				return drover.Errorf(drover.KindInvalid, "job %s must run after job %v, whose state is %s", spec.Name, id, state).
					WithHint("retry that job first, or write after: {any: %v}", id)
			}
		}
	}
	return nil
}

// insert records the i-th job of a batch.
func (s *Store) insert(ctx context.Context, tx *sql.Tx, in arrival, i int) error {
	batch, spec := in.batch, in.batch.Jobs[i]
	job, err := newJob(in.numbers[i], batch.User, spec, in.named, in.at)
	if err != nil {
		return err
	}
	first, last := bounds(spec.Array)
	err = s.run(ctx, tx, insertJob, job.Number, in.numbers[0], batch.Name, batch.User, spec.Name, first, last, spec.Resources.CPU, spec.Priority,
		job.Since, drover.JobQueued, spec.Array.Size(), asJSON{job}, asJSON{spec})
	if err != nil {
		return err
	}
	for label, value := range spec.Labels {
		if err := s.run(ctx, tx, insertLabel, label, value, job.Number); err != nil {
			return err
		}
	}
	return nil
}

const specQuery = `SELECT batch, spec FROM jobs WHERE number = ?`

// Spec returns a job as it was submitted, and its batch's name.
func (s *Store) Spec(ctx context.Context, number int64) (spec drover.JobSpec, batch string, err error) {
	err = s.spec.QueryRowContext(ctx, number).Scan(&batch, into(&spec))
	if errors.Is(err, sql.ErrNoRows) {
		err = noJob(drover.JobID{Number: number, Index: -1})
	}
	return spec, batch, err
}

// User returns a job's user.
func (s *Store) User(ctx context.Context, number int64) (user string, err error) {
	err = s.read.QueryRowContext(ctx, `SELECT user_name FROM jobs WHERE number = ?`, number).Scan(&user)
	if errors.Is(err, sql.ErrNoRows) {
		err = noJob(drover.JobID{Number: number, Index: -1})
	}
	return user, err
}

// Sibling returns the number of the job with this name in the batch of another.
func (s *Store) Sibling(ctx context.Context, number int64, name string) (sibling int64, err error) {
	err = s.read.QueryRowContext(ctx, `SELECT o.number FROM jobs j JOIN jobs o ON o.submission = j.submission AND o.name = ? WHERE j.number = ?`,
		name, number).Scan(&sibling)
	if errors.Is(err, sql.ErrNoRows) {
		err = drover.Errorf(drover.KindNotFound, "the batch of job %d has no job named %s", number, name)
	}
	return sibling, err
}

// noJob returns the error for an id without a job.
func noJob(id drover.JobID) *drover.Error {
	return drover.Errorf(drover.KindNotFound, "there is no job %v", id).WithHint("drover jobs --all lists all jobs")
}

// noElement returns the error for an index that a job does not have.
func noElement(id drover.JobID, a drover.Array) *drover.Error {
	if !a.Set {
		return noJob(id).WithHint("job %d is not an array", id.Number)
	}
	return noJob(id).WithHint("the array's indices are %.100s", a)
}
