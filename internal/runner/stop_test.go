package runner_test

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"drover"
	"drover/internal/wire"
)

func (c *controller) stop(id drover.AttemptID, grace time.Duration) {
	c.t.Helper()
	c.send(wire.Message{Stop: &wire.Stop{ID: id, Grace: grace}})
}

// awaitLine waits until a script has printed a line.
func (i *instance) awaitLine(id drover.AttemptID, line string) {
	i.t.Helper()
	until(i.t, "the command prints "+line, func() bool {
		text, _ := os.ReadFile(i.attemptPath(id, "stdout"))
		return strings.Contains(string(text), line+"\n")
	})
}

// number reads a number that a script wrote into its working folder.
func (i *instance) number(id drover.AttemptID, name string) (n int) {
	i.t.Helper()
	until(i.t, name+" holds a number", func() bool {
		text, _ := os.ReadFile(i.attemptPath(id, "work/"+name))
		got, err := strconv.Atoi(strings.TrimSpace(string(text)))
		n = got
		return err == nil && strings.HasSuffix(string(text), "\n")
	})
	return n
}

// covers D13 L22
func TestStop(t *testing.T) {
	t.Run("a stopped command gets SIGTERM and may choose its exit code", func(t *testing.T) {
		i := newInstance(t)
		c, id := i.connect(), attempt(1, 1)
		c.start(sh(id, `trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.02; done`))
		i.awaitLine(id, "ready")
		c.stop(id, time.Minute)
		if e := c.exited(id); e.Code != 7 || e.Cause != drover.CauseStopped || e.Stdout != "ready\nbye\n" {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("a command that ignores SIGTERM is killed after the grace", func(t *testing.T) {
		i := newInstance(t)
		c, id := i.connect(), attempt(1, 1)
		c.start(sh(id, `trap '' TERM; echo ready; while :; do sleep 0.02; done`))
		i.awaitLine(id, "ready")
		c.stop(id, 100*time.Millisecond)
		if e := c.exited(id); e.Code != 137 || e.Signal != "killed" || e.Cause != drover.CauseStopped {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("a second stop can shorten the grace of the first", func(t *testing.T) {
		i := newInstance(t)
		c, id := i.connect(), attempt(1, 1)
		c.start(sh(id, `trap '' TERM; echo ready; while :; do sleep 0.02; done`))
		i.awaitLine(id, "ready")
		c.stop(id, time.Hour)
		c.stop(id, 0)
		if e := c.exited(id); e.Signal != "killed" {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("a command that exceeds its timeout is ended", func(t *testing.T) {
		c, id := newInstance(t).connect(), attempt(1, 1)
		s := sh(id, "sleep 1000")
		s.Timeout = 50 * time.Millisecond
		c.start(s)
		if e := c.exited(id); e.Code != 143 || e.Cause != drover.CauseTimeout || !strings.Contains(e.Text, "50ms") {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("a stop right after its start is not lost", func(t *testing.T) {
		c := newInstance(t).connect()
		for n := range int64(10) {
			id := attempt(n+1, 1)
			c.start(sh(id, "sleep 1000"))
			c.stop(id, time.Second)
			if e := c.exited(id); e.Cause != drover.CauseStopped {
				t.Errorf("got %+v", e)
			}
		}
	})
	t.Run("a stop of an unknown attempt is ignored", func(t *testing.T) {
		c := newInstance(t).connect()
		c.stop(attempt(9, 9), 0)
		c.ping()
	})
}

// covers D13 L21
func TestDescendants(t *testing.T) {
	for name, script := range map[string]string{
		"in the command's own group":     `sleep 1000 & echo $! > left`,
		"in its own session":             `setsid sh -c 'echo $$ > left; exec sleep 1000' & sleep 0.05`,
		"that has become a daemon":       `setsid sh -c 'sh -c "echo \$\$ > left; exec sleep 1000" &' & sleep 0.05`,
		"that ignores SIGTERM":           `sh -c 'trap "" TERM; echo $$ > left; while :; do sleep 0.02; done' & sleep 0.05`,
		"that has redirected its output": `setsid sh -c 'echo $$ > left; exec sleep 1000' </dev/null >/dev/null 2>&1 & sleep 0.05`,
	} {
		t.Run("a descendant "+name+" is killed when the command ends", func(t *testing.T) {
			i := newInstance(t)
			c, id := i.connect(), attempt(1, 1)
			c.ran(id, script+"; while [ ! -s left ]; do sleep 0.01; done")
			if pid := i.number(id, "left"); alive(pid) {
				t.Errorf("process %d still runs after Exited", pid)
			}
		})
	}
}
