-- +goose Up

-- What no controller can begin with, taken out of the records; the job that it belongs to has priority 0 until an operator decides.
CREATE TABLE set_aside (
    id   INTEGER PRIMARY KEY,
    job  BIGINT NOT NULL,
    what TEXT   NOT NULL,                   -- and why
    row  TEXT   NOT NULL                    -- as it was, in JSON
);
