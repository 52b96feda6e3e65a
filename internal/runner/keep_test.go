package runner

import (
	"testing"
	"time"

	"drover"
)

// covers D9
func TestHowLongResultsAreKept(t *testing.T) {
	t.Chdir(t.TempDir())
	bin, err := newTrash()
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{trash: bin, attempts: make(map[drover.AttemptID]*attempt)}
	a := &attempt{id: drover.AttemptID{Job: drover.JobID{Number: 1, Index: -1}, Number: 1}, folder: "attempt"}
	d.attempts[a.id] = a
	t.Run("a clock that was wrong when an attempt ended, and is set since, does not throw its result away", func(t *testing.T) {
		d.end(a, drover.Exit{Ended: drover.TimeOf(time.Unix(0, 0))})
		if d.dropOld(time.Now().Add(-keepEnded)); d.attempts[a.id] == nil {
			t.Error("it is gone")
		}
	})
	t.Run("it is dropped when it is old", func(t *testing.T) {
		if d.dropOld(time.Now().Add(time.Minute)); d.attempts[a.id] != nil {
			t.Error("it is still there")
		}
	})
}
