-- +goose Up

-- The prices per hour before the present one, and how long the instance is paid: costs are computed from these on
-- request.
ALTER TABLE instances ADD COLUMN rates  TEXT    NOT NULL DEFAULT 'null';  -- []drover.Rate
ALTER TABLE instances ADD COLUMN billed BIGINT  NOT NULL DEFAULT 0;       -- the end of its bill, once that is known
ALTER TABLE instances ADD COLUMN used   BOOLEAN NOT NULL DEFAULT FALSE;   -- a job has started on it
UPDATE instances SET billed = gone;
UPDATE instances SET used = TRUE WHERE id IN (SELECT instance FROM attempts WHERE state NOT IN ('starting', 'lost'));

CREATE INDEX instances_gone ON instances (gone) WHERE gone > 0;
CREATE INDEX attempts_ended ON attempts (ended) WHERE ended > 0;
