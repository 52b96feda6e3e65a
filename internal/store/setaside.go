package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"drover"
	"drover/internal/engine"
)

// A controller starts even if a live attempt cannot be read, or has an impossible number. The attempt is set aside: its
// row is moved elsewhere, its element waits, and its job has priority 0 until an operator has checked whether the
// attempt still runs somewhere.

// foul is the part of one element that the engine cannot load.
type foul struct {
	job     int64
	index   int
	number  int64
	attempt bool // it is a live attempt's row, not only the element's
	why     string
}

// setAside removes from the records what the engine cannot load.
func (s *Store) setAside(ctx context.Context, tx *sql.Tx) error {
	all, err := foulRows(ctx, tx)
	if err != nil {
		return fmt.Errorf("looking for rows that cannot be read: %w", err)
	}
	for _, f := range all {
		if err := s.setAsideOne(ctx, tx, f); err != nil {
			return fmt.Errorf("setting aside attempt %d of job %d: %w", f.number, f.job, err)
		}
	}
	return nil
}

func foulRows(ctx context.Context, tx *sql.Tx) (all []foul, err error) {
	err = each(ctx, tx, func(row scanner) error {
		f := foul{attempt: true}
		var text string
		if err := row.Scan(&f.job, &f.index, &f.number, &text); err != nil {
			return err
		}
		id := drover.AttemptID{Job: drover.JobID{Number: f.job, Index: f.index}, Number: int(f.number)}
		var a engine.Attempt
		switch err := json.Unmarshal([]byte(text), &a); {
		case err != nil:
			f.why = err.Error()
		case !id.Plausible() || a.ID != id:
			f.why = "its number is not a valid attempt number"
		default:
			return nil
		}
		all = append(all, f)
		return nil
	}, `SELECT job, idx, number, engine FROM attempts WHERE engine IS NOT NULL`)
	if err != nil {
		return nil, err
	}
	return all, each(ctx, tx, func(row scanner) error {
		f := foul{why: "the number of its last attempt is not valid"}
		err := row.Scan(&f.job, &f.index, &f.number)
		all = append(all, f)
		return err
	}, `SELECT e.job, e.idx, e.number FROM jobs j JOIN elements e ON e.job = j.number
		WHERE j.engine IS NOT NULL AND e.state IN ('queued', 'running') AND e.number NOT BETWEEN 0 AND ?
		AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.job = e.job AND a.idx = e.idx AND a.engine IS NOT NULL)`, drover.MaxNumber)
}

const (
	keepAside = `INSERT INTO set_aside (job, what, row) VALUES (?, ?, coalesce((SELECT json_object('job', job, 'idx', idx, 'number', number, 'instance', instance,
		'state', state, 'started', started, 'ended', ended, 'reason', reason, 'engine', engine) FROM attempts WHERE job = ? AND idx = ? AND number = ?), '{}'))`
	dropAttempt = `DELETE FROM attempts WHERE job = ? AND idx = ? AND number = ?`
	// Attempt numbers continue from the last valid one.
	requeueFoul = `UPDATE elements SET state = 'queued', number = coalesce((SELECT max(number) FROM attempts a
		WHERE a.job = elements.job AND a.idx = elements.idx AND a.number BETWEEN 1 AND ?), 0) WHERE job = ? AND idx = ? AND state IN ('queued', 'running')`
)

func (s *Store) setAsideOne(ctx context.Context, tx *sql.Tx, f foul) error {
	job := drover.JobID{Number: f.job, Index: f.index}
	what := fmt.Sprintf("attempt %d of job %v: %s", f.number, job, f.why)
	if err := execute(ctx, tx, keepAside, f.job, what, f.job, f.index, f.number); err != nil {
		return err
	}
	if f.attempt {
		if err := execute(ctx, tx, dropAttempt, f.job, f.index, f.number); err != nil {
			return err
		}
	}
	if err := execute(ctx, tx, requeueFoul, drover.MaxNumber, f.job, f.index); err != nil {
		return err
	}
	var j engine.Job
	err := tx.QueryRowContext(ctx, `SELECT engine FROM jobs WHERE number = ? AND taken AND engine IS NOT NULL`, f.job).Scan(into(&j))
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	j.Priority = 0
	if !j.Queued.Has(f.index) {
		j.Queued.Add(f.index)
	}
	return s.putJob(ctx, tx, j)
}

// SetAside lists what could not be loaded, as long as its job is held because of it.
func (s *Store) SetAside(ctx context.Context) ([]string, error) {
	return lookUp(ctx, s, "listing the records that were set aside", readColumn[string],
		`SELECT a.what FROM set_aside a JOIN jobs j ON j.number = a.job WHERE j.engine IS NOT NULL AND j.priority = 0 ORDER BY a.id`)
}
