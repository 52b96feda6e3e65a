-- +goose Up

-- Finds what ran on an instance.
CREATE INDEX attempts_instance ON attempts (instance, started);
