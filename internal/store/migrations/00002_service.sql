-- +goose Up

ALTER TABLE fleet ADD COLUMN last_again BIGINT NOT NULL DEFAULT 0;

-- A final job that was requeued is not taken until the engine has it again.
ALTER TABLE jobs ADD COLUMN priority BIGINT NOT NULL DEFAULT 1;   -- the present one; the spec has the submitted one
ALTER TABLE jobs ADD COLUMN again    BIGINT NOT NULL DEFAULT 0;   -- its place among the requeued jobs; 0: never requeued
UPDATE jobs SET priority = coalesce(json_extract(engine, '$.priority'), json_extract(spec, '$.priority'), 1);

DROP INDEX jobs_new;
CREATE INDEX jobs_new ON jobs (again, number) WHERE NOT taken;
CREATE INDEX jobs_state ON jobs (state, number);
CREATE INDEX jobs_batch ON jobs (batch, number);
CREATE INDEX jobs_user ON jobs (user_name, number);
CREATE INDEX jobs_failed ON jobs (number) WHERE failed > 0;
CREATE INDEX jobs_cancelled ON jobs (number) WHERE cancelled > 0;
CREATE INDEX elements_state ON elements (state, job, idx);
CREATE INDEX instances_name ON instances (name);
CREATE INDEX instances_provider ON instances (provider_id);

CREATE TABLE labels (
    label TEXT   NOT NULL,
    value TEXT   NOT NULL,
    job   BIGINT NOT NULL REFERENCES jobs DEFERRABLE INITIALLY DEFERRED,
    PRIMARY KEY (label, value, job)
) WITHOUT ROWID;
INSERT INTO labels SELECT l.key, l.value, j.number FROM jobs j, json_each(j.spec, '$.labels') l;

-- The totals of all attempts of a job. They are kept up to date here because an array may have had a million attempts.
CREATE TABLE bills (
    job     BIGINT PRIMARY KEY,
    started BIGINT NOT NULL,                -- of the first
    cost    BIGINT NOT NULL                 -- nano-dollars, of ended ones
) WITHOUT ROWID;
INSERT INTO bills SELECT job, min(started), sum(cost) FROM attempts GROUP BY job;
-- +goose StatementBegin
CREATE TRIGGER attempts_begun AFTER INSERT ON attempts BEGIN
    INSERT INTO bills (job, started, cost) VALUES (new.job, new.started, new.cost)
    ON CONFLICT (job) DO UPDATE SET started = min(started, excluded.started), cost = cost + excluded.cost;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER attempts_billed AFTER UPDATE ON attempts WHEN new.cost <> old.cost BEGIN
    UPDATE bills SET cost = cost + new.cost - old.cost WHERE job = new.job;
END;
-- +goose StatementEnd

-- The keys of recently submitted batches.
CREATE TABLE keys (
    user_name TEXT   NOT NULL,
    key       TEXT   NOT NULL,
    digest    TEXT   NOT NULL,              -- of the batch
    first     BIGINT NOT NULL,              -- the number of its first job
    jobs      BIGINT NOT NULL,              -- the number of jobs
    submitted BIGINT NOT NULL,
    PRIMARY KEY (user_name, key)
) WITHOUT ROWID;
CREATE INDEX keys_submitted ON keys (submitted);

CREATE TABLE tokens (
    id        TEXT   PRIMARY KEY,
    user_name TEXT   NOT NULL,
    role      TEXT   NOT NULL,
    hash      TEXT   NOT NULL,              -- SHA-256 of the secret, in hex
    created   BIGINT NOT NULL,
    expires   BIGINT NOT NULL               -- 0: never
) WITHOUT ROWID;
CREATE UNIQUE INDEX tokens_hash ON tokens (hash);

-- A wish is an engine.Event from now on; it was an engine.CancelAsked.
UPDATE wishes SET wish = json_object('at', 0, 'kind', 'cancel_asked', 'body', json(wish));
