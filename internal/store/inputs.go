package store

import (
	"context"
	"database/sql"
	"errors"

	"drover"
)

const (
	addInput = `INSERT INTO inputs (user_name, hash, size, sent, used) VALUES (?, ?, ?, ?, FALSE)
		ON CONFLICT (user_name, hash) DO UPDATE SET sent = excluded.sent`
	useInput = `INSERT INTO inputs (user_name, hash, size, sent, used) VALUES (?, ?, ?, ?, TRUE)
		ON CONFLICT (user_name, hash) DO UPDATE SET used = TRUE WHERE NOT used`
	inputSize = `SELECT size FROM inputs WHERE hash = ? AND user_name IN (?, ?)`
)

// AddInput records that a user has sent contents, which that user's jobs may use from now on. Sending them again
// delays their removal.
func (s *Store) AddInput(ctx context.Context, now drover.Time, user string, in drover.File) error {
	return s.change(ctx, "recording an input", func(tx *sql.Tx) error {
		return execute(ctx, tx, addInput, user, in.Hash, in.Size, now)
	})
}

// MissingInputs returns the hashes whose contents the user has not sent, even if others have.
func (s *Store) MissingInputs(ctx context.Context, user string, hashes []string) ([]string, error) {
	return lookUp(ctx, s, "looking up inputs", readColumn[string], `SELECT value FROM json_each(?1) WHERE value NOT IN
		(SELECT hash FROM inputs WHERE user_name = ?2 AND hash IN (SELECT value FROM json_each(?1))) ORDER BY key`, asJSON{hashes}, user)
}

// ForgetInputs drops inputs that were sent before a time and that no job uses.
func (s *Store) ForgetInputs(ctx context.Context, before drover.Time) error {
	return s.change(ctx, "deleting the records of inputs", func(tx *sql.Tx) error {
		return execute(ctx, tx, `DELETE FROM inputs WHERE NOT used AND sent < ?`, before)
	})
}

// StrayInputs returns the hashes that nobody has sent as an input.
func (s *Store) StrayInputs(ctx context.Context, hashes []string) ([]string, error) {
	return lookUp(ctx, s, "looking up inputs", readColumn[string],
		`SELECT value FROM json_each(?1) WHERE value NOT IN (SELECT hash FROM inputs WHERE hash IN (SELECT value FROM json_each(?1)))`, asJSON{hashes})
}

// NoInput is the error for a job with an input that its submitter has not sent.
func NoInput(job string, f drover.File) error {
	return drover.Errorf(drover.KindInvalid, "job %s: its input %s has not been uploaded", job, f.Path).
		WithHint("upload it first: PUT /v1/inputs/%s", f.Hash)
}

// useInputs records which inputs a batch's jobs use. Unless the submission has no sender, the sender or the jobs'
// user must have sent each of them.
func (s *Store) useInputs(ctx context.Context, tx *sql.Tx, in arrival, sender string) error {
	noted := map[string]bool{}
	for _, spec := range in.batch.Jobs {
		for _, f := range spec.Files {
			if noted[f.Hash] {
				continue
			}
			noted[f.Hash] = true
			size := f.Size
			if sender != "" {
				err := tx.StmtContext(ctx, s.prepared[inputSize]).QueryRowContext(ctx, f.Hash, sender, in.batch.User).Scan(&size)
				if errors.Is(err, sql.ErrNoRows) {
					return NoInput(spec.Name, f)
				}
				if err != nil {
					return err
				}
			}
			if err := s.run(ctx, tx, useInput, in.batch.User, f.Hash, size, in.at); err != nil {
				return err
			}
		}
	}
	return nil
}
