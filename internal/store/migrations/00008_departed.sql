-- +goose Up

-- The last state of a gone instance, so that its record continues if its cloud lists it again: engine.Departed.
ALTER TABLE instances ADD COLUMN departed TEXT;
