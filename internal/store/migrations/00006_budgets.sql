-- +goose Up

-- What was spent of each budget, in the present hour, day and month, by what is over.
CREATE TABLE spending (
    scope  TEXT PRIMARY KEY,
    engine TEXT NOT NULL                    -- engine.Spending
) WITHOUT ROWID;

-- Jobs have their labels in the engine, since budgets may be by label.
UPDATE jobs SET engine = json_set(engine, '$.labels', json_extract(spec, '$.labels'))
    WHERE engine IS NOT NULL AND json_type(spec, '$.labels') = 'object';
