-- +goose Up

-- Where messages about a batch are still to be sent, by the number of its first job.
CREATE TABLE notify (
    submission BIGINT  PRIMARY KEY,
    url        TEXT    NOT NULL,
    failed     BOOLEAN NOT NULL,            -- once one of its jobs has failed
    final      BOOLEAN NOT NULL,            -- once all are final
    tries      INTEGER NOT NULL DEFAULT 0,  -- failed ones in a row
    next       BIGINT  NOT NULL DEFAULT 0   -- not before
);
