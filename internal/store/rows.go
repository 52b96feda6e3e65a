package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"time"

	"drover"
)

// source is where rows are read from: a transaction or a database.
type source interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// scanner is a row to be read.
type scanner interface{ Scan(into ...any) error }

// collect reads every row of a query.
func collect[T any](ctx context.Context, from source, read func(scanner) (T, error), query string, args ...any) (all []T, err error) {
	err = each(ctx, from, func(row scanner) error {
		v, err := read(row)
		all = append(all, v)
		return err
	}, query, args...)
	return all, err
}

// lookUp reads every row of a query, outside of any transaction. An error says what was being done.
func lookUp[T any](ctx context.Context, s *Store, what string, read func(scanner) (T, error), query string, args ...any) ([]T, error) {
	all, err := collect(ctx, s.read, read, query, args...)
	if err != nil {
		return nil, s.doing(ctx, what, err)
	}
	return all, nil
}

// each calls do for every row of a query.
func each(ctx context.Context, from source, do func(scanner) error, query string, args ...any) error {
	rows, err := from.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := do(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// execute runs a query without a result.
func execute(ctx context.Context, tx *sql.Tx, query string, args ...any) error {
	_, err := tx.ExecContext(ctx, query, args...)
	return err
}

// readColumn reads a row of one column.
func readColumn[T any](row scanner) (v T, err error) { return v, row.Scan(&v) }

// document is a value in a JSON column.
type document[T any] struct{ to *T }

// Scan makes a document a sql.Scanner.
func (d document[T]) Scan(column any) error {
	switch text := column.(type) {
	case string:
		return json.Unmarshal([]byte(text), d.to)
	case []byte:
		return json.Unmarshal(text, d.to)
	}
	return nil
}

// into reads a JSON column into v; NULL leaves it unchanged.
func into[T any](v *T) document[T] { return document[T]{v} }

// asJSON is a value to be written to a JSON column.
type asJSON struct{ of any }

// Value makes asJSON a driver.Valuer.
func (j asJSON) Value() (driver.Value, error) {
	text, err := json.Marshal(j.of)
	return string(text), err
}

// asJSONIf returns v for a JSON column, or NULL if it is not set.
func asJSONIf(set bool, v any) any {
	if !set {
		return nil
	}
	return asJSON{v}
}

// standard returns a time for people, nil for never.
func standard(t drover.Time) *time.Time {
	if t == 0 {
		return nil
	}
	std := t.Std()
	return &std
}

// reasonOf returns a reason for people, nil for none.
func reasonOf(r drover.Reason) *drover.Reason {
	if r == (drover.Reason{}) {
		return nil
	}
	return &r
}

// Rows returns how many rows each table has.
func (s *Store) Rows(ctx context.Context) (rows map[string]int64, err error) {
	rows = map[string]int64{}
	return rows, s.look(ctx, "counting the records", func(tx *sql.Tx) error {
		tables, err := collect(ctx, tx, readColumn[string], `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`)
		if err != nil {
			return err
		}
		for _, table := range tables {
			var n int64
			if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM "`+table+`"`).Scan(&n); err != nil {
				return err
			}
			rows[table] = n
		}
		return nil
	})
}
