package store

import (
	"context"
	"fmt"

	"drover/internal/engine"
)

// Wish writes down that jobs are to be cancelled, and returns the wish's row. It stays until a Commit grants it.
func (s *Store) Wish(ctx context.Context, wish engine.CancelAsked) (id int64, err error) {
	wish.Wish = 0
	kept, err := text(wish)
	if err != nil {
		return 0, err
	}
	if err := s.write.QueryRowContext(ctx, `INSERT INTO wishes (wish) VALUES (?) RETURNING id`, kept).Scan(&id); err != nil {
		return 0, fmt.Errorf("writing down a wish to cancel: %w", err)
	}
	return id, nil
}

// Wishes are those that are not granted yet, in the order of asking.
func (s *Store) Wishes(ctx context.Context) ([]engine.CancelAsked, error) {
	wishes, err := collect(ctx, s.read, func(row scanner) (w engine.CancelAsked, err error) {
		var id int64
		err = row.Scan(&id, into(&w))
		w.Wish = id
		return w, err
	}, `SELECT id, wish FROM wishes ORDER BY id`)
	if err != nil {
		return nil, fmt.Errorf("reading the wishes: %w", err)
	}
	return wishes, nil
}
