-- +goose Up

-- The size of the logs and outputs that a job or element has left. A file counts for at least one disk block.
CREATE TABLE results (
    job   BIGINT NOT NULL REFERENCES jobs DEFERRABLE INITIALLY DEFERRED,
    idx   BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    PRIMARY KEY (job, idx)
) WITHOUT ROWID;

-- The size of a user's inputs and results, kept up to date here because there may be millions of either.
CREATE TABLE usage (
    user_name TEXT   PRIMARY KEY,
    inputs    BIGINT NOT NULL,              -- bytes, as are the results
    results   BIGINT NOT NULL
) WITHOUT ROWID;
INSERT INTO usage SELECT user_name, sum(max(size, 4096)), 0 FROM inputs GROUP BY user_name;

-- +goose StatementBegin
CREATE TRIGGER inputs_sent AFTER INSERT ON inputs BEGIN
    INSERT INTO usage (user_name, inputs, results) VALUES (new.user_name, max(new.size, 4096), 0)
    ON CONFLICT (user_name) DO UPDATE SET inputs = inputs + excluded.inputs;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER inputs_forgotten AFTER DELETE ON inputs BEGIN
    UPDATE usage SET inputs = inputs - max(old.size, 4096) WHERE user_name = old.user_name;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER results_kept AFTER INSERT ON results BEGIN
    INSERT INTO usage (user_name, inputs, results) SELECT user_name, 0, new.bytes FROM jobs WHERE number = new.job
    ON CONFLICT (user_name) DO UPDATE SET results = results + excluded.results;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER results_replaced AFTER UPDATE ON results BEGIN
    UPDATE usage SET results = results + new.bytes - old.bytes WHERE user_name = (SELECT user_name FROM jobs WHERE number = new.job);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER results_gone AFTER DELETE ON results BEGIN
    UPDATE usage SET results = results - old.bytes WHERE user_name = (SELECT user_name FROM jobs WHERE number = old.job);
END;
-- +goose StatementEnd

-- Of existing results, the outputs are known.
INSERT INTO results SELECT o.job, o.idx, (SELECT sum(max(json_extract(f.value, '$.size'), 4096)) FROM json_each(o.files) f)
    FROM outputs o WHERE json_array_length(o.files) > 0
    AND o.number = (SELECT max(l.number) FROM outputs l WHERE l.job = o.job AND l.idx = o.idx) AND o.job IN (SELECT number FROM jobs);

CREATE INDEX jobs_unfinished ON jobs (user_name, first_index, last_index) WHERE engine IS NOT NULL;
