-- +goose Up

-- What is missing from an attempt's outputs: files that were left out, and patterns that matched nothing.
ALTER TABLE outputs ADD COLUMN warnings TEXT; -- JSON, or NULL
