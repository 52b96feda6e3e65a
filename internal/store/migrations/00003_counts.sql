-- +goose Up

-- Elements that are neither waiting nor done.
ALTER TABLE jobs ADD COLUMN running BIGINT GENERATED ALWAYS AS
    (CASE WHEN engine IS NULL THEN 0 ELSE last_index - first_index + 1 - queued - succeeded - failed - cancelled END) VIRTUAL;

-- One row: the sums of the jobs' columns of the same names, of which there may be millions. Triggers count changes.
-- Submit counts new jobs, once for each batch, since a trigger for each job would take as long as writing the job.
CREATE TABLE counts (
    id        INTEGER PRIMARY KEY CHECK (id = 1),
    queued    BIGINT NOT NULL,
    running   BIGINT NOT NULL,
    succeeded BIGINT NOT NULL,
    failed    BIGINT NOT NULL,
    cancelled BIGINT NOT NULL
);
INSERT INTO counts SELECT 1, coalesce(sum(queued), 0), coalesce(sum(running), 0), coalesce(sum(succeeded), 0), coalesce(sum(failed), 0),
    coalesce(sum(cancelled), 0) FROM jobs;
-- +goose StatementBegin
CREATE TRIGGER jobs_recounted AFTER UPDATE ON jobs
WHEN (new.queued, new.running, new.succeeded, new.failed, new.cancelled)
    IS NOT (old.queued, old.running, old.succeeded, old.failed, old.cancelled) BEGIN
    UPDATE counts SET queued = queued + new.queued - old.queued, running = running + new.running - old.running,
        succeeded = succeeded + new.succeeded - old.succeeded, failed = failed + new.failed - old.failed,
        cancelled = cancelled + new.cancelled - old.cancelled WHERE id = 1;
END;
-- +goose StatementEnd
