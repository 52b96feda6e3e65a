package store

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drover"
	"drover/internal/engine"
)

func fenceSuite(t *testing.T, openers func(testing.TB) opener) {
	changes := map[string]func(t *testing.T, s *Store) error{
		"Commit": func(t *testing.T, s *Store) error { return s.Commit(t.Context(), []engine.Write{{Closing: true}}) },
		"Submit": func(t *testing.T, s *Store) error {
			_, err := s.Submit(t.Context(), drover.Submission{Batch: hello()}, Terms{})
			return err
		},
		"Wish": func(t *testing.T, s *Store) error {
			_, err := s.Wish(t.Context(), engine.CancelAsked{All: true})
			return err
		},
		"Retry": func(t *testing.T, s *Store) error {
			failed, err := s.Jobs(t.Context(), hour, drover.JobFilter{States: []drover.JobState{drover.JobFailed}})
			if err != nil || len(failed) == 0 {
				t.Fatalf("failed %v, error %v; want one", failed, err)
			}
			return s.Retry(t.Context(), drover.JobID{Number: failed[0].ID.Number, Index: -1}, drover.UserLimits{})
		},
		"Ready": func(t *testing.T, s *Store) error { return s.Ready(t.Context()) },
		"CreateToken": func(t *testing.T, s *Store) error {
			_, err := s.CreateToken(t.Context(), hour, drover.TokenRequest{User: "ada", Role: drover.RoleOperate})
			return err
		},
		"RevokeToken": func(t *testing.T, s *Store) error {
			tokens, err := s.Tokens(t.Context())
			if err != nil || len(tokens) == 0 {
				t.Fatalf("tokens %v, error %v; want one", tokens, err)
			}
			return s.RevokeToken(t.Context(), tokens[0].ID)
		},
		"PutOutputs": func(t *testing.T, s *Store) error {
			return s.PutOutputs(t.Context(), attempt(3, -1, 1).ID, nil, nil)
		},
	}
	// three returns the Store of a controller, that of a later controller, and one that never called Begin.
	three := func(t *testing.T) (old, next, other *Store) {
		open := openers(t)
		old, next, other = open(t), open(t), open(t)
		begun(t, old)
		submitted(t, old)
		for number := int64(2); number <= 3; number++ {
			commit(t, old, engine.Write{Ended: &engine.JobEnd{Number: number, State: drover.JobFailed, Failed: 1}})
			if _, err := old.CreateToken(t.Context(), hour, drover.TokenRequest{User: "ada", Role: drover.RoleOperate}); err != nil {
				t.Fatal(err)
			}
		}
		begun(t, next)
		return old, next, other
	}
	for name, change := range changes {
		t.Run(name+" is refused only to a controller after another has begun", func(t *testing.T) {
			old, next, other := three(t)
			before := contents(t, other)
			err := change(t, old)
			if drover.KindOf(err) != drover.KindConflict || !strings.Contains(err.Error(), "another controller has taken over the state: its epoch is ") {
				t.Errorf("error %v, want a conflict that names the epoch", err)
			}
			equal(t, "records", contents(t, other), before)
			for who, s := range map[string]*Store{"its successor": next, "a caller that never began": other} {
				if err := change(t, s); err != nil {
					t.Errorf("%s: %v", who, err)
				}
			}
		})
	}

	t.Run("ends when the controller itself begins again", func(t *testing.T) {
		old, _, _ := three(t)
		begun(t, old)
		commit(t, old, engine.Write{Closing: true})
	})
}

// contents returns the number of rows of each kind, and whether the fleet is closing.
func contents(t *testing.T, s *Store) (rows [6]int) {
	t.Helper()
	err := s.read.QueryRowContext(t.Context(), `SELECT (SELECT count(*) FROM jobs), (SELECT count(*) FROM jobs WHERE taken),
		(SELECT count(*) FROM wishes), (SELECT count(*) FROM tokens), (SELECT count(*) FROM outputs), closing FROM fleet`).
		Scan(&rows[0], &rows[1], &rows[2], &rows[3], &rows[4], &rows[5])
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestAControllerWritesNothingToARemovedFile(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"removed": os.Remove,
		"replaced": func(path string) error {
			return errors.Join(os.Rename(path, path+".old"), os.WriteFile(path, nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "drover.db")
			s, err := Open(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			begun(t, s)
			submitted(t, s)
			if err := change(path); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Submit(t.Context(), drover.Submission{Batch: hello()}, Terms{}); drover.KindOf(err) != drover.KindConflict || !strings.Contains(err.Error(), path) {
				t.Errorf("a submission got the error %v; want a conflict that names %s", err, path)
			}
			if err := s.Ready(t.Context()); drover.KindOf(err) != drover.KindConflict {
				t.Errorf("Ready returned %v; want a conflict", err)
			}
		})
	}
}

func TestAnErrorOfTheDatabaseNamesItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drover.db")
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	err = s.change(t.Context(), "writing the records", func(tx *sql.Tx) error {
		_, err := tx.Exec("nonsense")
		return err
	})
	if want := "writing the records: " + path + ": SQL logic error"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("the error is %v; want %s…", err, want)
	}
}
