package store

import (
	"context"
	"database/sql"
	"math"
	"slices"

	"drover"
)

// pageSize is how many rows of jobs are held at once.
const pageSize = 256

// pageBytes is the approximate size limit of a page as JSON: a job's command and labels are repeated with each
// element of its array.
const pageBytes = 4 << 20

// Jobs lists jobs by id: each array as a whole, or its elements one by one. To read on after Limit of them, set After
// to the last one's id. A negative Limit lists all. The cost of unfinished jobs counts up to now.
//
// The work is proportional to what is listed, with two exceptions: jobs are searched through the filter's most
// selective column only, and the cancelled elements of an array that never started are found by reading those that
// did.
func (s *Store) Jobs(ctx context.Context, now drover.Time, f drover.JobFilter) (list []drover.Job, err error) {
	list, _, err = s.listJobs(ctx, now, f, 0)
	return list, err
}

// JobsPage is Jobs for the API: a page ends after Limit jobs, at a few MiB, or when enough jobs were searched for the
// filter's Match. Next is the After of the next page; its number is 0 if there is none.
func (s *Store) JobsPage(ctx context.Context, now drover.Time, f drover.JobFilter) (list []drover.Job, next drover.JobID, err error) {
	return s.listJobs(ctx, now, f, pageBytes)
}

// listJobs lists jobs up to about a number of bytes; 0: no limit.
func (s *Store) listJobs(ctx context.Context, now drover.Time, f drover.JobFilter, most int) (list []drover.Job, next drover.JobID, err error) {
	if f.Limit == 0 || f.Limit > drover.MaxPage {
		f.Limit = drover.MaxPage
	}
	err = s.look(ctx, "listing jobs", func(tx *sql.Tx) error {
		l := lister{tx: tx, filter: f, most: most}
		if err := l.gather(ctx); err != nil {
			return err
		}
		for page := range slices.Chunk(l.found, pageSize) {
			if err := addWork(ctx, tx, now, page); err != nil {
				return err
			}
		}
		list, next = l.found, l.next()
		return nil
	})
	return list, next, err
}

// Job returns a job, a whole array, or one of its elements.
func (s *Store) Job(ctx context.Context, now drover.Time, id drover.JobID) (job drover.Job, err error) {
	job, _, err = s.JobLife(ctx, now, id)
	return job, err
}

// JobLife is Job with the job's current life: its number among all jobs that were put back in the queue, 0 before. A
// wish names that life, so that it does not affect a later one.
func (s *Store) JobLife(ctx context.Context, now drover.Time, id drover.JobID) (job drover.Job, again int64, err error) {
	err = s.look(ctx, "reading job "+id.String(), func(tx *sql.Tx) error {
		job, again, err = readOne(ctx, tx, now, id)
		return err
	})
	return job, again, err
}

func readOne(ctx context.Context, tx *sql.Tx, now drover.Time, id drover.JobID) (job drover.Job, again int64, err error) {
	row, err := rowOf(ctx, tx, id)
	if err != nil {
		return job, 0, err
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

// rowOf returns the row of the job that an id names, whole or by an element.
func rowOf(ctx context.Context, tx *sql.Tx, id drover.JobID) (row jobRow, err error) {
	rows, _, err := jobRows(ctx, tx, drover.JobFilter{Job: id.Number}, everything, 1)
	switch {
	case err != nil:
		return row, err
	case len(rows) == 0:
		return row, noJob(id)
	case !indexed(rows[0].array, id.Index):
		return row, noElement(id, rows[0].array)
	}
	return rows[0], nil
}

// lister collects the jobs and elements that pass its filter.
type lister struct {
	tx     *sql.Tx
	filter drover.JobFilter
	most   int // bytes of found; 0: any number
	found  []drover.Job
	bytes  int   // of found, approximately
	passed int64 // the last job that was searched, if the search stopped there
}

// gather reads the rows of jobs, from where the filter begins.
func (l *lister) gather(ctx context.Context) error {
	all, err := l.stretch(ctx)
	for err == nil && !l.full() {
		n := pageSize
		if l.filter.Limit > 0 {
			n = min(n, l.filter.Limit-len(l.found))
		}
		rows, more, err := jobRows(ctx, l.tx, l.filter, all, n)
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
		all = all.after(rows[len(rows)-1].job.ID.Number, l.filter.Newest)
	}
	return err
}

// next returns the After of the next page; its number is 0 if there is none.
func (l *lister) next() drover.JobID {
	if n := len(l.found); n > 0 && l.full() {
		return l.found[n-1].ID
	}
	return drover.JobID{Number: l.passed, Index: -1}
}

// searched is how many jobs one page of a search reads.
const searched = 20_000

// stretch is a range of job numbers, both ends included.
type stretch struct{ from, to int64 }

var everything = stretch{0, math.MaxInt64}

// after returns the rest of the stretch after a number.
func (s stretch) after(number int64, newest bool) stretch {
	if newest {
		s.to = number - 1
	} else {
		s.from = number + 1
	}
	return s
}

// stretch returns where to search for the page.
func (l *lister) stretch(ctx context.Context) (s stretch, err error) {
	s = everything
	after := l.filter.After.Number
	switch {
	case l.filter.Elements:
		s.from = after
	case !l.filter.Newest || after != 0:
		s = s.after(after, l.filter.Newest)
	}
	if l.filter.Match == "" {
		return s, nil
	}
	var last int64
	err = l.tx.QueryRowContext(ctx, `SELECT coalesce(max(number), 0) FROM jobs`).Scan(&last)
	switch {
	case l.filter.Newest:
		s.to = min(s.to, last)
		if s.from = max(1, s.to-searched+1); s.from > 1 {
			l.passed = s.from
		}
	default:
		if s.to = s.from + searched - 1; s.to < last {
			l.passed = s.to
		}
	}
	return s, err
}

func (l *lister) full() bool {
	return l.filter.Limit > 0 && len(l.found) >= l.filter.Limit || l.most > 0 && l.bytes >= l.most
}

// wants reports whether the filter accepts jobs in this state.
func (l *lister) wants(state drover.JobState) bool {
	return len(l.filter.States) == 0 || slices.Contains(l.filter.States, state)
}

// offer adds a job of a row if it passes the filter; attempts is how many it will have.
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

// attemptBytes is the approximate size of an attempt as JSON.
const attemptBytes = 400

// add adds one job, or its elements from where the filter begins.
func (l *lister) add(ctx context.Context, row jobRow) error {
	after, id := l.filter.After, row.job.ID
	switch {
	case l.filter.Elements && row.array.Set:
		next := row.array.First
		if after.Number == id.Number {
			next = max(next, after.Index+1)
		}
		return l.addElements(ctx, row, next)
	case l.filter.Newest || after.Number != id.Number:
		attempts := 0
		if row.only != nil {
			attempts = row.only.number
		}
		l.offer(row, row.whole(), attempts)
	}
	return nil
}
