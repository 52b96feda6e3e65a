-- +goose Up

-- An instance that is gone as it last was, so that its record goes on if its cloud lists it again: engine.Departed.
ALTER TABLE instances ADD COLUMN departed TEXT;
