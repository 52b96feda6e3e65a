package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"

	"drover"
)

// pageSize is how many rows of jobs are held at once.
const pageSize = 256

// pageBytes is about how long a page may be as JSON: a job's command and labels come again with each element of its array.
const pageBytes = 4 << 20

// Jobs lists jobs by their ids: each array as a whole, or its elements one by one. To read on after Limit of them, set After to the last
// one's id. A negative Limit lists all there are. Money of what is not over counts up to now.
//
// The work is bounded by what is listed, whatever else there is, but for two things: jobs are sought through the filter's most telling
// column alone, and the cancelled elements of an array that were never started are found by going through those that were.
func (s *Store) Jobs(ctx context.Context, now drover.Time, f drover.JobFilter) (list []drover.Job, err error) {
	list, _, err = s.listJobs(ctx, now, f, 0)
	return list, err
}

// JobsPage is Jobs for a stranger: a page ends after Limit jobs, or when it has grown to a few MiB. More says that there may be further jobs, after the
// last one's id.
func (s *Store) JobsPage(ctx context.Context, now drover.Time, f drover.JobFilter) (list []drover.Job, more bool, err error) {
	return s.listJobs(ctx, now, f, pageBytes)
}

// listJobs lists jobs, of about so many bytes; 0: any number.
func (s *Store) listJobs(ctx context.Context, now drover.Time, f drover.JobFilter, most int) (list []drover.Job, more bool, err error) {
	if f.Limit == 0 || f.Limit > drover.MaxPage {
		f.Limit = drover.MaxPage
	}
	err = s.look(ctx, "listing jobs", func(tx *sql.Tx) error {
		l := lister{tx: tx, filter: f, most: most}
		list, err = l.list(ctx, now)
		more = l.full()
		return err
	})
	return list, more, err
}

// Job is one job, an array as a whole, or one element of it.
func (s *Store) Job(ctx context.Context, now drover.Time, id drover.JobID) (job drover.Job, err error) {
	job, _, err = s.JobLife(ctx, now, id)
	return job, err
}

// JobLife is one job, like Job, with the life that it is in: its place among all jobs that were put back in the queue, 0 before it ever was.
// A wish for the job as it is says that, so that it does not concern a later life.
func (s *Store) JobLife(ctx context.Context, now drover.Time, id drover.JobID) (job drover.Job, again int64, err error) {
	err = s.look(ctx, "reading job "+id.String(), func(tx *sql.Tx) error {
		job, again, err = readOne(ctx, tx, now, id)
		return err
	})
	return job, again, err
}

// Failures are the jobs and elements that failed, the first to fail first, at most n of them.
func (s *Store) Failures(ctx context.Context, now drover.Time, n int) (failed []drover.Job, err error) {
	err = s.look(ctx, "listing failures", func(tx *sql.Tx) error {
		ids, err := collect(ctx, tx, func(row scanner) (id drover.JobID, err error) {
			return id, row.Scan(&id.Number, &id.Index)
		}, `SELECT job, idx FROM elements WHERE state = 'failed' ORDER BY ended, job, idx LIMIT ?`, n)
		for _, id := range ids {
			job, _, err := readOne(ctx, tx, now, id)
			if err != nil {
				return err
			}
			failed = append(failed, job)
		}
		return err
	})
	return failed, err
}

func readOne(ctx context.Context, tx *sql.Tx, now drover.Time, id drover.JobID) (job drover.Job, again int64, err error) {
	rows, _, err := jobRows(ctx, tx, drover.JobFilter{Job: id.Number}, 0, 1)
	if err != nil {
		return job, 0, err
	}
	if len(rows) == 0 {
		return job, 0, noJob(id)
	}
	row := rows[0]
	if !row.has(id.Index) {
		return job, 0, noElement(id, row.array)
	}
	one := []drover.Job{row.whole()}
	if id.Index >= 0 {
		if one[0], err = readElementOf(ctx, tx, row, id.Index); err != nil {
			return job, 0, err
		}
	}
	err = addWork(ctx, tx, now, one)
	return one[0], row.again, err
}

// lister gathers what passes its filter.
type lister struct {
	tx     *sql.Tx
	filter drover.JobFilter
	most   int // bytes of what is found; 0: any number
	found  []drover.Job
	bytes  int // of what is found, about
}

func (l *lister) list(ctx context.Context, now drover.Time) ([]drover.Job, error) {
	if err := l.gather(ctx); err != nil {
		return nil, err
	}
	for page := range slices.Chunk(l.found, pageSize) {
		if err := addWork(ctx, l.tx, now, page); err != nil {
			return nil, err
		}
	}
	return l.found, nil
}

// gather goes through the rows of jobs, from where the filter begins.
func (l *lister) gather(ctx context.Context) error {
	from := l.filter.After.Number
	if !l.filter.Elements {
		from++
	}
	for !l.full() {
		n := pageSize
		if l.filter.Limit > 0 {
			n = min(n, l.filter.Limit-len(l.found))
		}
		rows, more, err := jobRows(ctx, l.tx, l.filter, from, n)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if err := l.add(ctx, row); err != nil {
				return err
			}
		}
		if !more {
			return nil
		}
		from = rows[len(rows)-1].job.ID.Number + 1
	}
	return nil
}

func (l *lister) full() bool {
	return l.filter.Limit > 0 && len(l.found) >= l.filter.Limit || l.most > 0 && l.bytes >= l.most
}

// wants reports whether the filter lets jobs in this state pass.
func (l *lister) wants(state drover.JobState) bool {
	return len(l.filter.States) == 0 || slices.Contains(l.filter.States, state)
}

// offer takes a job of a row if it passes the filter. It will have so many attempts.
func (l *lister) offer(row jobRow, job drover.Job, attempts int) {
	if l.full() || !l.wants(job.State) {
		return
	}
	l.found = append(l.found, job)
	l.bytes += row.bytes + attempts*attemptBytes
	if job.Reason != nil {
		l.bytes += len(job.Reason.Text)
	}
}

// attemptBytes is about how long an attempt is as JSON.
const attemptBytes = 400

// bytesOf is how long a job is as JSON, without its attempts.
func bytesOf(job drover.Job) (int, error) {
	b, err := json.Marshal(job)
	return len(b), err
}

// add gathers one job, or its elements from where the filter begins.
func (l *lister) add(ctx context.Context, row jobRow) error {
	after, id := l.filter.After, row.job.ID
	switch {
	case l.filter.Elements && row.array.Set:
		next := row.array.First
		if after.Number == id.Number {
			next = max(next, after.Index+1)
		}
		return l.addElements(ctx, row, next)
	case after.Number != id.Number:
		l.offer(row, row.whole(), row.attempts())
	}
	return nil
}
