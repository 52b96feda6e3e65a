-- +goose Up

-- The numbers that operators set of pools.
CREATE TABLE pools (
    name   TEXT PRIMARY KEY,
    engine TEXT NOT NULL                    -- engine.PoolRow
) WITHOUT ROWID;

-- The pool that an instance belongs to, or belonged to; empty: it was rented for jobs.
ALTER TABLE instances ADD COLUMN pool TEXT NOT NULL DEFAULT '';
