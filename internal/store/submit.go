package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"drover"
	"drover/internal/engine"
)

const insertJob = `INSERT INTO jobs (number, submission, batch, user_name, name, first_index, last_index, cpu_milli, submitted, taken, state,
	queued, succeeded, failed, cancelled, ended, reason, engine, spec) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, FALSE, ?, ?, 0, 0, 0, 0, '{}', ?, ?)`

// Submit writes down the jobs of a batch and returns their numbers, in the batch's order. They are the engine's to take: see Pending.
func (s *Store) Submit(ctx context.Context, batch drover.Batch) (numbers []int64, err error) {
	err = s.change(ctx, "submitting batch "+batch.Name, func(tx *sql.Tx) error {
		numbers, err = takeNumbers(ctx, tx, len(batch.Jobs))
		if err != nil {
			return err
		}
		now := drover.TimeOf(time.Now())
		named := make(map[string]int64, len(numbers))
		for i, number := range numbers {
			named[batch.Jobs[i].Name] = number
		}
		for i, spec := range batch.Jobs {
			job, err := newJob(numbers[i], batch.User, spec, named, now)
			if err != nil {
				return err
			}
			if err := insert(ctx, tx, batch, numbers[0], spec, job); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return numbers, nil
}

func takeNumbers(ctx context.Context, tx *sql.Tx, n int) ([]int64, error) {
	var last int64
	err := tx.QueryRowContext(ctx, `UPDATE fleet SET last_job = last_job + ? RETURNING last_job`, n).Scan(&last)
	if err != nil {
		return nil, err
	}
	numbers := make([]int64, n)
	for i := range numbers {
		numbers[i] = last - int64(n) + int64(i) + 1
	}
	return numbers, nil
}

// newJob is a job as the engine first meets it: all of it waits.
func newJob(number int64, user string, spec drover.JobSpec, named map[string]int64, now drover.Time) (engine.Job, error) {
	first, last := bounds(spec.Array)
	job := engine.Job{
		Number: number, Name: spec.Name, User: user,
		Shape: drover.Shape{Need: spec.Resources, Placement: spec.Placement, Spot: spec.Spot},
		Array: spec.Array, Priority: spec.Priority, Attempts: spec.Attempts, Retry: spec.Retry, Timeout: spec.Timeout,
		Queued: engine.Ranges{{First: first, Last: last}}, Since: now,
	}
	for _, name := range spec.After {
		before, ok := named[name]
		if !ok {
			return job, drover.Errorf(drover.KindInvalid, "job %s comes after %q, of which the batch has none", spec.Name, name)
		}
		job.After = append(job.After, before)
	}
	return job, nil
}

// bounds are the indexes of a job's elements.
func bounds(a drover.Array) (first, last int) {
	if !a.Set {
		return -1, -1
	}
	return a.First, a.Last
}

func insert(ctx context.Context, tx *sql.Tx, batch drover.Batch, submission int64, spec drover.JobSpec, job engine.Job) error {
	kept, err := text(job)
	if err != nil {
		return err
	}
	asked, err := text(spec)
	if err != nil {
		return err
	}
	first, last := bounds(spec.Array)
	_, err = tx.ExecContext(ctx, insertJob, job.Number, submission, batch.Name, batch.User, spec.Name, first, last, spec.Resources.CPU, job.Since,
		drover.JobQueued, spec.Array.Size(), kept, asked)
	return err
}

// Pending are the submitted jobs that the engine has not taken, in the order of their numbers. A job is taken by the first Commit that
// writes it.
func (s *Store) Pending(ctx context.Context) ([]engine.Job, error) {
	jobs, err := collect(ctx, s.read, readDocument[engine.Job], `SELECT engine FROM jobs WHERE NOT taken ORDER BY number`)
	if err != nil {
		return nil, fmt.Errorf("reading the submitted jobs: %w", err)
	}
	return jobs, nil
}

const specQuery = `SELECT batch, spec FROM jobs WHERE number = ?`

// Spec is a job as it was submitted, and its batch's name.
func (s *Store) Spec(ctx context.Context, number int64) (spec drover.JobSpec, batch string, err error) {
	err = s.spec.QueryRowContext(ctx, number).Scan(&batch, into(&spec))
	if errors.Is(err, sql.ErrNoRows) {
		err = drover.Errorf(drover.KindNotFound, "there is no job %d", number)
	}
	return spec, batch, err
}

// Sibling is the number of the job with this name in the batch of another.
func (s *Store) Sibling(ctx context.Context, number int64, name string) (sibling int64, err error) {
	err = s.read.QueryRowContext(ctx, `SELECT o.number FROM jobs j JOIN jobs o ON o.submission = j.submission AND o.name = ? WHERE j.number = ?`,
		name, number).Scan(&sibling)
	if errors.Is(err, sql.ErrNoRows) {
		err = drover.Errorf(drover.KindNotFound, "the batch of job %d has no job named %s", number, name)
	}
	return sibling, err
}
