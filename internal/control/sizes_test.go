package control

import (
	"context"
	"strings"
	"testing"
	"time"

	"drover"
	"drover/internal/engine"
	"drover/internal/store"
)

// sized returns a batch of one job whose input claims to have this many bytes.
func sized(hash string, size int64) drover.Batch {
	return drover.Batch{Name: "sized", Jobs: []drover.JobSpec{{
		Name: "sized", Command: []string{"cat", "x"}, Priority: 1, Attempts: 3, Spot: drover.SpotPrefer,
		Resources: drover.Resources{CPU: 500, Memory: 32 * drover.MiB, Disk: drover.MiB},
		Inputs:    []drover.Input{{Path: "x"}}, Files: []drover.File{{Path: "x", Mode: 0o644, Size: size, Hash: hash}},
	}}}
}

func TestAnInputWithAFalseSize(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	hash, _, err := f.cfg.Inputs.Put(t.Context(), strings.NewReader("ab"))
	if err != nil {
		t.Fatal(err)
	}
	c, end := f.begin()
	defer end()
	t.Run("is refused on submission", func(t *testing.T) {
		_, err := c.Submit(t.Context(), drover.Submission{Batch: sized(hash, 3)})
		if drover.KindOf(err) != drover.KindInvalid || !strings.Contains(err.Error(), "input x should have 3 bytes, but has 2") {
			t.Errorf("%v", err)
		}
	})
	t.Run("fails its job if already submitted", func(t *testing.T) {
		if _, err := f.store.Submit(t.Context(), drover.Submission{Batch: sized(hash, 3)}, store.Terms{}); err != nil {
			t.Fatal(err)
		}
		c.inbox.nudge()
		f.until(c, "the job is final", f.allFinal)
		job, err := f.store.Job(t.Context(), 0, drover.JobID{Number: 1, Index: -1})
		if err != nil || job.State != drover.JobFailed || !strings.Contains(job.Reason.Text, "but has 2") {
			t.Errorf("%+v, %v", job, err)
		}
	})
	c.CloseFleet(context.Background(), true)
	f.until(c, "the fleet is at rest", (*engine.Engine).AtRest)
}

func TestAStartHasMoreTimeForLargerInputs(t *testing.T) {
	for want, files := range map[time.Duration][]drover.File{
		10 * time.Minute: nil,
		30 * time.Minute: {{Size: 1000 << 20}, {Size: 200 << 20}},
	} {
		if got := startTime(files); got != want {
			t.Errorf("%v for %v, not %v", got, files, want)
		}
	}
}
