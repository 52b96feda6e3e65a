package runner_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"drover"
	"drover/internal/notice"
	"drover/internal/wire"
)

// interruptible is an instance whose cloud writes its notices to a file.
type interruptible struct {
	*instance
	file string
}

func newInterruptible(t *testing.T) interruptible {
	t.Parallel()
	i := interruptible{newInstance(t), filepath.Join(t.TempDir(), "notices")}
	i.env = append(i.env, notice.FileVariable+"="+i.file)
	return i
}

// announce has the cloud give notice that it will reclaim the instance.
func (i interruptible) announce(in time.Duration) drover.Notice {
	i.t.Helper()
	n := drover.Notice{Cause: "spot", Deadline: drover.TimeOf(time.Now().Add(in))}
	text, err := json.Marshal(n)
	if err == nil {
		err = os.WriteFile(i.file+".new", text, 0o600)
	}
	if err == nil {
		err = os.Rename(i.file+".new", i.file)
	}
	if err != nil {
		i.t.Fatal(err)
	}
	return n
}

func (c *controller) noticed() drover.Notice {
	c.t.Helper()
	return c.want("Notice", func(m wire.Message) bool { return m.Notice != nil }).Notice.Notice
}

// checkpoint is a script that prints its notice and exits 0 on SIGTERM.
const checkpoint = `trap 'cat "$DROVER_NOTICE_FILE"; echo saved; exit 0' TERM; echo ready; while :; do sleep 0.02; done`

// covers D12
func TestAnInterruption(t *testing.T) {
	orders := wire.Orders{Notices: "file", Grace: time.Minute}

	t.Run("is reported to the controller and the job, which ends in time", func(t *testing.T) {
		i := newInterruptible(t)
		c, id := i.connect(), attempt(1, 1)
		c.order(orders)
		c.start(sh(id, checkpoint))
		c.started(id)
		told := i.announce(20 * time.Second)
		if n := c.noticed(); n != told {
			t.Errorf("the controller got %+v", n)
		}
		e := c.exited(id)
		var shown drover.Notice
		if err := json.Unmarshal([]byte(e.Stdout[len("ready\n"):len(e.Stdout)-len("saved\n")]), &shown); err != nil || shown != told {
			t.Errorf("the job printed %q", e.Stdout)
		}
		if e.Cause != drover.CauseInterrupted || e.Code != 0 {
			t.Errorf("it ended with %+v", e)
		}
	})
	t.Run("lets no attempt begin, and is in the next Hello", func(t *testing.T) {
		i := newInterruptible(t)
		c := i.connect()
		c.order(orders)
		told := i.announce(time.Hour)
		c.noticed()
		c.start(sh(attempt(1, 1), "true"))
		m := c.want("Refused", func(m wire.Message) bool { return m.Refused != nil })
		if !m.Refused.NotHere {
			t.Errorf("refused permanently: %s", m.Refused.Text)
		}
		i.kill(i.daemon())
		if h := i.connect().hello; h.Notice == nil || h.Notice.Notice != told {
			t.Errorf("the next Hello has %+v", h.Notice)
		}
	})
	t.Run("ends jobs without a controller, even after the daemon is replaced", func(t *testing.T) {
		i := newInterruptible(t)
		c, id := i.connect(), attempt(1, 1)
		c.order(wire.Orders{Notices: "file", Grace: time.Second})
		c.start(sh(id, checkpoint))
		c.started(id)
		i.announce(3 * time.Second)
		c.noticed()
		i.kill(i.daemon())
		i.bulk()
		until(t, "the job gets SIGTERM", func() bool {
			text, _ := os.ReadFile(i.attemptPath(id, "stdout"))
			return len(text) > len("ready\n")
		})
		if a := i.connect().hello.Attempts; len(a) != 1 || a[0].Exit != nil && a[0].Exit.Cause != drover.CauseInterrupted {
			t.Errorf("the attempts are %+v", a)
		}
	})
	t.Run("leaves a job that does not catch SIGTERM running, since it may still succeed", func(t *testing.T) {
		i := newInterruptible(t)
		c, id := i.connect(), attempt(1, 1)
		c.order(orders)
		c.start(sh(id, gate))
		c.started(id)
		i.announce(time.Minute)
		until(t, "the job can see the notice", func() bool {
			_, err := os.Stat(i.attemptPath(id, "told/notice"))
			return err == nil
		})
		time.Sleep(200 * time.Millisecond) // a job that catches SIGTERM would have got it by now
		i.openGate(id)
		if e := c.exited(id); e.Code != 5 || e.Cause != "" {
			t.Errorf("it ended with %+v", e)
		}
	})
	t.Run("ends a job that does not catch SIGTERM shortly before the deadline", func(t *testing.T) {
		i := newInterruptible(t)
		c, id := i.connect(), attempt(1, 1)
		c.order(orders)
		c.start(sh(id, "exec sleep 60"))
		c.started(id)
		deadline := i.announce(6 * time.Second).Deadline.Std()
		if e := c.exited(id); e.Cause != drover.CauseInterrupted || e.Signal != "terminated" || deadline.Sub(e.Ended.Std()) > 5*time.Second || !e.Ended.Std().Before(deadline) {
			t.Errorf("it ended with %+v, due at %v", e, deadline)
		}
	})
	t.Run("signals a job that begins to catch SIGTERM after the notice", func(t *testing.T) {
		i := newInterruptible(t)
		c, id := i.connect(), attempt(1, 1)
		c.order(orders)
		c.start(sh(id, `while [ ! -e "$DROVER_NOTICE_FILE" ]; do sleep 0.02; done; `+checkpoint))
		c.started(id)
		deadline := i.announce(time.Minute).Deadline.Std()
		if e := c.exited(id); e.Code != 0 || e.Cause != drover.CauseInterrupted || deadline.Sub(e.Ended.Std()) < 20*time.Second {
			t.Errorf("it ended with %+v, due at %v", e, deadline)
		}
	})
	t.Run("kills a job that ignores SIGTERM, before the deadline", func(t *testing.T) {
		i := newInterruptible(t)
		c, id := i.connect(), attempt(1, 1)
		c.order(wire.Orders{Notices: "file", Grace: 100 * time.Millisecond})
		c.start(sh(id, `trap "" TERM; echo ready; while :; do sleep 0.02; done`))
		c.started(id)
		deadline := i.announce(2 * time.Second).Deadline.Std()
		if e := c.exited(id); e.Cause != drover.CauseInterrupted || e.Signal != "killed" || !e.Ended.Std().Before(deadline) {
			t.Errorf("it ended with %+v, due at %v", e, deadline)
		}
	})
	t.Run("is forgotten once the cloud withdraws it", func(t *testing.T) {
		i := newInterruptible(t)
		c, id := i.connect(), attempt(1, 1)
		c.order(wire.Orders{Notices: "file", Grace: 100 * time.Millisecond})
		c.start(sh(id, gate))
		c.started(id)
		deadline := i.announce(3 * time.Second).Deadline.Std()
		c.noticed()
		if err := os.Remove(i.file); err != nil {
			t.Fatal(err)
		}
		if n := c.noticed(); n.Cause != "" {
			t.Errorf("the controller got %+v", n)
		}
		if _, err := os.Stat(i.attemptPath(id, "told/notice")); err == nil {
			t.Error("the job still sees the notice")
		}
		time.Sleep(time.Until(deadline)) // real processes have a real clock
		i.openGate(id)
		if e := c.exited(id); e.Code != 5 || e.Cause != "" {
			t.Errorf("it ended with %+v", e)
		}
		if e := c.ran(attempt(2, 1), "exit 3"); e.Code != 3 {
			t.Errorf("no attempt begins afterwards: %+v", e)
		}
	})
}
