-- +goose Up

-- One row. Counters are kept here so that a number is never assigned twice, whatever rows are deleted.
CREATE TABLE fleet (
    id       INTEGER PRIMARY KEY CHECK (id = 1),
    version  BIGINT  NOT NULL,              -- of the engine's values in the columns named engine
    name     TEXT    NOT NULL,              -- '' until the first Begin
    nonce    TEXT    NOT NULL,
    epoch    BIGINT  NOT NULL,
    last_job BIGINT  NOT NULL,
    closing  BOOLEAN NOT NULL
);
INSERT INTO fleet (id, version, name, nonce, epoch, last_job, closing) VALUES (1, 0, '', '', 0, 0, FALSE);

-- A submitted job; an array is one row. A job that is not an array has the single index -1.
CREATE TABLE jobs (
    number      BIGINT  PRIMARY KEY,
    submission  BIGINT  NOT NULL,           -- the number of its batch's first job
    batch       TEXT    NOT NULL,
    user_name   TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    first_index BIGINT  NOT NULL,
    last_index  BIGINT  NOT NULL,
    cpu_milli   BIGINT  NOT NULL,           -- of each element
    submitted   BIGINT  NOT NULL,
    taken       BOOLEAN NOT NULL,           -- the engine has it, or had it
    state       TEXT    NOT NULL,
    queued      BIGINT  NOT NULL,           -- elements, as are the next three
    succeeded   BIGINT  NOT NULL,
    failed      BIGINT  NOT NULL,
    cancelled   BIGINT  NOT NULL,
    ended       BIGINT  NOT NULL,
    reason      TEXT    NOT NULL,
    engine      TEXT,                       -- engine.Job without its elements; NULL once final
    spec        TEXT    NOT NULL            -- drover.JobSpec
);
CREATE INDEX jobs_open ON jobs (number) WHERE engine IS NOT NULL;
CREATE UNIQUE INDEX jobs_named ON jobs (submission, name);
CREATE INDEX jobs_new ON jobs (number) WHERE NOT taken;

-- A job or element that has had an attempt, or ended without one.
CREATE TABLE elements (
    job     BIGINT NOT NULL REFERENCES jobs DEFERRABLE INITIALLY DEFERRED,
    idx     BIGINT NOT NULL,
    number  BIGINT NOT NULL,                -- of its last attempt
    lost    BIGINT NOT NULL,
    retried BIGINT NOT NULL,
    state   TEXT   NOT NULL,
    code    BIGINT,
    ended   BIGINT NOT NULL,
    reason  TEXT   NOT NULL,
    PRIMARY KEY (job, idx)
) WITHOUT ROWID;
CREATE INDEX elements_failed ON elements (ended) WHERE state = 'failed';

CREATE TABLE instances (
    id            BIGINT PRIMARY KEY,
    name          TEXT   NOT NULL,
    cloud         TEXT   NOT NULL,
    provider_id   TEXT   NOT NULL,
    zone          TEXT   NOT NULL,
    type          TEXT   NOT NULL,
    market        TEXT   NOT NULL,
    price         BIGINT NOT NULL,          -- nano-dollars an hour
    cpu_milli     BIGINT NOT NULL,
    state         TEXT   NOT NULL,
    idle_behavior TEXT   NOT NULL,
    asked         BIGINT NOT NULL,
    created       BIGINT NOT NULL,
    ready         BIGINT NOT NULL,
    idle_since    BIGINT NOT NULL,
    gone          BIGINT NOT NULL,
    cost          BIGINT NOT NULL,          -- nano-dollars, once gone
    reason        TEXT   NOT NULL,
    engine        TEXT                      -- engine.Instance; NULL once gone
);
CREATE INDEX instances_open ON instances (id) WHERE engine IS NOT NULL;

CREATE TABLE attempts (
    job      BIGINT NOT NULL REFERENCES jobs DEFERRABLE INITIALLY DEFERRED,
    idx      BIGINT NOT NULL,
    number   BIGINT NOT NULL,
    instance BIGINT NOT NULL REFERENCES instances DEFERRABLE INITIALLY DEFERRED,
    state    TEXT   NOT NULL,
    started  BIGINT NOT NULL,
    ended    BIGINT NOT NULL,
    code     BIGINT,
    cost     BIGINT NOT NULL,               -- nano-dollars, once ended
    max_rss  BIGINT NOT NULL,               -- bytes
    cpu      BIGINT NOT NULL,               -- nanoseconds
    reason   TEXT   NOT NULL,
    engine   TEXT,                          -- engine.Attempt; NULL once it is not live
    PRIMARY KEY (job, idx, number)
) WITHOUT ROWID;
CREATE INDEX attempts_live ON attempts (instance) WHERE engine IS NOT NULL;

-- What an attempt's outputs turned out to hold. The row is written before the attempt is final.
CREATE TABLE outputs (
    job    BIGINT NOT NULL,
    idx    BIGINT NOT NULL,
    number BIGINT NOT NULL,
    files  TEXT   NOT NULL,                 -- []drover.File
    PRIMARY KEY (job, idx, number)
) WITHOUT ROWID;

CREATE TABLE blocks (
    place  BIGINT PRIMARY KEY,
    cloud  TEXT NOT NULL,
    zone   TEXT NOT NULL,
    type   TEXT NOT NULL,
    market TEXT NOT NULL,
    reason TEXT NOT NULL
);

-- Requests that the engine has not granted yet, in their order.
CREATE TABLE wishes (
    id   INTEGER PRIMARY KEY AUTOINCREMENT,
    wish TEXT NOT NULL                      -- engine.CancelAsked
);
