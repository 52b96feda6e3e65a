package store

import (
	"context"
	"database/sql"
	"slices"

	"drover"
	"drover/internal/engine"
)

// Pending returns the jobs that the engine has not taken: new ones by number, then those put back in the queue, in that
// order, with what is known of their elements. The first Commit that writes a job takes it. A call costs next to
// nothing if there are no such jobs.
//
// A job's list of jobs to wait for does not include those that have already ended as required.
func (s *Store) Pending(ctx context.Context) (jobs []engine.Job, err error) {
	err = s.look(ctx, "reading the submitted jobs", func(tx *sql.Tx) error {
		jobs, err = collect(ctx, tx, readDocument[engine.Job], `SELECT engine FROM jobs WHERE NOT taken ORDER BY again, number`)
		if err != nil {
			return err
		}
		for i := range jobs {
			if jobs[i].Again > 0 {
				if err := recall(ctx, tx, &jobs[i]); err != nil {
					return err
				}
			}
			if err := dropEnded(ctx, tx, &jobs[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return jobs, err
}

// recall fills in what is known about the earlier attempts of a job's elements.
func recall(ctx context.Context, tx *sql.Tx, j *engine.Job) (err error) {
	j.Tried, err = collect(ctx, tx, func(row scanner) (e engine.Element, err error) {
		return e, row.Scan(&e.Index, &e.Number, &e.Lost, &e.Retried, &e.Interrupted, &e.Memory, &e.Until)
	}, `SELECT idx, number, lost, retried, interrupted, memory, not_before FROM elements`+byState+` WHERE job = ? AND state = 'queued' ORDER BY idx`, j.Number)
	return err
}

// dropEnded removes the jobs that a job need not wait for any more.
func dropEnded(ctx context.Context, tx *sql.Tx, j *engine.Job) error {
	if len(j.After)+len(j.AfterAny) == 0 {
		return nil
	}
	return each(ctx, tx, func(row scanner) error {
		var number int64
		var state drover.JobState
		err := row.Scan(&number, &state)
		ended := func(n int64) bool { return n == number }
		if j.AfterAny = slices.DeleteFunc(j.AfterAny, ended); state == drover.JobSucceeded {
			j.After = slices.DeleteFunc(j.After, ended)
		}
		return err
	}, `SELECT number, state FROM jobs WHERE number IN (SELECT value FROM json_each(?)) AND engine IS NULL`, asJSON{slices.Concat(j.After, j.AfterAny)})
}
