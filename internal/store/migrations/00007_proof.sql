-- +goose Up

-- So that records which are an older copy of themselves are known for that. What was given is beyond what the rows say, once they were.
ALTER TABLE fleet ADD COLUMN changes       BIGINT NOT NULL DEFAULT 0;   -- how often anything was changed
ALTER TABLE fleet ADD COLUMN last_instance BIGINT NOT NULL DEFAULT 0;   -- numbers that may have been given by records that are lost
ALTER TABLE fleet ADD COLUMN last_attempt  BIGINT NOT NULL DEFAULT 0;
ALTER TABLE fleet ADD COLUMN unproved      TEXT   NOT NULL DEFAULT 'null'; -- drover.Reason; null if these are the newest records
