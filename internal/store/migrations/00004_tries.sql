-- +goose Up

ALTER TABLE elements ADD COLUMN interrupted BIGINT NOT NULL DEFAULT 0;  -- when its last attempt was, if it was
ALTER TABLE elements ADD COLUMN memory      BIGINT NOT NULL DEFAULT 0;  -- bytes, once it ran out of less; 0: what its job says

-- What is left alone is a value of the engine's. None lasts long, so none is taken over.
DROP TABLE blocks;
CREATE TABLE blocks (
    place  BIGINT PRIMARY KEY,
    engine TEXT NOT NULL                    -- engine.Block
);
