package runner_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drover/internal/wire"
)

// covers D21
func TestHealth(t *testing.T) {
	ailing := func(c *controller) string {
		t.Helper()
		return c.want("Ailing", func(m wire.Message) bool { return m.Ailing != nil }).Ailing.Text
	}
	t.Run("is reported when it is lost and when it is regained, and is in the next Hello", func(t *testing.T) {
		i := newInstance(t)
		sick := filepath.Join(t.TempDir(), "sick")
		looks := sick + ".looks"
		if err := os.WriteFile(sick, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		c := i.connect()
		c.order(wire.Orders{Interval: 20 * time.Millisecond, Deadline: 10 * time.Second, Health: "echo look >>" + looks + "; [ ! -e " + sick + " ] || { echo no  disk; exit 3; }"})
		if text := ailing(c); !strings.HasSuffix(text, "(exit status 3): no disk") {
			t.Errorf("it reports %q", text)
		}
		if text, _ := os.ReadFile(looks); len(text) < len("look\nlook\n") {
			t.Errorf("it reported that after one check")
		}
		c.disconnect()
		c = i.connect()
		if c.hello.Ailing == nil || c.hello.Ailing.Text == "" {
			t.Errorf("the next Hello has %+v", c.hello.Ailing)
		}
		if err := os.Remove(sick); err != nil {
			t.Fatal(err)
		}
		if text := ailing(c); text != "" {
			t.Errorf("after recovery it reports %q", text)
		}
	})
	t.Run("is lost when the health command hangs, which is killed with its children", func(t *testing.T) {
		i := newInstance(t)
		c := i.connect()
		c.order(wire.Orders{Interval: time.Millisecond, Deadline: 20 * time.Millisecond, Health: "sleep 4711 & sleep 4711"})
		if text := ailing(c); !strings.Contains(text, "did not end within 20ms") {
			t.Errorf("it reports %q", text)
		}
		c.order(wire.Orders{})
		until(t, "none of its processes is left", func() bool {
			return len(i.processes(func(pid int) bool {
				line, _ := os.ReadFile(procPath(pid, "cmdline"))
				return strings.Contains(string(line), "4711")
			})) == 0
		})
	})
	t.Run("is lost when the runner's folder cannot be written to", func(t *testing.T) {
		i := newInstance(t)
		c := i.connect()
		if err := os.Mkdir(filepath.Join(i.dir, "look"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(i.dir, "look", "x"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		c.order(wire.Orders{Interval: time.Millisecond})
		if text := ailing(c); !strings.Contains(text, "cannot be written") {
			t.Errorf("it reports %q", text)
		}
	})
}
