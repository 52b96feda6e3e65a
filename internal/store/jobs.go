package store

import (
	"context"
	"database/sql"
	"slices"

	"drover"
)

// JobFilter chooses what Jobs lists. The zero JobFilter lists every job, and every element of an array, that has had an attempt.
type JobFilter struct {
	Job     int64             // only this job, or elements of this array
	Batch   string            // only of the batches of this name
	States  []drover.JobState // only in one of these states
	Waiting bool              // also those that have had no attempt, whether they wait or were cancelled
	After   drover.JobID      // only those that come after this one
	Limit   int               // at most so many; 0: all
}

// pageSize is how many rows of jobs are held at once.
const pageSize = 256

// Jobs lists jobs, and elements of arrays one by one, by their ids, each with its attempts. The cost of a job is that of its attempts
// that ended. To read on after Limit of them, set After to the last one's id.
func (s *Store) Jobs(ctx context.Context, f JobFilter) ([]drover.Job, error) {
	l := lister{JobFilter: f}
	err := s.look(ctx, "listing jobs", func(tx *sql.Tx) error {
		from := max(f.After.Number, f.Job)
		for !l.full() {
			page, err := collect(ctx, tx, readJob, selectJobs, from, f.Job, f.Job, f.Batch, f.Batch, pageSize)
			if err != nil {
				return err
			}
			for _, row := range page {
				if err := l.add(ctx, tx, row); err != nil {
					return err
				}
			}
			if len(page) < pageSize {
				return nil
			}
			from = page[len(page)-1].job.ID.Number + 1
		}
		return nil
	})
	return l.found, err
}

const selectJobs = `SELECT number, batch, user_name, submitted, state, queued, first_index, last_index, ended, reason, spec
	FROM jobs
	WHERE number >= ? AND (? = 0 OR number = ?) AND (? = '' OR batch = ?) ORDER BY number LIMIT ?`

// jobRow is a row of jobs: what its elements have in common.
type jobRow struct {
	job         drover.Job
	first, last int
	queued      int
	ended       drover.Time
}

func readJob(row scanner) (j jobRow, err error) {
	var spec drover.JobSpec
	var reason drover.Reason
	var submitted drover.Time
	err = row.Scan(&j.job.ID.Number, &j.job.Batch, &j.job.User, &submitted, &j.job.State, &j.queued, &j.first, &j.last, &j.ended,
		into(&reason), into(&spec))
	j.job.Name, j.job.Priority, j.job.Labels = spec.Name, spec.Priority, spec.Labels
	j.job.Command, j.job.Image, j.job.Resources = spec.Command, spec.Image, spec.Resources
	j.job.Placement, j.job.Spot, j.job.After = spec.Placement, spec.Spot, spec.After
	j.job.Timeout, j.job.Submitted, j.job.Reason = drover.Seconds(spec.Timeout), submitted.Std(), reasonOf(reason)
	j.job.Attempts = []drover.Attempt{}
	return j, err
}

// element is the element of this index as it is as long as it has no row of its own: it waits, or was cancelled together with all
// others that waited.
func (j jobRow) element(index int) drover.Job {
	e := j.job
	e.ID.Index = index
	if index >= 0 {
		e.ArrayIndex = &index
	}
	if j.queued > 0 {
		e.State = drover.JobQueued
		return e
	}
	if e.State != drover.JobCancelled {
		e.Reason = &drover.Reason{Code: drover.ReasonCancelled, Text: "cancelled before it had an attempt"}
	}
	e.State, e.Ended = drover.JobCancelled, standard(j.ended)
	return e
}

// lister gathers what passes its filter.
type lister struct {
	JobFilter
	found []drover.Job
}

func (l *lister) full() bool { return l.Limit > 0 && len(l.found) >= l.Limit }

func (l *lister) offer(job drover.Job) {
	if !l.full() && (len(l.States) == 0 || slices.Contains(l.States, job.State)) {
		l.found = append(l.found, job)
	}
}

// add gathers the elements of one job, from where the filter begins.
func (l *lister) add(ctx context.Context, tx *sql.Tx, j jobRow) error {
	next := j.first
	if l.After.Number == j.job.ID.Number {
		next = max(next, l.After.Index+1)
	}
	before := len(l.found)
	if err := l.addElements(ctx, tx, j, next); err != nil {
		return err
	}
	return addAttempts(ctx, tx, l.found[before:])
}

const selectElements = `SELECT idx, state, code, ended, reason FROM elements WHERE job = ? AND idx >= ? ORDER BY idx`

// addElements goes through the rows there are and fills the gaps between them with elements that never had an attempt.
func (l *lister) addElements(ctx context.Context, tx *sql.Tx, j jobRow, next int) error {
	rows, err := tx.QueryContext(ctx, selectElements, j.job.ID.Number, next)
	if err != nil {
		return err
	}
	defer rows.Close()
	for !l.full() && rows.Next() {
		index, job, err := readElement(rows, j)
		if err != nil {
			return err
		}
		l.fill(j, next, index-1)
		l.offer(job)
		next = index + 1
	}
	l.fill(j, next, j.last)
	return rows.Err()
}

// fill offers elements without rows, both ends included.
func (l *lister) fill(j jobRow, first, last int) {
	for i := first; l.Waiting && i <= last && !l.full(); i++ {
		l.offer(j.element(i))
	}
}

func readElement(row scanner, j jobRow) (index int, job drover.Job, err error) {
	var state drover.JobState
	var code *int
	var ended drover.Time
	var reason drover.Reason
	if err := row.Scan(&index, &state, &code, &ended, into(&reason)); err != nil {
		return 0, job, err
	}
	job = j.element(index)
	job.State, job.ExitCode, job.Reason, job.Ended = state, code, reasonOf(reason), standard(ended)
	return index, job, nil
}

const selectAttempts = `SELECT a.idx, a.number, i.name, i.market, a.state, a.code, a.reason, a.started, a.ended, a.max_rss, a.cpu, a.cost
	FROM attempts a JOIN instances i ON i.id = a.instance
	WHERE a.job = ? AND a.idx BETWEEN ? AND ? ORDER BY a.idx, a.number`

// addAttempts gives elements of one job, sorted by index, their attempts.
func addAttempts(ctx context.Context, tx *sql.Tx, elements []drover.Job) error {
	if len(elements) == 0 {
		return nil
	}
	place := make(map[int]*drover.Job, len(elements))
	for i := range elements {
		place[elements[i].ID.Index] = &elements[i]
		elements[i].Attempts = []drover.Attempt{}
	}
	first, last := elements[0].ID, elements[len(elements)-1].ID
	return each(ctx, tx, func(row scanner) error {
		index, a, cost, err := readAttempt(row)
		if job := place[index]; job != nil {
			job.Attempts = append(job.Attempts, a)
			job.Started = &job.Attempts[0].Started
			job.Cost += cost.USD()
		}
		return err
	}, selectAttempts, first.Number, first.Index, last.Index)
}

func readAttempt(row scanner) (index int, a drover.Attempt, cost drover.Money, err error) {
	var reason drover.Reason
	var started, ended drover.Time
	var cpu int64
	err = row.Scan(&index, &a.Number, &a.Instance, &a.Market, &a.State, &a.ExitCode, into(&reason), &started, &ended, &a.MaxRSS,
		&cpu, &cost)
	a.Reason, a.Started, a.Ended, a.CPUSeconds = reasonOf(reason), started.Std(), standard(ended), float64(cpu)/1e9
	return index, a, cost, err
}

// Job is one job, or one element of an array.
func (s *Store) Job(ctx context.Context, id drover.JobID) (job drover.Job, err error) {
	err = s.look(ctx, "reading job "+id.String(), func(tx *sql.Tx) error {
		job, err = one(ctx, tx, id)
		return err
	})
	return job, err
}

// Failures are the jobs and elements that failed, the first to fail first, at most n of them.
func (s *Store) Failures(ctx context.Context, n int) (failed []drover.Job, err error) {
	err = s.look(ctx, "listing failures", func(tx *sql.Tx) error {
		ids, err := collect(ctx, tx, func(row scanner) (id drover.JobID, err error) {
			return id, row.Scan(&id.Number, &id.Index)
		}, `SELECT job, idx FROM elements WHERE state = 'failed' ORDER BY ended, job, idx LIMIT ?`, n)
		for _, id := range ids {
			job, err := one(ctx, tx, id)
			if err != nil {
				return err
			}
			failed = append(failed, job)
		}
		return err
	})
	return failed, err
}

func one(ctx context.Context, tx *sql.Tx, id drover.JobID) (drover.Job, error) {
	l := lister{JobFilter: JobFilter{After: drover.JobID{Number: id.Number, Index: id.Index - 1}, Waiting: true, Limit: 1}}
	rows, err := collect(ctx, tx, readJob, selectJobs, id.Number, id.Number, id.Number, "", "", 1)
	for _, row := range rows {
		if err := l.add(ctx, tx, row); err != nil {
			return drover.Job{}, err
		}
	}
	if err != nil {
		return drover.Job{}, err
	}
	if len(l.found) == 0 || l.found[0].ID != id {
		return drover.Job{}, drover.Errorf(drover.KindNotFound, "there is no such job")
	}
	return l.found[0], nil
}
