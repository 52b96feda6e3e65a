-- +goose Up

-- Hooks to run. A row is deleted once its hook has run.
CREATE TABLE hooks (
    id       INTEGER PRIMARY KEY,               -- in the order of the events
    key      TEXT    NOT NULL UNIQUE,           -- a decision committed twice makes one row
    instance TEXT    NOT NULL,                  -- its hooks run one after the other; empty: none
    engine   TEXT    NOT NULL,                  -- engine.HookRow
    tries    INTEGER NOT NULL DEFAULT 0,        -- failed ones
    next     BIGINT  NOT NULL DEFAULT 0         -- not before
);
CREATE INDEX hooks_of_instance ON hooks (instance, id);
