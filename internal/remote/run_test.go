package remote

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"drover"
	"drover/internal/wire"
)

// inBubble connects to a fake runner and runs the connection, in a bubble with its own clock.
func inBubble(t *testing.T, f *fakeRunner, test func(t *testing.T, c *Conn, ended <-chan error)) {
	synctest.Test(t, func(t *testing.T) {
		_, target := fake(t, f)
		target.Timeouts = Timeouts{ProbeInterval: 10 * time.Second, Probe: 3 * time.Second}
		c, err := Connect(t.Context(), target)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- c.Run(t.Context(), deaf{}) }()
		test(t, c, ended)
		c.Close()
		synctest.Wait()
	})
}

// covers D3
func TestRun(t *testing.T) {
	t.Run("an instance that answers is pinged at every interval and kept", func(t *testing.T) {
		var pings atomic.Int64
		f := &fakeRunner{ping: func(p wire.Ping) *wire.Ping {
			pings.Add(1)
			return &p
		}}
		inBubble(t, f, func(t *testing.T, c *Conn, ended <-chan error) {
			time.Sleep(time.Minute + time.Second)
			if n := pings.Load(); n != 6 {
				t.Errorf("%d pings in a minute", n)
			}
			if quiet := time.Since(c.Heard()); quiet > 2*time.Second {
				t.Errorf("heard %v ago", quiet)
			}
			if len(ended) != 0 {
				t.Error(<-ended)
			}
		})
	})
	t.Run("an instance that falls silent is pinged once more and then given up", func(t *testing.T) {
		var pings atomic.Int64
		f := &fakeRunner{ping: func(wire.Ping) *wire.Ping {
			pings.Add(1)
			return nil
		}}
		inBubble(t, f, func(t *testing.T, _ *Conn, ended <-chan error) {
			began := time.Now()
			err := <-ended
			if drover.KindOf(err) != drover.KindUnreachable || !strings.Contains(err.Error(), "silent") {
				t.Error(err)
			}
			if took := time.Since(began); took != 16*time.Second || pings.Load() != 2 {
				t.Errorf("%d pings, given up after %v", pings.Load(), took)
			}
		})
	})
	t.Run("an instance that answers the second ping is kept", func(t *testing.T) {
		var pings atomic.Int64
		f := &fakeRunner{ping: func(p wire.Ping) *wire.Ping {
			if pings.Add(1) == 1 {
				return nil
			}
			return &p
		}}
		inBubble(t, f, func(t *testing.T, _ *Conn, ended <-chan error) {
			time.Sleep(time.Minute)
			if len(ended) != 0 {
				t.Error(<-ended)
			}
		})
	})
	t.Run("an ended stream's error says how the runner ended", func(t *testing.T) {
		f := &fakeRunner{}
		synctest.Test(t, func(t *testing.T) {
			i, target := fake(t, f)
			var raw net.Conn
			target.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
				var err error
				raw, err = i.dial(ctx, network, address)
				return raw, err
			}
			c, err := Connect(t.Context(), target)
			if err != nil {
				t.Fatal(err)
			}
			raw.Close()
			err = c.Run(t.Context(), deaf{})
			if drover.KindOf(err) != drover.KindUnreachable || !strings.Contains(err.Error(), "the connection broke") {
				t.Error(err)
			}
		})
	})
	t.Run("it ends with its connection or its context", func(t *testing.T) {
		inBubble(t, &fakeRunner{}, func(t *testing.T, c *Conn, ended <-chan error) {
			c.Close()
			if err := <-ended; !errors.Is(err, net.ErrClosed) {
				t.Error(err)
			}
		})
		synctest.Test(t, func(t *testing.T) {
			_, target := fake(t, &fakeRunner{})
			c, err := Connect(t.Context(), target)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := c.Run(ctx, deaf{}); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
	})
}

// holed is a network connection whose writes can be made to hang, as those of a half-open connection do.
type holed struct {
	net.Conn
	hole atomic.Bool
	over chan struct{}
}

func (h *holed) Write(p []byte) (int, error) {
	if h.hole.Load() {
		<-h.over
		return 0, net.ErrClosed
	}
	return h.Conn.Write(p)
}

func (h *holed) Close() error {
	if h.hole.CompareAndSwap(true, false) {
		close(h.over)
	}
	return h.Conn.Close()
}

// covers F2
func TestAHalfOpenConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, target := fake(t, &fakeRunner{})
		h := &holed{over: make(chan struct{})}
		target.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			var err error
			h.Conn, err = i.dial(ctx, network, address)
			return h, err
		}
		target.Timeouts = Timeouts{Probe: 3 * time.Second}
		c, err := Connect(t.Context(), target)
		if err != nil {
			t.Fatal(err)
		}
		h.hole.Store(true)
		began := time.Now()
		err = c.Run(t.Context(), deaf{})
		if drover.KindOf(err) != drover.KindUnreachable || !strings.Contains(err.Error(), "could not be sent within 3s") {
			t.Error(err)
		}
		if took := time.Since(began); took != 13*time.Second {
			t.Errorf("it ended after %v", took)
		}
		if err := c.Forget(attempt(1), ""); drover.KindOf(err) != drover.KindTransient {
			t.Errorf("afterwards Forget returns %v", err)
		}
	})
}

func TestOurOwnSilence(t *testing.T) {
	t.Run("a timer that fires much too late proves nothing about the instance", func(t *testing.T) {
		for _, c := range []struct {
			asked, took time.Duration
			late        bool
		}{
			{10 * time.Second, 10 * time.Second, false},
			{10 * time.Second, 14 * time.Second, false},
			{10 * time.Second, 16 * time.Second, true},
			{10 * time.Millisecond, 500 * time.Millisecond, false},
			{10 * time.Millisecond, 2 * time.Second, true},
		} {
			if late(c.asked, c.took) != c.late {
				t.Errorf("%+v", c)
			}
		}
	})
	t.Run("nor does silence while our handler holds up the stream", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := &fakeRunner{}
			_, target := fake(t, f)
			target.Timeouts = Timeouts{Probe: time.Second}
			c, err := Connect(t.Context(), target)
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- c.Run(t.Context(), slow{Duration: time.Minute}) }()
			if err := f.control().Write(wire.Message{Exited: &wire.Exited{ID: attempt(1)}}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Minute)
			if len(ended) != 0 {
				t.Error(<-ended)
			}
			c.Close()
			synctest.Wait()
		})
	})
}

// slow is a Handler that blocks.
type slow struct {
	deaf
	time.Duration
}

func (s slow) Exited(wire.Exited) { time.Sleep(s.Duration) }
