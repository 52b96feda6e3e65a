package runner_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drover/internal/deadman"
	"drover/internal/wire"
)

// mortal is an instance whose power-off program only leaves a mark.
type mortal struct {
	*instance
	mark, held string
}

func newMortal(t *testing.T) mortal {
	t.Parallel()
	folder := t.TempDir()
	m := mortal{newInstance(t), filepath.Join(folder, "off"), filepath.Join(folder, "switch")}
	program := filepath.Join(folder, "poweroff")
	err := os.WriteFile(program, []byte("#!/bin/sh\n>"+m.mark+"\n"), 0o700)
	if err == nil {
		err = os.WriteFile(m.held, nil, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	m.env = append(m.env, deadman.PowerOffVariable+"="+program, deadman.FileVariable+"="+m.held)
	return m
}

func (m mortal) off() bool { _, err := os.Stat(m.mark); return err == nil }

// switchLine returns the last line written to the instance's dead-man switch.
func (m mortal) switchLine() string {
	text, err := os.ReadFile(m.held)
	if err != nil {
		m.t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}

// awaitHold waits until the switch is held again.
func (m mortal) awaitHold() {
	m.t.Helper()
	last := m.switchLine()
	until(m.t, "the switch is held", func() bool { now := m.switchLine(); return now != last && now != "off" })
}

func (c *controller) order(o wire.Orders) {
	c.t.Helper()
	c.send(wire.Message{Orders: &o})
	c.ping()
}

func TestAnUnwantedInstance(t *testing.T) {
	const soon = 400 * time.Millisecond
	t.Run("powers itself off, and says so in its log", func(t *testing.T) {
		i := newMortal(t)
		c := i.connect()
		c.order(wire.Orders{Orphan: soon})
		c.disconnect()
		until(t, "it powers itself off", i.off)
		if log, _ := os.ReadFile(filepath.Join(i.dir, "daemon.log")); !strings.Contains(string(log), ": powering off") {
			t.Errorf("the log does not say so: %s", log)
		}
		if i.switchLine() != "off" {
			t.Error("the dead-man switch was not set to off")
		}
	})
	t.Run("stays on while it hears a controller, and holds the switch", func(t *testing.T) {
		i := newMortal(t)
		c := i.connect()
		c.order(wire.Orders{Orphan: soon})
		for began := time.Now(); time.Since(began) < 3*soon; time.Sleep(soon / 8) { // real processes have a real clock
			c.ping()
		}
		if i.off() {
			t.Error("it powered off")
		}
		i.awaitHold()
	})
	t.Run("never powers off if its orders say so, and holds the switch", func(t *testing.T) {
		i := newMortal(t)
		c := i.connect()
		c.order(wire.Orders{Orphan: 0})
		until(t, "the switch is held", func() bool { return i.switchLine() != "" })
		if i.off() {
			t.Error("it powered off")
		}
	})
	t.Run("stays on while a job runs, and waits again for its results to be fetched", func(t *testing.T) {
		i := newMortal(t)
		c, id := i.connect(), attempt(1, 1)
		c.order(wire.Orders{Orphan: soon})
		c.start(sh(id, gate))
		c.started(id)
		c.disconnect()
		time.Sleep(3 * soon) // real processes have a real clock
		if i.off() {
			t.Fatal("it powered off while its job ran")
		}
		i.openGate(id)
		ended := time.Now()
		until(t, "it powers itself off", i.off)
		if waited := time.Since(ended); waited < soon {
			t.Errorf("it powered off after %v", waited)
		}
	})
	t.Run("keeps its orders when its daemon dies, and its supervisors hold the switch", func(t *testing.T) {
		i := newMortal(t)
		c, id := i.connect(), attempt(1, 1)
		c.order(wire.Orders{Orphan: soon})
		c.start(sh(id, gate))
		c.started(id)
		i.kill(i.daemon())
		i.awaitHold()
		i.openGate(id)
		i.bulk() // starts the next daemon, but is no controller
		until(t, "it powers itself off", i.off)
	})
	t.Run("ignores a controller of an old epoch", func(t *testing.T) {
		i := newMortal(t)
		c := i.connectAs(i.binary, wire.Hello{Version: wire.Version, Epoch: 7, Fleet: "lab", Instance: "lab-1"})
		c.order(wire.Orders{Orphan: soon})
		c.disconnect()
		until(t, "it powers itself off", func() bool {
			if h := i.connect().hello; h.Error == "" {
				t.Fatal("it accepted a controller of an old epoch")
			}
			return i.off()
		})
	})
	t.Run("serves a controller that returns while it cannot power off", func(t *testing.T) {
		i := newMortal(t)
		c := i.connect()
		c.order(wire.Orders{Orphan: soon})
		c.disconnect()
		until(t, "it powers itself off", i.off)
		c = i.connect()
		i.awaitHold()
		if e := c.ran(attempt(1, 1), "exit 4"); e.Code != 4 {
			t.Errorf("it no longer runs attempts: %+v", e)
		}
	})
	t.Run("reports when it last heard a controller, even after its daemon died", func(t *testing.T) {
		i := newMortal(t)
		c := i.connect()
		if !c.hello.Heard.IsZero() {
			t.Errorf("it reports contact at %v", c.hello.Heard)
		}
		c.order(wire.Orders{Orphan: time.Hour})
		until(t, "the contact is recorded", func() bool { _, err := os.Stat(filepath.Join(i.dir, "heard")); return err == nil })
		i.kill(i.daemon())
		if ago := time.Since(i.connect().hello.Heard); ago < 0 || ago > time.Minute {
			t.Errorf("it reports contact %v ago", ago)
		}
	})
}
