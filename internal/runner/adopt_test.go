package runner

import (
	"os"
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
