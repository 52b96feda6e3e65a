-- +goose Up

-- From now on attempts get proofs. Live attempts, and those on existing instances, may have started without.
UPDATE attempts  SET engine = json_set(engine, '$.unproven', json('true')) WHERE json_valid(engine);
UPDATE instances SET engine = json_set(engine, '$.unproven', json('true')) WHERE json_valid(engine);
