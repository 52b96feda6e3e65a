package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"drover"
)

const (
	usageQuery = `SELECT coalesce(max(inputs), 0), coalesce(max(results), 0) FROM usage WHERE user_name = ?`
	workQuery  = `SELECT count(*), coalesce(sum(last_index - first_index + 1), 0) FROM jobs WHERE user_name = ? AND engine IS NOT NULL`
	putResults = `INSERT INTO results (job, idx, bytes) VALUES (?, ?, ?) ON CONFLICT (job, idx) DO UPDATE SET bytes = excluded.bytes`
)

// Usage is how much a user has.
func (s *Store) Usage(ctx context.Context, user string) (u drover.Usage, err error) {
	err = s.look(ctx, "adding up what a user has", func(tx *sql.Tx) error {
		u, err = usage(ctx, tx, user)
		return err
	})
	return u, err
}

func usage(ctx context.Context, tx *sql.Tx, user string) (u drover.Usage, err error) {
	return u, errors.Join(
		tx.QueryRowContext(ctx, usageQuery, user).Scan(&u.Inputs, &u.Results),
		tx.QueryRowContext(ctx, workQuery, user).Scan(&u.Jobs, &u.Elements),
	)
}

// checkUsage refuses what a transaction has done if that takes a user over a limit. Inputs are no reason if there were as many before.
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

// PutResults writes down how many bytes the logs and outputs take that jobs or elements have left. Of a job that is not in the records nothing is.
func (s *Store) PutResults(ctx context.Context, bytes map[drover.JobID]int64) error {
	return s.change(ctx, "writing down how large results are", func(tx *sql.Tx) error {
		for id, n := range bytes {
			if err := s.run(ctx, tx, putResults, id.Number, id.Index, n); err != nil {
				return err
			}
		}
		return nil
	})
}

// UsersOver are the users whose results take more than so many bytes.
func (s *Store) UsersOver(ctx context.Context, results drover.Bytes) ([]string, error) {
	users, err := collect(ctx, s.read, readText, `SELECT user_name FROM usage WHERE results > ?`, results)
	if err != nil {
		return nil, fmt.Errorf("looking up who is over the limit: %w", err)
	}
	return users, nil
}

// ResultsOf are the jobs and elements of a user's that have left anything.
func (s *Store) ResultsOf(ctx context.Context, user string) (ids []drover.JobID, err error) {
	ids, err = collect(ctx, s.read, func(row scanner) (id drover.JobID, err error) { return id, row.Scan(&id.Number, &id.Index) },
		`SELECT r.job, r.idx FROM jobs j JOIN results r ON r.job = j.number WHERE j.user_name = ? AND r.bytes > 0`, user)
	if err != nil {
		return nil, fmt.Errorf("looking up the results of %s: %w", user, err)
	}
	return ids, nil
}
