-- +goose Up

-- Attempts are given proofs from now on. Those that live, and all that runs on instances there are, may have begun without.
UPDATE attempts  SET engine = json_set(engine, '$.unproven', json('true')) WHERE json_valid(engine);
UPDATE instances SET engine = json_set(engine, '$.unproven', json('true')) WHERE json_valid(engine);
