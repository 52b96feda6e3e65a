package store

import (
	"context"
	"database/sql"
	"fmt"

	"drover/internal/engine"
)

// Wish is a request that the engine has not answered yet.
type Wish struct {
	Row  int64
	Body engine.Body // has the row
}

// Wish records a request: a CancelAsked, InstructAsked, PriorityAsked, QueueAsked, ResizeAsked or GroupAsked. It
// returns the wish's row, which stays until a Commit has its answer.
func (s *Store) Wish(ctx context.Context, body engine.Body) (row int64, err error) {
	wish := engine.Wished(body, 0)
	if wish == nil {
		return 0, fmt.Errorf("recording a request: %T is not a request", body)
	}
	err = s.change(ctx, "recording a request", func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `INSERT INTO wishes (wish) VALUES (?) RETURNING id`, asJSON{engine.Event{Body: wish}}).Scan(&row)
	})
	return row, err
}

// Wishes returns the unanswered wishes after a row, in the order in which they were recorded.
func (s *Store) Wishes(ctx context.Context, after int64) ([]Wish, error) {
	return lookUp(ctx, s, "reading the requests", readWish, `SELECT id, wish FROM wishes WHERE id > ? ORDER BY id`, after)
}

func readWish(row scanner) (w Wish, err error) {
	var ev engine.Event
	err = row.Scan(&w.Row, into(&ev))
	w.Body = engine.Wished(ev.Body, w.Row)
	return w, err
}
