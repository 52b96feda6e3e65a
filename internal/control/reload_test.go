package control

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"drover"
	"drover/driver"
	"drover/internal/engine"
	"drover/internal/store"
)

// covers P6
func TestReconfigure(t *testing.T) {
	t.Parallel()
	t.Run("keeps what a list in progress has seen", func(t *testing.T) {
		f := newFixture(t)
		c := must(New(t.Context(), f.cfg))(t)
		before := c.current().clouds["here"]
		c.setup = c.newSetup(f.cfg.Setup, c.setup.clouds)
		before.replace(map[string]driver.Instance{"i-1": {ID: "i-1"}})
		if _, removed := c.current().clouds["here"].replace(nil); len(removed) != 1 {
			t.Errorf("removed is %q", removed)
		}
	})
	t.Run("tags an instance of the previous driver immediately", func(t *testing.T) {
		f := newFixture(t)
		c, stop := f.begin()
		defer stop()
		f.submit(c, "sleep 60")
		f.until(c, "the job runs", runs(1))
		s := f.cfg.Setup
		s.Clouds = []Cloud{s.Clouds[0]}
		s.Clouds[0].Driver = struct{ driver.Cloud }{s.Clouds[0].Driver} // another driver, of the same cloud
		must(0, c.Reconfigure(t.Context(), s))(t)
		must(c.Instruct(t.Context(), "1", drover.VerbHold, ""))(t)
		f.until(c, "it is tagged", func(e *engine.Engine) bool { return !e.Instances()[0].Retag })
	})
	t.Run("changes nothing if it fails", func(t *testing.T) {
		f := newFixture(t)
		c := must(New(t.Context(), f.cfg))(t)
		before := c.current()
		s := f.cfg.Setup
		s.Settings.Budgets = []engine.Budget{{Hard: engine.Amounts{Daily: drover.Dollar}}}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // so that past spending cannot be read
		if err := c.Reconfigure(ctx, s); err == nil || c.current() != before {
			t.Errorf("%v; the setup changed: %t", err, c.current() != before)
		}
	})
	t.Run("refuses calls to a cloud that never existed", func(t *testing.T) {
		f := newFixture(t)
		c := must(New(t.Context(), f.cfg))(t)
		for what, err := range map[string]*drover.Error{
			"offerings": c.offerings(t.Context(), 1, engine.ListOfferings{Cloud: "x"}).(engine.Offered).Err,
			"list":      c.list(t.Context(), 1, engine.ListInstances{Cloud: "x"}).(engine.Listed).Err,
			"create":    c.create(t.Context(), 1, engine.Create{Cloud: "x"}).(engine.CreateFailed).Err,
			"destroy":   transient(c.destroy(t.Context(), engine.Destroy{Cloud: "x"})),
			"tags":      transient(c.setTags(t.Context(), engine.SetTags{Cloud: "x"})),
		} {
			if err == nil || err.Kind != drover.KindInvalid {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

func TestFollowingEndsWithTheReaderOrTheController(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c, stop := f.begin()
	f.submit(c, "while sleep 0.01; do echo .; done")
	f.until(c, "the job runs", runs(1))
	request := drover.LogRequest{Job: job(1), Stream: drover.Stdout, Follow: true}
	t.Run("a reader closed during a read releases its spool", func(t *testing.T) {
		for range 30 {
			r := must(c.Logs(t.Context(), request))(t)
			read := make(chan error, 1)
			go func() { _, err := io.Copy(io.Discard, r); read <- err }()
			time.AfterFunc(3*time.Millisecond, func() { r.Close() })
			if err := <-read; !errors.Is(err, context.Canceled) {
				t.Errorf("reading ended with %v", err)
			}
		}
		f.until(c, "no spool is open", func(*engine.Engine) bool {
			c.spools.mu.Lock()
			defer c.spools.mu.Unlock()
			return len(c.spools.open) == 0
		})
	})
	t.Run("a full disk is reported before the stream begins", func(t *testing.T) {
		c.full.Store(&drover.Reason{Code: drover.ReasonDiskFull})
		defer c.full.Store(nil)
		if _, err := c.Logs(t.Context(), request); !errors.Is(err, store.ErrFull) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a waiting reader learns that the controller has ended", func(t *testing.T) {
		r := must(c.Logs(t.Context(), request))(t)
		defer r.Close()
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, r); !errors.Is(err, errEnded) {
			t.Errorf("reading ended with %v", err)
		}
	})
}

func TestASpoolReportsFailedWrites(t *testing.T) {
	file := must(os.Create(filepath.Join(t.TempDir(), "spool")))(t)
	file.Close()
	s := newSpool(file, func() {})
	if _, err := s.Write([]byte("x")); err == nil || !s.failed() {
		t.Fatal("writing to a closed file works")
	}
	if _, _, _, _, err := s.readAt(make([]byte, 1), 0); drover.KindOf(err) != drover.KindInternal {
		t.Errorf("its reader gets %v", err)
	}
}

func TestAMissingAddressIsExplained(t *testing.T) {
	t.Parallel()
	c := must(New(t.Context(), newFixture(t).cfg))(t)
	cl := must(c.cloud("here"))(t)
	for _, step := range []struct {
		name, want string
		happens    func()
	}{
		{"before the first list", "its address is not known yet", func() {}},
		{"listed without an address", "its address is not known yet", func() { cl.replace(map[string]driver.Instance{"i-1": {ID: "i-1"}}) }},
		{"no longer listed", "its cloud does not list it", func() { cl.replace(nil) }},
		{"just created", "its address is not known yet", func() { cl.remember(driver.Instance{ID: "i-1"}) }},
	} {
		step.happens()
		if _, _, err := c.address(cl, engine.Connect{ProviderID: "i-1"}); err == nil || err.Error() != step.want || drover.KindOf(err) != drover.KindNotFound {
			t.Errorf("%s: got %v, want %q", step.name, err, step.want)
		}
	}
}

// muteCloud is a cloud whose lists fail.
type muteCloud struct{ driver.Cloud }

func (muteCloud) List(context.Context, map[string]string) ([]driver.Instance, error) {
	return nil, drover.Errorf(drover.KindTransient, "the cloud does not answer")
}

// covers D9
func TestRunningJobsAreCollectedWhileListsFail(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c, stop := f.begin()
	f.submit(c, "sleep 0.5; echo done")
	f.until(c, "the job runs", runs(1))
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	f.cfg.Clouds[0].Driver = muteCloud{f.cfg.Clouds[0].Driver}
	c, stop = f.begin()
	f.until(c, "the job is final", f.allFinal)
	job := must(c.Job(t.Context(), drover.JobID{Number: 1, Index: -1}))(t)
	if job.State != drover.JobSucceeded || len(job.Attempts) != 1 {
		t.Errorf("job 1 is %s after %d attempts", job.State, len(job.Attempts))
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	f.cfg.Clouds[0].Driver = f.cfg.Clouds[0].Driver.(muteCloud).Cloud
	c, stop = f.begin()
	c.CloseFleet(t.Context(), true)
	f.until(c, "the fleet is at rest", (*engine.Engine).AtRest)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}
