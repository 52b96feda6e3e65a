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
	t.Run("correcting the clock after an attempt ended does not drop its result", func(t *testing.T) {
		d.end(a, drover.Exit{Ended: drover.TimeOf(time.Unix(0, 0))})
		if d.dropOld(time.Now().Add(-keepEnded)); d.attempts[a.id] == nil {
			t.Error("the result was dropped")
		}
	})
	t.Run("an old result is dropped", func(t *testing.T) {
		if d.dropOld(time.Now().Add(time.Minute)); d.attempts[a.id] != nil {
			t.Error("the old result was kept")
		}
	})
}
