package store

import (
	"context"
	"database/sql"
)

// Ready commits a change that changes nothing, and returns why that fails: the disk is full or gone, the file was
// removed, another controller has taken over, or something has locked the records.
func (s *Store) Ready(ctx context.Context) error {
	return s.change(ctx, "checking whether the records can be written", func(tx *sql.Tx) error {
		return execute(ctx, tx, `UPDATE fleet SET closing = closing`)
	})
}
