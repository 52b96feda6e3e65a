package remote

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"drover"
	"drover/internal/wire"
)

// oneByte answers every request for a log with a single byte, and keeps any other channel until its input ends.
func oneByte(r wire.Request, lines *wire.Conn, out io.Writer) bool {
	if lines.Write(wire.Reply{Size: 1}) != nil {
		return false
	}
	if r.Op == wire.GetLog {
		_, err := io.WriteString(out, "x")
		return err == nil
	}
	_, err := io.Copy(io.Discard, lines.Bytes())
	return err == nil
}

func TestRoomForChannels(t *testing.T) {
	begin := func(t *testing.T, bulk func(wire.Request, *wire.Conn, io.Writer) bool, times Timeouts) (*fakeInstance, *Conn) {
		i, target := fake(t, &fakeRunner{bulk: bulk})
		i.room, target.Timeouts = 2, times
		c, err := Connect(testContext(t), target)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		go c.Run(testContext(t), newEvents())
		return i, c
	}
	fetch := func(t *testing.T, c *Conn) {
		log, err := c.FetchLog(testContext(t), attempt(1), "stdout", 0, math.MaxInt64)
		if err == nil {
			_, err = io.ReadAll(log)
		}
		if err != nil {
			t.Error(err)
		}
	}
	t.Run("an SSH server with room for two channels serves many transfers in turn", func(t *testing.T) {
		_, c := begin(t, oneByte, Timeouts{})
		var all sync.WaitGroup
		for range 6 {
			all.Go(func() { fetch(t, c) })
		}
		all.Wait()
		api, err := c.OpenAPI(1)
		if err != nil {
			t.Fatal(err)
		}
		api.Close()
		fetch(t, c)
	})
	t.Run("an SSH server that stays full is reported in time, with a hint", func(t *testing.T) {
		_, c := begin(t, oneByte, Timeouts{Command: 200 * time.Millisecond})
		if _, err := c.OpenAPI(1); err != nil {
			t.Fatal(err)
		}
		_, err := c.FetchLog(testContext(t), attempt(1), "stdout", 0, math.MaxInt64)
		var e *drover.Error
		if !errors.As(err, &e) || e.Kind != drover.KindTransient || !strings.Contains(e.Hint, "MaxSessions") {
			t.Errorf("%v", err)
		}
	})
	t.Run("an upload that the instance does not read is ended", func(t *testing.T) {
		over := make(chan struct{})
		i, c := begin(t, func(_ wire.Request, lines *wire.Conn, _ io.Writer) bool {
			lines.Write(wire.Reply{})
			<-over
			return false
		}, Timeouts{Stall: 50 * time.Millisecond})
		t.Cleanup(func() { close(over) })
		content := bytes.Repeat([]byte("x"), 8<<20) // larger than a window
		if err := c.put(testContext(t), "hash", func(string) (io.ReadCloser, int64, error) {
			return io.NopCloser(bytes.NewReader(content)), int64(len(content)), nil
		}); err == nil {
			t.Error("sent")
		}
		waitUntil(t, "the channel ends", func() bool { return i.channels() == 1 })
	})
	t.Run("an instance that does not close a channel loses its connection", func(t *testing.T) {
		_, c := begin(t, oneByte, Timeouts{Command: 10 * time.Millisecond})
		c.end(&process{Channel: deafChannel{}, ended: make(chan struct{})})
		if _, err := c.FetchLog(testContext(t), attempt(1), "stdout", 0, math.MaxInt64); err == nil || !strings.Contains(err.Error(), "did not close a channel") {
			t.Error(err)
		}
	})
}

// deafChannel is a channel whose other side does not answer.
type deafChannel struct{ ssh.Channel }

func (deafChannel) Close() error { return nil }
