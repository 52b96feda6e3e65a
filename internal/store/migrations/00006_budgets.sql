-- +goose Up

-- What finished work has spent of each budget in the present hour, day and month.
CREATE TABLE spending (
    scope  TEXT PRIMARY KEY,
    engine TEXT NOT NULL                    -- engine.Spending
) WITHOUT ROWID;

-- The engine has the jobs' labels, since budgets may be by label.
UPDATE jobs SET engine = json_set(engine, '$.labels', json_extract(spec, '$.labels'))
    WHERE engine IS NOT NULL AND json_type(spec, '$.labels') = 'object';
