package store

import (
	"context"
	"database/sql"
)

// Ready commits a change that changes nothing, and says why that cannot be done: the disk is full or gone, another controller has taken over,
// or something has the records locked.
func (s *Store) Ready(ctx context.Context) error {
	return s.change(ctx, "trying whether the records can be written", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE fleet SET closing = closing`)
		return err
	})
}
