package store

import (
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/pressly/goose/v3"

	"drover"
	"drover/internal/engine"
)

// A state of the first version: a job with labels of which the engine has changed the priority, an attempt of it, and a wish.
const first = `
INSERT INTO jobs VALUES (1, 1, 'b', 'ada', 'one', -1, -1, 1000, 5, TRUE, 'running', 0, 0, 0, 0, 0, '{}',
	'{"number":1,"priority":7,"queued":null}', '{"name":"one","priority":2,"labels":{"is":"a"}}');
INSERT INTO jobs VALUES (2, 1, 'b', 'ada', 'two', -1, -1, 1000, 5, TRUE, 'succeeded', 0, 1, 0, 0, 6, '{}', NULL, '{"name":"two","priority":2}');
INSERT INTO instances VALUES (1, 'lab-1', 'here', '', '', '', '', 0, 4000, 'running', 'run', 1, 1, 1, 0, 0, 0, '{}', '{"id":1}');
INSERT INTO attempts VALUES (2, -1, 1, 1, 'lost', 8, 9, NULL, 1000000000, 0, 0, '{}', NULL);
INSERT INTO attempts VALUES (2, -1, 2, 1, 'succeeded', 9, 10, 0, 2000000000, 0, 0, '{}', NULL);
INSERT INTO wishes (wish) VALUES ('{"job":"1","reason":{"code":"cancelled","text":"it''s enough"}}');`

func TestOpenBringsAnOlderStateUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drover.db")
	db, err := connect(path, 1, writerOptions)
	if err != nil {
		t.Fatal(err)
	}
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, files, goose.WithLogger(goose.NopLogger()), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.UpTo(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(first); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	wishes, err := s.Wishes(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	why := drover.Reason{Code: drover.ReasonCancelled, Text: "it's enough"}
	equal(t, "wishes", wishes, []Wish{{1, engine.CancelAsked{Wish: 1, Job: drover.JobID{Number: 1, Index: -1}, Reason: why}}})
	labelled, err := s.Jobs(t.Context(), hour, drover.JobFilter{Labels: map[string]string{"is": "a"}})
	if err != nil || len(labelled) != 1 || labelled[0].Priority != 7 {
		t.Errorf("jobs %+v, error %v; want the one with the label and the priority it has", labelled, err)
	}
	counts, err := s.Counts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "counts", counts, map[drover.JobState]int{
		drover.JobQueued: 0, drover.JobRunning: 1, drover.JobSucceeded: 1, drover.JobFailed: 0, drover.JobCancelled: 0,
	})
	costs, err := s.Costs(t.Context(), 10+hour, drover.CostFilter{By: drover.CostByType})
	if err != nil || costs.Total.Waste != 0 {
		t.Errorf("costs %+v, error %v; want no waste, since jobs ran on the instance", costs, err)
	}
	if tried, err := s.Jobs(t.Context(), hour, drover.JobFilter{Tried: true}); err != nil || len(tried) != 1 || tried[0].Cost != 3 || tried[0].Priority != 2 {
		t.Errorf("jobs %+v, error %v; want the one that was tried", tried, err)
	}
}
