-- +goose Up

-- Rows that no controller can load, removed from the records. The job they belong to has priority 0 until an operator
-- decides.
CREATE TABLE set_aside (
    id   INTEGER PRIMARY KEY,
    job  BIGINT NOT NULL,
    what TEXT   NOT NULL,                   -- and why
    row  TEXT   NOT NULL                    -- as it was, in JSON
);
