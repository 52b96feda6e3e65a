-- +goose Up

-- Who may use which inputs: the users who have sent them. The contents are stored under their hashes, once for all
-- users.
CREATE TABLE inputs (
    user_name TEXT    NOT NULL,
    hash      TEXT    NOT NULL,
    size      BIGINT  NOT NULL,             -- bytes
    sent      BIGINT  NOT NULL,
    used      BOOLEAN NOT NULL,             -- by a job of the user's; jobs stay, so this never becomes false
    PRIMARY KEY (user_name, hash)
) WITHOUT ROWID;
CREATE INDEX inputs_hash ON inputs (hash);
CREATE INDEX inputs_unused ON inputs (sent) WHERE NOT used;
INSERT INTO inputs SELECT j.user_name, json_extract(f.value, '$.hash'), max(json_extract(f.value, '$.size')), max(j.submitted), TRUE
    FROM jobs j, json_each(j.spec, '$.files') f GROUP BY 1, 2;
