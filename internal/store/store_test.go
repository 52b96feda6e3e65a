package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drover"
)

// opener opens the same records each time; the first call creates them.
type opener func(t testing.TB) *Store

// sqliteOpener returns an opener of one file in the test's own folder.
func sqliteOpener(t testing.TB) opener {
	return openerOf(filepath.Join(t.TempDir(), "fleet", "drover.db"))
}

func openerOf(path string) opener {
	return func(t testing.TB) *Store {
		t.Helper()
		s, err := Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
}

// sqliteOpeners is sqliteOpener for tests with hundreds of files. To save time, each file begins as a copy of one that
// has its tables, and nothing waits for the disk.
func sqliteOpeners(t testing.TB) func(testing.TB) opener {
	path := filepath.Join(t.TempDir(), "drover.db")
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	empty, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return func(t testing.TB) opener {
		path := filepath.Join(t.TempDir(), "drover.db")
		if err := os.WriteFile(path, empty, 0o600); err != nil {
			t.Fatal(err)
		}
		open := openerOf(path)
		return func(t testing.TB) *Store {
			t.Helper()
			s := open(t)
			if _, err := s.write.Exec(`PRAGMA synchronous = OFF`); err != nil {
				t.Fatal(err)
			}
			return s
		}
	}
}

// covers K1 L4 L29
func TestSQLite(t *testing.T) { suite(t, sqliteOpeners(t)) }

func TestOpen(t *testing.T) {
	t.Run("keeps everything from other users", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "a b?c#d%20", "drover.db")
		s, err := Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if _, err := s.Submit(t.Context(), drover.Submission{Batch: hello()}, Terms{}); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
		if err != nil || len(files) < 2 {
			t.Fatalf("files %q, error %v; want the file and its log", files, err)
		}
		for _, file := range append(files, filepath.Dir(path)) {
			info, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s has permissions %v", file, info.Mode())
			}
		}
	})

	t.Run("suggests restoring a backup if records are damaged", func(t *testing.T) {
		damaged := func(err error) {
			t.Helper()
			if e := drover.AsError(err, drover.KindTransient); e.Kind != drover.KindInternal || !strings.Contains(e.Message, "the records are damaged") || !strings.Contains(e.Hint, "restore a backup") {
				t.Errorf("%+v", e)
			}
		}
		path := filepath.Join(t.TempDir(), "drover.db")
		if err := os.WriteFile(path, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Open(t.Context(), path)
		damaged(err)
		if said := err.Error(); strings.Count(said, "not a database") != 1 {
			t.Errorf("the error does not say once what is wrong: %s", said)
		}

		path = filepath.Join(t.TempDir(), "drover.db")
		s, err := Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i := 4096; i < len(data); i++ { // all but the first page, which has the schema's root
			data[i] = 0xff
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err = Open(t.Context(), path); err == nil {
			defer s.Close()
			_, err = s.Submit(t.Context(), drover.Submission{Batch: hello()}, Terms{})
		}
		damaged(err)

		path = filepath.Join(t.TempDir(), "drover.db")
		if s, err = Open(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if _, err := s.write.ExecContext(t.Context(), `PRAGMA wal_checkpoint(TRUNCATE)`); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err = s.Tokens(t.Context())
		damaged(err)
	})

	t.Run("reports that the caller has left, not that SQLite was interrupted", func(t *testing.T) {
		s := sqliteOpener(t)(t)
		for range 5000 { // a few of these interrupt SQLite while it begins a transaction
			ctx, leave := context.WithCancel(t.Context())
			go leave()
			if err := s.look(ctx, "looking", func(*sql.Tx) error { return nil }); err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
		}
	})

	t.Run("refuses the records of a newer program", func(t *testing.T) {
		for _, change := range []string{`INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)`, `
			UPDATE fleet SET name = 'f', version = 99;
			DELETE FROM goose_db_version WHERE version_id = (SELECT max(version_id) FROM goose_db_version) -- it must not be upgraded first`} {
			open := sqliteOpener(t)
			s := open(t)
			if _, err := s.write.Exec(change); err != nil {
				t.Fatal(err)
			}
			var path string
			if err := s.write.QueryRow(`SELECT file FROM pragma_database_list`).Scan(&path); err != nil {
				t.Fatal(err)
			}
			s.Close()
			if _, err := Open(t.Context(), path); drover.KindOf(err) != drover.KindConflict || drover.AsError(err, "").Hint == "" {
				t.Errorf("%s: error %v, want a conflict with a hint", change, err)
			}
		}
	})
}

// covers L29
func TestLockFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fleet", "drover.db")
	lock, err := LockFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = LockFile(path)
	if drover.KindOf(err) != drover.KindTransient || !containsPid(err.Error()) {
		t.Errorf("second lock: error %v, want a transient one that names process %d", err, os.Getpid())
	}
	if !InUse(path) {
		t.Error("a locked state is not in use")
	}
	unlocked := make(chan error, 1)
	time.AfterFunc(20*time.Millisecond, func() { unlocked <- lock.Unlock() })
	again, err := LockFile(path)
	if err := errors.Join(err, <-unlocked); err != nil {
		t.Fatalf("LockFile did not wait for the lock's release: %v", err)
	}
	if err := again.Unlock(); err != nil {
		t.Fatal(err)
	}
	if InUse(path) || InUse(filepath.Join(t.TempDir(), "none.db")) {
		t.Error("an unlocked state is in use")
	}
}

func TestResolve(t *testing.T) {
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(folder, "a", "drover.db")
	lock, err := LockFile(state)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Unlock()
	link := func(t *testing.T, to, name string) string {
		t.Helper()
		path := filepath.Join(folder, name)
		if err := os.Symlink(to, path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	locked := func(t *testing.T, path string) {
		t.Helper()
		if _, err := LockFile(path); drover.KindOf(err) != drover.KindTransient {
			t.Errorf("error %v, want a transient one", err)
		}
	}

	t.Run("finds a state that does not exist yet through a linked folder", func(t *testing.T) {
		locked(t, filepath.Join(link(t, "a", "b"), "drover.db"))
	})
	t.Run("does not mistake a state that is just being created for a link", func(t *testing.T) {
		folder, times := t.TempDir(), 2000
		if testing.Short() {
			times = 200
		}
		for i := range times {
			path, begun := filepath.Join(folder, fmt.Sprint(i, ".db")), make(chan error)
			go func() { begun <- os.WriteFile(path, nil, 0o600) }()
			if _, err := Resolve(path); err != nil {
				t.Error(err)
			}
			if err := <-begun; err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("leads to the same lock through any link", func(t *testing.T) {
		path := link(t, state, "c.db")
		if s, err := Open(t.Context(), path); err == nil || drover.KindOf(err) != drover.KindInvalid {
			t.Errorf("store %v, error %v; want the broken link to be invalid", s, err)
		}
		s, err := Open(t.Context(), state)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		locked(t, path)
	})
	t.Run("keeps the log beside the file itself", func(t *testing.T) {
		path := link(t, state, "d.db")
		s, err := Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		begun(t, s)
		if _, err := os.Stat(state + "-wal"); err != nil {
			t.Error(err)
		}
	})
	t.Run("creates missing folders where a link leads", func(t *testing.T) {
		path, err := Resolve(filepath.Join(folder, "b", "new", "er", "drover.db"))
		if want := filepath.Join(folder, "a", "new", "er", "drover.db"); err != nil || path != want {
			t.Errorf("path %s, error %v; want %s", path, err, want)
		}
	})
}

func BenchmarkOpen(b *testing.B) {
	for b.Loop() {
		s, err := Open(b.Context(), filepath.Join(b.TempDir(), "drover.db"))
		if err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}

func TestAFullDisk(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "drover.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var pages int
	if err := s.write.QueryRow("PRAGMA page_count").Scan(&pages); err != nil {
		t.Fatal(err)
	}
	if _, err := s.write.Exec(fmt.Sprintf("PRAGMA max_page_count = %d", pages+1)); err != nil {
		t.Fatal(err)
	}
	batch := hello()
	batch.Jobs[0].Command = []string{strings.Repeat("x", 1<<20)}
	_, err = s.Submit(t.Context(), drover.Submission{Batch: batch}, Terms{})
	if e := drover.AsError(err, drover.KindInternal); e.Kind != drover.KindTransient || e.Hint == "" {
		t.Errorf("a submission without room for it: %+v", e)
	}
	_, err = s.write.Exec("CREATE TABLE large AS SELECT zeroblob(1<<20)")
	if e := drover.AsError(notBackedUp("drover.db", "backup.db", err), drover.KindInternal); e.Kind != drover.KindTransient || !strings.Contains(e.Message, "holds backup.db is full") {
		t.Errorf("a backup without room for it: %+v", e)
	}
}

func TestRecordsThatAnotherProgramHasLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drover.db")
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.write.Exec("PRAGMA busy_timeout = 0"); err != nil {
		t.Fatal(err)
	}
	other, err := connect(path, 1, writerOptions)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	tx, err := other.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	_, began := s.Begin(t.Context(), "lab")
	_, submitted := s.Submit(t.Context(), drover.Submission{Batch: hello()}, Terms{})
	for _, err := range []error{began, submitted} {
		if e := drover.AsError(err, drover.KindInternal); e.Kind != drover.KindTransient || e.Hint == "" {
			t.Errorf("a change of locked records: %+v", e)
		}
	}
}
