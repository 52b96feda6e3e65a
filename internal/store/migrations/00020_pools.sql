-- +goose Up

-- The sizes that operators have set for pools.
CREATE TABLE pools (
    name   TEXT PRIMARY KEY,
    engine TEXT NOT NULL                    -- engine.PoolRow
) WITHOUT ROWID;

-- The pool of an instance; empty: it was created for jobs.
ALTER TABLE instances ADD COLUMN pool TEXT NOT NULL DEFAULT '';
