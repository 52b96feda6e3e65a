package runner

import (
	"errors"
	"os"
	"strings"
	"testing"

	"drover"
)

func TestAdoptUnreadable(t *testing.T) {
	t.Run("an attempt whose journal cannot be read is kept, since it may be running", func(t *testing.T) {
		t.Chdir(t.TempDir())
		bin, err := newTrash()
		if err != nil {
			t.Fatal(err)
		}
		folder, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		d := &daemon{folder: folder, trash: bin, attempts: make(map[drover.AttemptID]*attempt)}
		// Of the errors of opening a journal, a test can cause only this one.
		journal := d.newAttempt(drover.AttemptID{Job: drover.JobID{Number: 1, Index: -1}, Number: 1}).folder.journal()
		if err := os.MkdirAll(journal, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := d.adopt(); err == nil {
			t.Error("an unreadable attempt was adopted")
		}
		if _, err := os.Stat(journal); err != nil {
			t.Error(err)
		}
	})
}

func TestAPartialLineDoesNotSpoilTheNext(t *testing.T) {
	f := folder(t.TempDir())
	cut := func() { // as a disk does that becomes full
		j, err := openJournal(f.journal())
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		if _, err := j.file.WriteString("\n" + `{"time":"2026-01-02T03:`); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.allow(record{ID: drover.AttemptID{Job: drover.JobID{Number: 1, Index: -1}, Number: 1}}); err != nil {
		t.Fatal(err)
	}
	cut()
	j, err := f.begin("boot")
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	cut()
	if err := errors.Join(j.append(entry{Stop: &stopOrder{}}), f.finish(drover.Exit{Code: 3})); err != nil {
		t.Fatal(err)
	}
	if h, err := f.history(); err != nil || h.attempt == nil || h.begun == nil || len(h.stops) != 1 || h.exit == nil || h.exit.Code != 3 {
		t.Errorf("got %+v, %v", h, err)
	}
}

func TestALongLogDoesNotHideTheResult(t *testing.T) {
	f := folder(t.TempDir())
	if err := f.allow(record{ID: drover.AttemptID{Job: drover.JobID{Number: 1, Index: -1}, Number: 1}}); err != nil {
		t.Fatal(err)
	}
	j, err := f.begin("boot")
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for range maxJournal / 1024 {
		j.logf("signalling: %s", strings.Repeat("x", 1024))
	}
	if err := errors.Join(j.append(entry{Stop: &stopOrder{}}), f.finish(drover.Exit{Code: 3})); err != nil {
		t.Fatal(err)
	}
	if h, err := f.history(); err != nil || len(h.stops) != 1 || h.exit == nil || h.exit.Code != 3 || len(h.log) == 0 {
		t.Errorf("got %+v, %v", h, err)
	}
}
