-- +goose Up

-- The last lines of the log of an instance's runner, once the instance has died.
ALTER TABLE instances ADD COLUMN runner_log TEXT NOT NULL DEFAULT 'null'; -- of strings
