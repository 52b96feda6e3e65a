-- +goose Up

-- When an element may be tried again; 0: at once.
ALTER TABLE elements ADD COLUMN not_before BIGINT NOT NULL DEFAULT 0;
