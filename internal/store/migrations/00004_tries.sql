-- +goose Up

ALTER TABLE elements ADD COLUMN interrupted BIGINT NOT NULL DEFAULT 0;  -- when its last attempt was interrupted, if it was
ALTER TABLE elements ADD COLUMN memory      BIGINT NOT NULL DEFAULT 0;  -- bytes, once it ran out of less; 0: as its job says

-- Blocks are values of the engine's. None lasts long, so none is migrated.
DROP TABLE blocks;
CREATE TABLE blocks (
    place  BIGINT PRIMARY KEY,
    engine TEXT NOT NULL                    -- engine.Block
);
