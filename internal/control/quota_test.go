package control

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"drover"
	"drover/internal/engine"
)

// limited returns a fixture for many batches, with limits.
func limited(t *testing.T, l drover.UserLimits) *fixture {
	f := newFixture(t)
	f.cfg.Shared, f.cfg.Limits = true, l
	return f
}

// refused fails unless err is a quota error that contains all of these texts.
func refused(t *testing.T, err error, says ...string) {
	t.Helper()
	if drover.KindOf(err) != drover.KindQuota {
		t.Fatalf("not refused: %v", err)
	}
	for _, want := range says {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
}

func TestInputsOfAUserAreLimited(t *testing.T) {
	f := limited(t, drover.UserLimits{Inputs: 100 * drover.KiB})
	c, stop := f.begin()
	defer stop()
	put := func(ctx context.Context, contents string) error {
		return c.PutInput(ctx, hashOf(contents), strings.NewReader(contents))
	}
	large := func(c string) string { return strings.Repeat(c, 60<<10) }
	must(0, put(as(t, "eve"), large("a")))(t)

	t.Run("refuses a second one that is too much, and keeps nothing of it", func(t *testing.T) {
		refused(t, put(as(t, "eve"), large("b")), "eve", "limits.inputs", "100Ki")
		if f.cfg.Inputs.Has(hashOf(large("b"))) {
			t.Error("it was stored")
		}
	})
	t.Run("refuses an endless one while it arrives", func(t *testing.T) {
		refused(t, c.PutInput(as(t, "eve"), hashOf("x"), iotest.OneByteReader(endlessly{})), "limits.inputs")
	})
	t.Run("counts concurrent ones together", func(t *testing.T) {
		var wg sync.WaitGroup
		taken := make(chan bool, 10)
		for i := range 10 {
			wg.Go(func() { taken <- put(as(t, "mallory"), large(string(rune('a'+i)))) == nil })
		}
		wg.Wait()
		close(taken)
		n := 0
		for ok := range taken {
			if ok {
				n++
			}
		}
		if used := must(c.cfg.Store.Usage(t.Context(), "mallory"))(t); n > 1 || used.Inputs > 100*drover.KiB {
			t.Errorf("%d were accepted, %v in total", n, used.Inputs)
		}
	})
	t.Run("counts the disk blocks of a thousand empty ones", func(t *testing.T) {
		var err error
		for i := 0; i < 100 && err == nil; i++ {
			err = put(as(t, "trent"), strings.Repeat("x", i))
		}
		refused(t, err, "limits.inputs")
	})
	t.Run("does not hinder other users", func(t *testing.T) { must(0, put(as(t, "ada"), large("b")))(t) })
	t.Run("a user cannot exceed the limit through an administrator", func(t *testing.T) {
		root := drover.WithIdentity(t.Context(), drover.Identity{User: "root", Role: drover.RoleAdmin})
		must(0, put(root, large("c")))(t)
		_, err := c.Submit(root, reading("eve", large("c")))
		refused(t, err, "limits.inputs", "eve")
	})
}

// endlessly is endless contents.
type endlessly struct{}

func (endlessly) Read(p []byte) (int, error) { return len(p), nil }

func TestJobsOfAUserAreLimited(t *testing.T) {
	f := limited(t, drover.UserLimits{Jobs: 3, Elements: 10})
	c, stop := f.begin()
	defer stop()
	submit := func(user string, jobs, elements int) error {
		s := drover.Submission{Batch: drover.Batch{Name: "b", User: user}}
		for i := range jobs {
			s.Batch.Jobs = append(s.Batch.Jobs, drover.JobSpec{
				Name: "j" + string(rune('a'+i)), Command: []string{"true"}, Array: drover.Array{Last: elements - 1, Set: true}, Attempts: 1, Spot: drover.SpotPrefer,
				Resources: drover.Resources{CPU: 1},
			})
		}
		_, err := c.Submit(as(t, user), s)
		return err
	}
	must(0, submit("eve", 2, 1))(t)
	refused(t, submit("eve", 2, 1), "eve would have 4 unfinished jobs", "limits.jobs", "3")
	refused(t, submit("eve", 1, 9), "eve would have 11 elements", "limits.elements", "10")
	for want, err := range map[string]error{
		"the batch has 4 jobs, but limits.jobs is 3": submit("eve", 4, 1), "the batch has 11 elements, but limits.elements is 10": submit("eve", 1, 11),
	} {
		if drover.KindOf(err) != drover.KindInvalid || err.Error() != want { // waiting would not help
			t.Errorf("%v, want %s", err, want)
		}
	}
	must(0, submit("eve", 1, 8))(t)
	must(0, submit("ada", 3, 1))(t)
	must(c.Cancel(as(t, "eve"), job(1), ""))(t)
	f.until(c, "the job is final", func(*engine.Engine) bool { return must(c.stored(t.Context(), job(1)))(t).State.Final() })
	must(0, submit("eve", 1, 1))(t)
	t.Run("a requeued job counts again", func(t *testing.T) {
		_, err := c.Retry(as(t, "eve"), job(1), "")
		refused(t, err, "limits.jobs")
	})
}

func TestResultsOfAUserAreLimited(t *testing.T) {
	f := limited(t, drover.UserLimits{Results: 50 * drover.KiB})
	c, stop := f.begin()
	submit := func(c *Controller, user, script string) error {
		spec := drover.JobSpec{
			Name: "j", Command: []string{"sh", "-c", script}, Priority: 1, Attempts: 1, Spot: drover.SpotPrefer, Outputs: []string{"out"},
			Resources: drover.Resources{CPU: 1},
		}
		_, err := c.Submit(as(t, user), drover.Submission{Batch: drover.Batch{Name: "b", User: user, Jobs: []drover.JobSpec{spec}}})
		return err
	}
	must(0, submit(c, "eve", "head -c 60000 /dev/zero > out; echo done"))(t)
	f.until(c, "the job is final", f.allFinal)
	t.Run("keeps a running job's results whatever the limit", func(t *testing.T) {
		r := must(c.OpenOutput(t.Context(), job(1), "out", 0))(t)
		defer r.Close()
		if text := must(io.ReadAll(r))(t); len(text) != 60000 {
			t.Errorf("%d bytes", len(text))
		}
	})
	must(0, stop())(t) // this records the size of the results
	c, stop = f.begin()
	defer stop()
	t.Run("then refuses submissions and retries", func(t *testing.T) {
		refused(t, submit(c, "eve", "true"), "eve", "62.5Ki", "limits.results", "50Ki")
		must(0, submit(c, "ada", "true"))(t)
	})
	t.Run("does not count results that somebody deleted", func(t *testing.T) {
		must(0, c.Recount(t.Context()))(t)
		refused(t, submit(c, "eve", "true"), "limits.results")
		out := filepath.Dir(f.logs)
		must(0, os.RemoveAll(filepath.Join(out, "1")))(t)
		must(0, os.Remove(filepath.Join(out, "logs", "1.out")))(t)
		must(0, c.Recount(t.Context()))(t)
		must(0, submit(c, "eve", "true"))(t)
	})
}
