package store

import (
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/pressly/goose/v3"

	"drover"
	"drover/internal/engine"
)

// A state of the first version: a job with labels whose priority the engine has changed, an attempt of that job, and a
// wish.
const first = `
INSERT INTO jobs VALUES (1, 1, 'b', 'ada', 'one', -1, -1, 1000, 5, TRUE, 'running', 0, 0, 0, 0, 0, '{}',
	'{"number":1,"priority":7,"queued":null}', '{"name":"one","priority":2,"labels":{"is":"a"},"files":[{"path":"in","size":7,"hash":"h"}]}');
INSERT INTO jobs VALUES (2, 1, 'b', 'ada', 'two', -1, -1, 1000, 5, TRUE, 'succeeded', 0, 1, 0, 0, 6, '{}', NULL, '{"name":"two","priority":2}');
INSERT INTO instances VALUES (1, 'lab-1', 'here', '', '', '', '', 0, 4000, 'running', 'run', 1, 1, 1, 0, 0, 0, '{}', '{"id":1}');
INSERT INTO attempts VALUES (2, -1, 1, 1, 'lost', 8, 9, NULL, 1000000000, 0, 0, '{}', NULL);
INSERT INTO attempts VALUES (2, -1, 2, 1, 'succeeded', 9, 10, 0, 2000000000, 0, 0, '{}', NULL);
INSERT INTO attempts VALUES (1, -1, 1, 1, 'running', 8, 0, NULL, 0, 0, 0, '{}', '{"id":"1/1","instance":1,"state":"running"}');
INSERT INTO outputs VALUES (2, -1, 1, '[{"path":"a","size":1}]'), (2, -1, 2, '[{"path":"a","size":8000},{"path":"b","size":1}]');
INSERT INTO wishes (wish) VALUES ('{"job":"1","reason":{"code":"cancelled","text":"it''s enough"}}');`

func TestOpenUpgradesAnOlderState(t *testing.T) {
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
		t.Errorf("jobs %+v, error %v; want the labelled one with its current priority", labelled, err)
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
	if missing, err := s.MissingInputs(t.Context(), "ada", []string{"h", "i"}); err != nil || len(missing) != 1 || missing[0] != "i" {
		t.Errorf("missing %q, error %v; want what none of her jobs uses", missing, err)
	}
	if used, err := s.Usage(t.Context(), "ada"); err != nil || used != (drover.Usage{Inputs: 4096, Results: 12096, Records: 8192, Jobs: 1, Elements: 1}) {
		t.Errorf("her usage is %+v, error %v", used, err)
	}
	if tried, err := s.Jobs(t.Context(), hour, drover.JobFilter{Tried: true}); err != nil || len(tried) != 2 || tried[1].Cost != 3 || tried[1].Priority != 2 {
		t.Errorf("jobs %+v, error %v; want the tried ones", tried, err)
	}
	state, err := s.Begin(t.Context(), "lab")
	if err != nil {
		t.Fatal(err)
	}
	if !state.Attempts[0].Unproven || !state.Instances[0].Unproven {
		t.Error("an attempt or instance older than proofs is asked for one")
	}
}
