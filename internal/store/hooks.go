package store

import (
	"context"
	"database/sql"
	"time"

	"drover"
	"drover/internal/engine"
)

// Hook is a hook to run. It stays recorded until it has run, so that it runs at least once, whatever happens to the
// controller.
type Hook struct {
	ID int64
	engine.HookRow
	tries int
}

// mostHooks is how many hooks may wait. Beyond that the oldest are dropped.
const mostHooks = 20_000

func (s *Store) putHook(ctx context.Context, tx *sql.Tx, h engine.HookRow) error {
	if err := s.run(ctx, tx, putHook, h.Key(), h.Fire.Name, asJSON{h}); err != nil {
		return err
	}
	return s.run(ctx, tx, capHooks, mostHooks)
}

// Hooks returns the first hooks that are due. Hooks of one instance and one listener run in order: the next is due once
// the previous has run.
func (s *Store) Hooks(ctx context.Context, now drover.Time, most int) ([]Hook, error) {
	return lookUp(ctx, s, "looking for hooks to run", func(row scanner) (h Hook, err error) {
		return h, row.Scan(&h.ID, &h.tries, into(&h.HookRow))
	}, `SELECT id, tries, engine FROM hooks h WHERE next <= ? AND (instance = '' OR NOT EXISTS (
		SELECT 1 FROM hooks e WHERE e.instance = h.instance AND e.id < h.id AND json_extract(e.engine, '$.pool') IS json_extract(h.engine, '$.pool')))
		ORDER BY id LIMIT ?`, now, most)
}

// HookRun records that a hook has run or, after a transient error, when it runs again, unless it has no tries left. It
// reports whether the hook is done.
func (s *Store) HookRun(ctx context.Context, h Hook, failure error, now drover.Time) (done bool, err error) {
	pause, again := pauseAfter(failure, h.tries, time.Second)
	err = s.change(ctx, "recording that a hook ran", func(tx *sql.Tx) error {
		if again {
			return execute(ctx, tx, `UPDATE hooks SET tries = tries + 1, next = ? WHERE id = ?`, now.Add(pause), h.ID)
		}
		return execute(ctx, tx, `DELETE FROM hooks WHERE id = ?`, h.ID)
	})
	return !again, err
}
