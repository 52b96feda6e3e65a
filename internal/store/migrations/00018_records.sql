-- +goose Up

-- The size of the records of a user's jobs, including final ones: at least one disk block per job.
ALTER TABLE usage ADD COLUMN records BIGINT NOT NULL DEFAULT 0;
INSERT INTO usage (user_name, inputs, results, records) SELECT user_name, 0, 0, sum(max(octet_length(spec), 4096)) FROM jobs WHERE TRUE GROUP BY user_name
    ON CONFLICT (user_name) DO UPDATE SET records = excluded.records;

-- +goose StatementBegin
CREATE TRIGGER jobs_written AFTER INSERT ON jobs BEGIN
    INSERT INTO usage (user_name, inputs, results, records) VALUES (new.user_name, 0, 0, max(octet_length(new.spec), 4096))
    ON CONFLICT (user_name) DO UPDATE SET records = records + excluded.records;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER jobs_respecified AFTER UPDATE OF spec ON jobs BEGIN
    UPDATE usage SET records = records + max(octet_length(new.spec), 4096) - max(octet_length(old.spec), 4096) WHERE user_name = new.user_name;
END;
-- +goose StatementEnd
