-- +goose Up

-- What an attempt's outputs lack: what was left out, and patterns that matched nothing.
ALTER TABLE outputs ADD COLUMN warnings TEXT; -- JSON, or NULL
