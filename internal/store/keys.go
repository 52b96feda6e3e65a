package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"drover"
)

const (
	keyTTL = 24 * time.Hour // how long a key is remembered
	maxKey = 255            // bytes
)

// once is a submission with an idempotency key.
type once struct {
	user, key, digest string
}

// newOnce returns nil for a submission without a key. The digest is that of the batch's JSON, in which maps are sorted.
func newOnce(s drover.Submission) (*once, error) {
	if s.Key == "" {
		return nil, nil
	}
	if len(s.Key) > maxKey {
		return nil, drover.Errorf(drover.KindInvalid, "a key of %d bytes is too long", len(s.Key)).WithHint("use at most %d bytes", maxKey)
	}
	batch, err := json.Marshal(s.Batch)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(batch)
	return &once{s.Batch.User, s.Key, hex.EncodeToString(sum[:])}, nil
}

// before returns the jobs' numbers from when the key was first used; none if it is new.
func (o *once) before(ctx context.Context, tx *sql.Tx, now drover.Time) ([]int64, error) {
	if o == nil {
		return nil, nil
	}
	var digest string
	var first int64
	var jobs int
	err := tx.QueryRowContext(ctx, `SELECT digest, first, jobs FROM keys WHERE user_name = ? AND key = ? AND submitted >= ?`,
		o.user, o.key, now.Add(-keyTTL)).Scan(&digest, &first, &jobs)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, err
	case digest != o.digest:
		return nil, drover.Errorf(drover.KindConflict, "the idempotency key %q was already used for another batch", o.key).WithHint("give every batch its own key")
	}
	return consecutive(first, jobs), nil
}

// remember records the key with its batch's numbers, and drops expired keys.
func (o *once) remember(ctx context.Context, tx *sql.Tx, numbers []int64, now drover.Time) error {
	if o == nil || len(numbers) == 0 {
		return nil
	}
	if err := execute(ctx, tx, `DELETE FROM keys WHERE submitted < ?`, now.Add(-keyTTL)); err != nil {
		return err
	}
	return execute(ctx, tx, `INSERT INTO keys (user_name, key, digest, first, jobs, submitted) VALUES (?, ?, ?, ?, ?, ?)`,
		o.user, o.key, o.digest, numbers[0], len(numbers), now)
}

// consecutive returns n numbers from first on.
func consecutive(first int64, n int) []int64 {
	numbers := make([]int64, n)
	for i := range numbers {
		numbers[i] = first + int64(i)
	}
	return numbers
}
