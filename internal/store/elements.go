package store

import (
	"context"
	"math"
	"strings"

	"drover"
	"drover/internal/engine"
)

// addElements adds the elements of an array from an index on: those with rows, and between them, in order, those
// without.
func (l *lister) addElements(ctx context.Context, row jobRow, first int) error {
	untried, every := l.untried(row)
	query, args := l.chooseElements(row.job.ID.Number, first, every)
	rows, err := l.tx.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	gaps := cursor{untried, first}
	for !l.full() && rows.Next() {
		e, err := readElement(rows)
		if err != nil {
			return err
		}
		l.fill(row, &gaps, e.index)
		l.offer(row, row.tried(e), e.number)
		gaps.next = e.index + 1
	}
	l.fill(row, &gaps, math.MaxInt)
	return rows.Err()
}

// untried returns the indexes to search for elements without rows, and whether all rows must be read to find those.
func (l *lister) untried(row jobRow) (among engine.Ranges, every bool) {
	switch {
	case l.filter.Tried:
		return nil, false
	case l.wants(drover.JobCancelled) && row.counts[drover.JobCancelled] > 0:
		return engine.RangesOf(row.array), true
	case l.wants(drover.JobQueued):
		return row.waiting, false
	}
	return nil, false
}

const (
	selectElements = `SELECT idx, number, memory, state, code, ended, reason FROM elements`
	// Without this hint SQLite reads the whole array.
	byState = ` INDEXED BY elements_state`
)

// chooseElements returns the query for a job's rows by index. It searches states one by one, since each is contiguous
// in an index.
func (l *lister) chooseElements(job int64, first int, every bool) (string, []any) {
	var c conditions
	c.add(`job = ? AND idx >= ?`, job, first)
	c.addIf(l.filter.Tried, `number > 0`)
	if every || len(l.filter.States) == 0 {
		return c.query(selectElements) + ` ORDER BY idx`, c.args
	}
	var parts []string
	var args []any
	for _, state := range l.filter.States {
		one := c.and(`state = ?`, state)
		parts, args = append(parts, one.query(selectElements+byState)), append(args, one.args...)
	}
	return strings.Join(parts, ` UNION ALL `) + ` ORDER BY idx`, args
}

// readElementOf reads one element of an array, whether it has a row or not.
func readElementOf(ctx context.Context, from source, row jobRow, index int) (drover.Job, error) {
	rows, err := collect(ctx, from, readElement, selectElements+` WHERE job = ? AND idx = ?`, row.job.ID.Number, index)
	if err != nil || len(rows) == 0 {
		return row.untried(index), err
	}
	return row.tried(rows[0]), nil
}

func readElement(row scanner) (e elementRow, err error) {
	return e, row.Scan(&e.index, &e.number, &e.memory, &e.state, &e.code, &e.ended, into(&e.reason))
}

// fill offers elements without rows below an index.
func (l *lister) fill(row jobRow, gaps *cursor, below int) {
	for i, ok := gaps.peek(); ok && i < below && !l.full(); i, ok = gaps.peek() {
		l.offer(row, row.untried(i), 0)
		gaps.next = i + 1
	}
}

// cursor walks through a set of indexes.
type cursor struct {
	left engine.Ranges
	next int
}

// peek returns the lowest index of the set that is at least next.
func (c *cursor) peek() (int, bool) {
	for len(c.left) > 0 && c.left[0].Last < c.next {
		c.left = c.left[1:]
	}
	if len(c.left) == 0 {
		return 0, false
	}
	return max(c.next, c.left[0].First), true
}
