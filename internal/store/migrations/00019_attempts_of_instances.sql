-- +goose Up

-- What ran on an instance, for whoever looks at its life.
CREATE INDEX attempts_instance ON attempts (instance, started);
