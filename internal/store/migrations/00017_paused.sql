-- +goose Up

-- Why the queue is paused, as JSON; null if it is not.
ALTER TABLE fleet ADD COLUMN paused TEXT NOT NULL DEFAULT 'null';
