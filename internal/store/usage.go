package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"drover"
)

const (
	usageQuery = `SELECT coalesce(max(inputs), 0), coalesce(max(results), 0), coalesce(max(records), 0) FROM usage WHERE user_name = ?`
	workQuery  = `SELECT count(*), coalesce(sum(last_index - first_index + 1), 0) FROM jobs WHERE user_name = ? AND engine IS NOT NULL`
	putResults = `INSERT INTO results (job, idx, bytes) VALUES (?, ?, ?) ON CONFLICT (job, idx) DO UPDATE SET bytes = excluded.bytes`
	oldResults = `SELECT r.job FROM results r CROSS JOIN jobs j ON j.number = r.job WHERE r.job > ? AND r.bytes > 0 AND j.engine IS NULL AND j.ended < ?
		AND NOT EXISTS (SELECT 1 FROM jobs o WHERE o.submission = j.submission AND o.engine IS NOT NULL) GROUP BY r.job ORDER BY r.job LIMIT ?`
)

// Usage returns what a user uses of the limits.
func (s *Store) Usage(ctx context.Context, user string) (u drover.Usage, err error) {
	err = s.look(ctx, "adding up a user's usage", func(tx *sql.Tx) error {
		u, err = usage(ctx, tx, user)
		return err
	})
	return u, err
}

func usage(ctx context.Context, tx *sql.Tx, user string) (u drover.Usage, err error) {
	return u, errors.Join(
		tx.QueryRowContext(ctx, usageQuery, user).Scan(&u.Inputs, &u.Results, &u.Records),
		tx.QueryRowContext(ctx, workQuery, user).Scan(&u.Jobs, &u.Elements),
	)
}

// checkUsage refuses a transaction that has taken a user over a limit. Inputs do not count if they have not grown.
func checkUsage(ctx context.Context, tx *sql.Tx, user string, limits drover.UserLimits, before drover.Bytes) error {
	if limits == (drover.UserLimits{}) {
		return nil
	}
	now, err := usage(ctx, tx, user)
	if err == nil && now.Inputs > before {
		err = limits.CheckInputs(user, now.Inputs)
	}
	if err == nil {
		err = limits.CheckWork(user, now)
	}
	return err
}

// PutResults records the size of the logs and outputs of jobs or elements. Unknown jobs are ignored.
func (s *Store) PutResults(ctx context.Context, bytes map[drover.JobID]int64) error {
	return s.change(ctx, "recording the sizes of results", func(tx *sql.Tx) error {
		for id, n := range bytes {
			if err := s.run(ctx, tx, putResults, id.Number, id.Index, n); err != nil {
				return err
			}
		}
		return nil
	})
}

// UsersOver returns the users whose results take more than a number of bytes.
func (s *Store) UsersOver(ctx context.Context, results drover.Bytes) ([]string, error) {
	return lookUp(ctx, s, "looking up users over the limit", readColumn[string], `SELECT user_name FROM usage WHERE results > ?`, results)
}

// OldResults returns the first final jobs after another with results that ended before a time, of batches that are final
// as a whole.
func (s *Store) OldResults(ctx context.Context, before drover.Time, after int64, most int) ([]int64, error) {
	return lookUp(ctx, s, "looking up old results", readColumn[int64], oldResults, after, before, most)
}

// Leavings returns the indexes of a job's elements with results, and the total size of these.
func (s *Store) Leavings(ctx context.Context, job int64) (indexes []int, bytes int64, err error) {
	indexes, err = lookUp(ctx, s, fmt.Sprintf("looking up the results of job %d", job), func(row scanner) (index int, err error) {
		var n int64
		err = row.Scan(&index, &n)
		bytes += n
		return index, err
	}, `SELECT idx, bytes FROM results WHERE job = ? AND bytes > 0 ORDER BY idx`, job)
	return indexes, bytes, err
}

// ForgetResults records that a job's results are gone.
func (s *Store) ForgetResults(ctx context.Context, job int64) error {
	return s.change(ctx, fmt.Sprintf("deleting the records of the results of job %d", job), func(tx *sql.Tx) error {
		if err := execute(ctx, tx, `DELETE FROM outputs WHERE job = ?`, job); err != nil {
			return err
		}
		return execute(ctx, tx, `UPDATE results SET bytes = 0 WHERE job = ?`, job)
	})
}

// ResultsOf returns a user's jobs and elements with results.
func (s *Store) ResultsOf(ctx context.Context, user string) ([]drover.JobID, error) {
	return lookUp(ctx, s, "looking up the results of "+user, func(row scanner) (id drover.JobID, err error) {
		return id, row.Scan(&id.Number, &id.Index)
	}, `SELECT r.job, r.idx FROM jobs j JOIN results r ON r.job = j.number WHERE j.user_name = ? AND r.bytes > 0`, user)
}
