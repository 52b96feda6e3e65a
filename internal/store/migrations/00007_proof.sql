-- +goose Up

-- These detect records that are an older copy of themselves. After that, numbers continue beyond those in the rows.
ALTER TABLE fleet ADD COLUMN changes       BIGINT NOT NULL DEFAULT 0;   -- number of changes so far
ALTER TABLE fleet ADD COLUMN last_instance BIGINT NOT NULL DEFAULT 0;   -- numbers that lost records may have assigned
ALTER TABLE fleet ADD COLUMN last_attempt  BIGINT NOT NULL DEFAULT 0;
ALTER TABLE fleet ADD COLUMN unproved      TEXT   NOT NULL DEFAULT 'null'; -- drover.Reason; null if these are the newest records
