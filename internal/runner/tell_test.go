package runner_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"drover/internal/wire"
)

// covers D15
func TestTheRunnersOwnLog(t *testing.T) {
	says := func(text string) func(string) bool {
		return func(line string) bool { return strings.Contains(line, text) }
	}
	t.Run("is sent as it is written", func(t *testing.T) {
		i := newInstance(t)
		c := i.connectAs(i.binary, hello)
		late := hello
		late.Epoch = 0
		i.connectAs(i.binary, late)
		c.want("its log", func(m wire.Message) bool {
			return m.Log != nil && strings.Contains(m.Log.Line, "rejecting a controller") && !strings.Contains(m.Log.Line, "\n")
		})
	})
	t.Run("comes with the Hello, including a dead daemon's", func(t *testing.T) {
		i := newInstance(t)
		if c := i.connect(); !slices.ContainsFunc(c.hello.Log, says("is starting with 0 attempts")) {
			t.Errorf("the log is %q", c.hello.Log)
		}
		died := i.daemon()
		i.kill(died)
		c := i.connect()
		if len(c.hello.Log) != 2 {
			t.Errorf("after the daemon's death the log is %q", c.hello.Log)
		}
	})
	t.Run("is cut to its last lines, each of bounded length", func(t *testing.T) {
		i := newInstance(t)
		c := i.connect()
		bad := hello
		bad.Instance = strings.Repeat("x", 2*wire.LogLine)
		for range wire.LogLines + 5 {
			i.connectAs(i.binary, bad)
		}
		c.disconnect()
		lines := i.connect().hello.Log
		if len(lines) == 0 || len(lines) > wire.LogLines {
			t.Errorf("%d lines", len(lines))
		}
		for _, line := range lines {
			if len(line) > wire.LogLine {
				t.Errorf("a line of %d bytes", len(line))
			}
		}
	})
}

func TestARunningDaemonRotatesItsLog(t *testing.T) {
	t.Parallel()
	i := newInstance(t)
	i.connect()
	log := filepath.Join(i.dir, "daemon.log")
	if err := os.Truncate(log, 2<<20); err != nil { // which makes it larger
		t.Fatal(err)
	}
	until(t, "the log is rotated", func() bool {
		_, err := os.Stat(log)
		old, oldErr := os.Stat(log + ".1")
		return err == nil && oldErr == nil && old.Size() >= 2<<20
	})
	late := hello
	late.Epoch = 0
	until(t, "the new log has a line", func() bool {
		i.connectAs(i.binary, late)
		text, err := os.ReadFile(log)
		return err == nil && strings.Contains(string(text), "rejecting a controller")
	})
}
