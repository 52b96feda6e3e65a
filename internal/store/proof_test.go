package store

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"drover"
	"drover/internal/engine"
)

// place is a state in its own folder, with backups.
type place struct {
	t    *testing.T
	path string
	open opener
}

func newPlace(t *testing.T) *place {
	path := filepath.Join(t.TempDir(), "drover.db")
	return &place{t, path, openerOf(path)}
}

// backUp copies the records while they are in use, as sqlite3's .backup would.
func (p *place) backUp(s *Store) (copied string) {
	p.t.Helper()
	copied = filepath.Join(p.t.TempDir(), "copy.db")
	if _, err := s.write.Exec(`VACUUM INTO ?`, copied); err != nil {
		p.t.Fatal(err)
	}
	return copied
}

// putBack replaces the records with a backup after the controller was killed.
func (p *place) putBack(s *Store, copied string) {
	p.t.Helper()
	s.Close()
	for _, name := range []string{p.path + "-wal", p.path + "-shm"} {
		os.Remove(name)
	}
	if err := os.Rename(copied, p.path); err != nil {
		p.t.Fatal(err)
	}
}

func wantCurrent(t *testing.T, state engine.State) {
	t.Helper()
	if state.StaleRecords != nil {
		t.Errorf("the records are stale: %s", state.StaleRecords.Text)
	}
}

func wantStale(t *testing.T, state engine.State, why string) {
	t.Helper()
	if state.StaleRecords == nil || !strings.Contains(state.StaleRecords.Text, why) {
		t.Errorf("stale because %v, want %q", state.StaleRecords, why)
	}
}

// covers D9
func TestTheNoteProvesThatRecordsAreCurrent(t *testing.T) {
	t.Run("new records are current", func(t *testing.T) {
		wantCurrent(t, begun(t, newPlace(t).open(t)))
	})

	t.Run("so are those of a killed controller", func(t *testing.T) {
		p := newPlace(t)
		begun(t, p.open(t))
		s := p.open(t)
		begun(t, s)
		submitted(t, s)
		commit(t, s, engine.Write{Closing: true})
		wantCurrent(t, begun(t, p.open(t)))
	})

	t.Run("so are those ahead of the note, after a kill between the two writes", func(t *testing.T) {
		p := newPlace(t)
		s := p.open(t)
		begun(t, s)
		s.proof.close()
		commit(t, s, engine.Write{Closing: true})
		wantCurrent(t, begun(t, p.open(t)))
	})

	t.Run("a backup is not, and numbers assigned since are not reused", func(t *testing.T) {
		p := newPlace(t)
		s := p.open(t)
		begun(t, s)
		copied := p.backUp(s)
		submitted(t, s)
		commit(t, s, engine.Write{Instance: &engine.Instance{ID: 7, State: drover.InstanceCreating}})
		p.putBack(s, copied)
		s = p.open(t)
		if why, err := s.StaleRecords(t.Context()); err != nil || why == nil {
			t.Errorf("before Begin the records are stale because %v, error %v", why, err)
		}
		state := begun(t, s)
		wantStale(t, state, "they lack changes that the progress file has recorded: 2")
		if state.LastInstance != 7+engine.Leap || state.LastAttempt != engine.Leap {
			t.Errorf("instances continue from %d, attempts from %d", state.LastInstance, state.LastAttempt)
		}
		if jobs := submitted(t, s); jobs[0].Number != 3+engine.Leap+1 {
			t.Errorf("jobs continue with %d", jobs[0].Number)
		}
	})

	t.Run("the log beside a backup has later successes, with their outputs", func(t *testing.T) {
		p := newPlace(t)
		s := p.open(t)
		begun(t, s)
		jobs := submitted(t, s)
		instance := engine.Instance{ID: 7, State: drover.InstanceRunning}
		commit(t, s, engine.Write{Job: &jobs[0]}, engine.Write{Instance: &instance})
		copied := p.backUp(s)
		won := engine.Attempt{
			ID: drover.AttemptID{Job: drover.JobID{Number: jobs[0].Number, Index: -1}, Number: 1}, Instance: 7,
			State: drover.AttemptSucceeded, Ended: 5, Exit: &drover.Exit{MaxRSS: 9, Stdout: "this is in the results"},
		}
		files := []drover.File{{Path: "out", Size: 3, Hash: "abc"}}
		if err := s.PutOutputs(t.Context(), won.ID, files, []string{"one was left out"}); err != nil {
			t.Fatal(err)
		}
		commit(t, s, engine.Write{Attempt: &engine.AttemptRow{Attempt: won}})
		lost := won
		lost.ID.Job.Number, lost.State = jobs[1].Number, drover.AttemptLost
		commit(t, s, engine.Write{Attempt: &engine.AttemptRow{Attempt: lost}})
		p.putBack(s, copied)
		torn, err := os.OpenFile(p.path+".successes", os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		torn.WriteString(`{"nonce": "half a li`)
		torn.Close()
		for range 2 { // until the records are current
			s = p.open(t)
			state := begun(t, s)
			equal(t, "successes", state.Successes, []engine.Success{{Attempt: won.ID, Exit: drover.Exit{MaxRSS: 9}, Ended: 5}})
		}
		commit(t, s, engine.Write{Current: true}, engine.Write{Element: &engine.ElementRow{
			Job: won.ID.Job.Number, Element: engine.Element{Index: -1, Number: 1}, State: drover.JobSucceeded,
		}})
		outputs, err := s.Outputs(t.Context(), won.ID.Job.Number)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "outputs", outputs, map[int][]drover.File{-1: files})
		if state := begun(t, p.open(t)); len(state.Successes) > 0 {
			t.Errorf("current records come with %v", state.Successes)
		}
	})

	t.Run("a log that grows too long keeps its older half", func(t *testing.T) {
		l := successesOf(filepath.Join(t.TempDir(), "drover.db"))
		if err := l.begin("n"); err != nil {
			t.Fatal(err)
		}
		big := make([]drover.File, 20) // a few long names are faster to write and read than many short ones
		for i := range big {
			big[i].Path = strings.Repeat("an/output", 5000)
		}
		lines := 0
		for ; lines < 50; lines++ {
			l.add(success{Outputs: &outputs{Attempt: drover.AttemptID{Job: drover.JobID{Number: 1, Index: -1}, Number: lines + 1}, Files: big}})
		}
		l.close()
		read := 0
		for _, path := range []string{l.path + ".1", l.path} {
			info, err := os.Stat(path)
			if err != nil || info.Size() > successesSize {
				t.Errorf("%s: %v, error %v", path, info, err)
			}
			err = readSuccesses(path, func(line success) error {
				if line.Outputs.Attempt.Number != read+1 {
					t.Errorf("line %d is about attempt %d", read, line.Outputs.Attempt.Number)
				}
				read++
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}
		if read != lines {
			t.Errorf("%d of %d lines are read", read, lines)
		}
	})

	t.Run("a second restored backup leaps again", func(t *testing.T) {
		p := newPlace(t)
		s := p.open(t)
		begun(t, s)
		first, second := p.backUp(s), p.backUp(s)
		commit(t, s, engine.Write{Closing: true})
		p.putBack(s, first)
		s = p.open(t)
		begun(t, s)
		commit(t, s, engine.Write{Current: true})
		p.putBack(s, second)
		if state := begun(t, p.open(t)); state.LastAttempt != 2*engine.Leap {
			t.Errorf("attempts continue from %d, as after the first time", state.LastAttempt)
		}
	})

	t.Run("stale records stay stale over a restart, until a commit marks them as current", func(t *testing.T) {
		p := newPlace(t)
		s := p.open(t)
		begun(t, s)
		commit(t, s, engine.Write{Stale: &engine.Staleness{Reason: drover.Reason{Code: drover.ReasonUnproved, Text: "so it was seen"}, LastInstance: 20, LastAttempt: 5}})
		s = p.open(t)
		state := begun(t, s)
		wantStale(t, state, "so it was seen")
		if state.LastInstance != 20 || state.LastAttempt != 5 {
			t.Errorf("instances continue from %d, attempts from %d; want 20 and 5", state.LastInstance, state.LastAttempt)
		}
		commit(t, s, engine.Write{Current: true})
		wantCurrent(t, begun(t, p.open(t)))
	})
}

// covers P8
func TestANoteThatProvesNothing(t *testing.T) {
	used := func(t *testing.T) *place {
		p := newPlace(t)
		s := p.open(t)
		begun(t, s)
		s.Close()
		return p
	}
	t.Run("is missing", func(t *testing.T) {
		p := used(t)
		os.Remove(p.path + ".proof")
		wantStale(t, begun(t, p.open(t)), "their progress file is missing")
	})
	t.Run("belongs to other records", func(t *testing.T) {
		p, other := used(t), used(t)
		if err := os.Rename(other.path+".proof", p.path+".proof"); err != nil {
			t.Fatal(err)
		}
		wantStale(t, begun(t, p.open(t)), "other records")
	})
	t.Run("is not a note", func(t *testing.T) {
		p := used(t)
		for _, text := range []string{"", "\x00\x00", "{", `{"nonce":1}`, strings.Repeat(" ", 9999)} {
			if err := os.WriteFile(p.path+".proof", []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			wantStale(t, begun(t, p.open(t)), "cannot be read")
		}
	})
	t.Run("was put back with the records", func(t *testing.T) {
		p := used(t)
		s := p.open(t)
		state := begun(t, s)
		s.Close()
		// The same note, written an hour ago: its file was made just now.
		m := s.proof.at
		m.Nonce = state.Nonce
		text, err := m.note(time.Now().Add(-time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p.path+".proof", text, 0o600); err != nil {
			t.Fatal(err)
		}
		wantStale(t, begun(t, p.open(t)), "copied, moved or changed")
	})
}

func TestTheNoteShowsThatRecordsWereLost(t *testing.T) {
	p := newPlace(t)
	lost := func() bool {
		t.Helper()
		s := p.open(t)
		defer s.Close()
		is, err := s.Lost(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return is
	}
	if lost() {
		t.Error("records that never existed count as lost")
	}
	empty, err := os.ReadFile(p.path)
	if err != nil {
		t.Fatal(err)
	}
	s := p.open(t)
	begun(t, s)
	submitted(t, s)
	commit(t, s, engine.Write{Closing: true})
	s.Close()
	if lost() {
		t.Error("records that exist count as lost")
	}
	for name, lose := range map[string]func(string) error{
		"emptied": func(path string) error { return os.Truncate(path, 0) },
		"removed": os.Remove,
		"replaced by a copy from before the first controller": func(path string) error { return os.WriteFile(path, empty, 0o600) },
	} {
		if err := lose(p.path); err != nil || !lost() {
			t.Errorf("%s: records do not count as lost: %v", name, err)
		}
	}
}

func TestConcurrentChangesAdvanceTheNote(t *testing.T) {
	p := newPlace(t)
	s := p.open(t)
	begun(t, s)
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for range 20 {
				commit(t, s, engine.Write{Closing: true})
			}
		})
	}
	writers.Wait()
	noted, whyNot, err := s.proof.read()
	if err != nil || whyNot != "" || noted.Changes != 161 {
		t.Errorf("the note is %+v, %q, %v; want one with 161 changes", noted, whyNot, err)
	}
	info, err := os.Stat(p.path + ".proof")
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() != noteSize {
		t.Errorf("the note is %v, error %v", info, err)
	}
}

func TestANoteThatCannotBeWrittenIsRemoved(t *testing.T) {
	p := newPlace(t)
	s := p.open(t)
	begun(t, s)
	s.proof.file.Close()
	commit(t, s, engine.Write{Closing: true})
	wantStale(t, begun(t, p.open(t)), "their progress file is missing")
}
