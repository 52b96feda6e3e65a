package runner_test

import (
	"strings"
	"testing"

	"drover"
	"drover/internal/wire"
)

// covers D9 L2
func TestFence(t *testing.T) {
	t.Run("a repeated Start is answered, but the attempt does not run again", func(t *testing.T) {
		i := newInstance(t)
		c, id := i.connect(), attempt(1, 1)
		script := "echo x; sleep 0.1"
		c.start(sh(id, script))
		c.start(sh(id, script))
		c.started(id)
		c.exited(id)
		c.start(sh(id, script))
		c.started(id)
		if e := c.exited(id); e.Stdout != "x\n" {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("new records may reuse an attempt's number once the old attempt has ended", func(t *testing.T) {
		i := newInstance(t)
		c, id := i.connect(), attempt(1, 1)
		of := func(store string, id drover.AttemptID, script string) start {
			s := sh(id, script)
			s.Store, s.Proof = store, store+"-proof"
			return s
		}
		for number := 1; number <= 3; number++ { // so the fence of the old records is at 3
			c.start(of("old", attempt(1, number), "echo old; sleep 0.1"))
			c.exited(attempt(1, number))
		}
		c.start(of("new", id, "echo new"))
		if e := c.exited(id); e.Stdout != "new\n" {
			t.Errorf("got %+v", e)
		}
		c.send(wire.Message{Forget: &wire.Forget{ID: id, Not: "new"}}) // a late message about the old attempt
		c.start(of("new", id, "echo new"))
		if e := c.exited(id); e.Stdout != "new\n" {
			t.Errorf("it was forgotten: %+v", e)
		}
		i.kill(i.daemon())
		c = i.connect()
		c.start(of("new", id, "echo again"))
		if e := c.exited(id); e.Stdout != "new\n" {
			t.Errorf("the next daemon has %+v", e)
		}
		c.start(of("old", attempt(1, 2), "echo late"))
		if e := c.exited(attempt(1, 2)); e.Stdout != "old\n" {
			t.Errorf("the old attempt's exit is %+v", e)
		}
	})
	t.Run("two attempts of one job never run at once", func(t *testing.T) {
		c := newInstance(t).connect()
		c.start(sh(attempt(1, 1), "sleep 1000"))
		c.start(sh(attempt(1, 2), "true"))
		c.refused(attempt(1, 2))
	})
	t.Run("elements of one array may run at once", func(t *testing.T) {
		c := newInstance(t).connect()
		element := func(index int) drover.AttemptID {
			return drover.AttemptID{Job: drover.JobID{Number: 1, Index: index}, Number: 1}
		}
		c.start(sh(element(0), "sleep 1000"))
		c.ran(element(1), "true")
	})
	for _, forget := range []bool{false, true} {
		for _, restart := range []bool{false, true} {
			name := "a lower number is refused"
			if forget {
				name += ", even if the higher was forgotten"
			}
			if restart {
				name += ", even by the next daemon"
			}
			t.Run(name, func(t *testing.T) {
				i := newInstance(t)
				c := i.connect()
				c.ran(attempt(1, 3), "true")
				if forget {
					c.forget(attempt(1, 3))
				}
				if restart {
					i.kill(i.daemon())
					c = i.connect()
				}
				c.start(sh(attempt(1, 2), "true"))
				c.refused(attempt(1, 2))
				c.ran(attempt(1, 4), "true")
			})
		}
	}
	t.Run("a forgotten attempt is not run again", func(t *testing.T) {
		c := newInstance(t).connect()
		c.ran(attempt(1, 1), "true")
		c.forget(attempt(1, 1))
		c.start(sh(attempt(1, 1), "true"))
		c.refused(attempt(1, 1))
	})
	t.Run("a running attempt is not forgotten", func(t *testing.T) {
		i := newInstance(t)
		c := i.connect()
		c.start(sh(attempt(1, 1), gate))
		i.awaitLine(attempt(1, 1), "ready")
		c.forget(attempt(1, 1))
		i.openGate(attempt(1, 1))
		if e := c.exited(attempt(1, 1)); e.Code != 5 {
			t.Errorf("got %+v", e)
		}
	})
}

// covers L29
func TestHello(t *testing.T) {
	with := func(change func(*wire.Hello)) wire.Hello {
		h := hello
		change(&h)
		return h
	}
	for _, test := range []struct {
		name  string
		hello wire.Hello
		want  string
	}{
		{"another fleet's controller is refused", with(func(h *wire.Hello) { h.Fleet = "other" }), "fleet"},
		{"another instance's controller is refused", with(func(h *wire.Hello) { h.Instance = "lab-2" }), "lab-2"},
		{"another version of the protocol is refused", with(func(h *wire.Hello) { h.Version = 99 }), "version"},
		{"a lower epoch is refused", with(func(h *wire.Hello) { h.Epoch = 4 }), "epoch"},
	} {
		t.Run(test.name, func(t *testing.T) {
			i := newInstance(t)
			first := i.connectAs(i.binary, with(func(h *wire.Hello) { h.Epoch = 5 }))
			c := i.connectAs(i.binary, test.hello)
			if !strings.Contains(c.hello.Error, test.want) || c.hello.Epoch != 5 {
				t.Errorf("got %+v", c.hello)
			}
			c.hungUp()
			first.ping()
		})
	}
	t.Run("the highest epoch outlives the daemon", func(t *testing.T) {
		i := newInstance(t)
		i.connectAs(i.binary, with(func(h *wire.Hello) { h.Epoch = 5 }))
		i.kill(i.daemon())
		if c := i.connectAs(i.binary, with(func(h *wire.Hello) { h.Epoch = 4 })); c.hello.Error == "" {
			t.Errorf("got %+v", c.hello)
		}
	})
	t.Run("a later controller takes over and gets the earlier one's attempts", func(t *testing.T) {
		i := newInstance(t)
		first := i.connect()
		first.start(sh(attempt(1, 1), gate))
		first.started(attempt(1, 1))
		second := i.connectAs(i.binary, with(func(h *wire.Hello) { h.Epoch = 2 }))
		first.hungUp()
		i.openGate(attempt(1, 1))
		if e := second.exited(attempt(1, 1)); e.Code != 5 {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("a bulk channel on an instance that no controller has claimed is refused", func(t *testing.T) {
		ch := newInstance(t).bulk()
		if err := <-ch.done; err == nil {
			t.Error("the bridge succeeded")
		} else {
			ch.done <- err
		}
	})
	t.Run("a folder with a long path works", func(t *testing.T) {
		i := newInstance(t)
		i.dir += "/" + strings.Repeat("long/", 30)
		i.connect().ran(attempt(1, 1), "true")
	})
	t.Run("many results fit into one Hello with all their output", func(t *testing.T) {
		i := newInstance(t)
		c := i.connect()
		const jobs = 40
		for n := range int64(jobs) {
			c.start(sh(attempt(n+1, 1), `head -c 5000 /dev/zero; head -c 5000 /dev/zero >&2`))
		}
		for range jobs {
			c.want("an end", func(m wire.Message) bool { return m.Exited != nil })
		}
		if got := i.connect().hello.Attempts; len(got) != jobs {
			t.Errorf("%d attempts, want %d", len(got), jobs)
		}
	})
}
