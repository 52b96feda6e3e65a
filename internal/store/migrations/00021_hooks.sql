-- +goose Up

-- Hooks that are to be run, and go once they were.
CREATE TABLE hooks (
    id       INTEGER PRIMARY KEY,               -- in the order of what they tell of
    key      TEXT    NOT NULL UNIQUE,           -- of a decision committed twice one row comes
    instance TEXT    NOT NULL,                  -- whose hooks run one after the other; empty: of none
    engine   TEXT    NOT NULL,                  -- engine.HookRow
    tries    INTEGER NOT NULL DEFAULT 0,        -- that went wrong
    next     BIGINT  NOT NULL DEFAULT 0         -- not before
);
CREATE INDEX hooks_of_instance ON hooks (instance, id);
