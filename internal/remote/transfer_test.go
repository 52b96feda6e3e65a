package remote

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"drover"
	"drover/internal/wire"
)

// longLog is larger than all buffers on the way together.
const longLog = 16 << 20

// library answers bulk requests as a fake runner.
func library(r wire.Request, lines *wire.Conn, raw io.Writer) bool {
	switch {
	case r.Op == wire.GetLog && r.Stream == "long":
		lines.Write(wire.Reply{Size: longLog})
		_, err := io.CopyN(raw, zeros{}, longLog)
		return err == nil
	case r.Op == wire.GetLog && r.Stream == "stuck":
		lines.Write(wire.Reply{Size: 10})
		io.WriteString(raw, "12345")
	case r.Op == wire.GetLog && r.Stream == "broken":
		lines.Write(wire.Reply{Size: 10})
		io.WriteString(raw, "12345")
		return false
	case r.Op == wire.GetLog && r.Stream == "mute":
	case r.Op == wire.GetLog && r.Stream == "stdout":
		text := "0123456789"[r.Offset:]
		lines.Write(wire.Reply{Size: int64(len(text))})
		io.WriteString(raw, text)
	case r.Op == wire.GetOutputs:
		lines.Write(wire.Reply{})
		chunks := wire.ChunkWriter{W: raw}
		io.WriteString(chunks, "a tar stream")
		chunks.Close()
		last := wire.Reply{LeftOut: []string{"a\x07 link"}, Unmatched: []int{2, 0, 2, 2}}
		if r.ID == attempt(2) {
			last = wire.Reply{Error: "disk error"}
		}
		lines.Write(last)
	case r.Op == wire.OpenAPI:
		lines.Write(wire.Reply{})
		io.Copy(raw, lines.Bytes())
		return false
	default:
		lines.Write(wire.Reply{Error: "there is no such thing"})
	}
	return true
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// withLibrary runs a connection to an instance with the library in a bubble.
func withLibrary(t *testing.T, test func(t *testing.T, c *Conn, i *fakeInstance)) {
	synctest.Test(t, func(t *testing.T) {
		i, target := fake(t, &fakeRunner{bulk: library})
		c, err := Connect(t.Context(), target)
		if err != nil {
			t.Fatal(err)
		}
		go c.Run(t.Context(), deaf{})
		test(t, c, i)
		c.Close()
		synctest.Wait()
	})
}

func fetch(t *testing.T, c *Conn, stream string, offset, limit int64) string {
	t.Helper()
	r, err := c.FetchLog(t.Context(), attempt(1), stream, offset, limit)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

func bulks(i *fakeInstance) (n int) {
	for _, c := range i.commands() {
		if strings.Contains(c, " bulk ") {
			n++
		}
	}
	return n
}

func TestLogs(t *testing.T) {
	t.Run("one channel serves one fetch after another", func(t *testing.T) {
		withLibrary(t, func(t *testing.T, c *Conn, i *fakeInstance) {
			for offset, want := range map[int64]string{0: "0123456789", 7: "789", 10: ""} {
				if got := fetch(t, c, "stdout", offset, math.MaxInt64); got != want {
					t.Errorf("%q", got)
				}
			}
			if n := bulks(i); n != 1 {
				t.Errorf("%d channels", n)
			}
		})
	})
	t.Run("a channel is closed after a while unused", func(t *testing.T) {
		withLibrary(t, func(t *testing.T, c *Conn, i *fakeInstance) {
			fetch(t, c, "stdout", 0, math.MaxInt64)
			b := c.transfers.pop()
			c.transfers.push(b)
			time.Sleep(c.times.Idle - time.Second)
			synctest.Wait()
			if !b.stands() {
				t.Error("closed early")
			}
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if b.stands() {
				t.Error("still open")
			}
			fetch(t, c, "stdout", 0, math.MaxInt64)
			if n := bulks(i); n != 2 {
				t.Errorf("%d channels", n)
			}
		})
	})
	t.Run("only the requested part of a log is returned", func(t *testing.T) {
		withLibrary(t, func(t *testing.T, c *Conn, _ *fakeInstance) {
			if got := fetch(t, c, "stdout", 2, 3); got != "234" {
				t.Errorf("%q", got)
			}
			if got := fetch(t, c, "stdout", 2, 0); got != "" {
				t.Errorf("%q", got)
			}
			if got := fetch(t, c, "stdout", 5, 3); got != "567" {
				t.Errorf("%q", got)
			}
		})
	})
	t.Run("a missing log is not found", func(t *testing.T) {
		withLibrary(t, func(t *testing.T, c *Conn, _ *fakeInstance) {
			_, err := c.FetchLog(t.Context(), attempt(1), "x", 0, math.MaxInt64)
			if drover.KindOf(err) != drover.KindNotFound {
				t.Error(err)
			}
		})
	})
	t.Run("a log that ends early or gets stuck is an error", func(t *testing.T) {
		withLibrary(t, func(t *testing.T, c *Conn, _ *fakeInstance) {
			for stream, want := range map[string]string{"broken": "the bulk channel ended", "stuck": "no progress for 1m0s"} {
				r, err := c.FetchLog(t.Context(), attempt(1), stream, 0, math.MaxInt64)
				if err != nil {
					t.Fatal(err)
				}
				text, err := io.ReadAll(r)
				if string(text) != "12345" || drover.KindOf(err) != drover.KindTransient || !strings.Contains(err.Error(), want) {
					t.Errorf("%q, %v", text, err)
				}
			}
			synctest.Wait()
			if len(c.transfers.slots) != 0 {
				t.Errorf("%d channels still lent", len(c.transfers.slots))
			}
		})
	})
	t.Run("a context that ends stops the wait for a hanging runner", func(t *testing.T) {
		withLibrary(t, func(t *testing.T, c *Conn, _ *fakeInstance) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := c.FetchLog(ctx, attempt(1), "mute", 0, math.MaxInt64)
			if drover.KindOf(err) != drover.KindTransient || !strings.Contains(err.Error(), "deadline exceeded") {
				t.Error(err)
			}
			if got := fetch(t, c, "stdout", 0, math.MaxInt64); got != "0123456789" {
				t.Errorf("afterwards %q", got)
			}
		})
	})
	t.Run("a pool never opens more channels than its size", func(t *testing.T) {
		withLibrary(t, func(t *testing.T, c *Conn, i *fakeInstance) {
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() { fetch(t, c, "stdout", 0, math.MaxInt64) })
			}
			all.Wait()
			if n := bulks(i); n > maxTransfers {
				t.Errorf("%d channels", n)
			}
		})
	})
}

func TestOutputs(t *testing.T) {
	read := func(into *string) func(io.Reader) error {
		return func(r io.Reader) error {
			text, err := io.ReadAll(r)
			*into = string(text)
			return err
		}
	}
	withLibrary(t, func(t *testing.T, c *Conn, i *fakeInstance) {
		var got string
		absent, err := c.Outputs(t.Context(), attempt(1), read(&got))
		if err != nil || got != "a tar stream" || !cmp.Equal(absent, Absent{LeftOut: []string{"a  link"}, Unmatched: []int{0, 2}}) {
			t.Errorf("%q, %+v, %v", got, absent, err)
		}
		if _, err := c.Outputs(t.Context(), attempt(2), read(&got)); drover.KindOf(err) != drover.KindInvalid || !strings.Contains(err.Error(), "incomplete: the runner says: disk error") {
			t.Errorf("incomplete outputs: %v", err)
		}
		full := fmt.Errorf("our disk is full")
		if _, err := c.Outputs(t.Context(), attempt(1), func(io.Reader) error { return full }); err != full {
			t.Errorf("a taker's own error: %v", err)
		}
		if _, err := c.Outputs(t.Context(), attempt(1), func(io.Reader) error { return nil }); err != nil {
			t.Errorf("a taker that does not read to the end: %v", err)
		}
	})
}

func TestOpenAPI(t *testing.T) {
	withLibrary(t, func(t *testing.T, c *Conn, _ *fakeInstance) {
		conn, err := c.OpenAPI(1)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(conn, "GET /")
		time.Sleep(time.Hour)
		got := make([]byte, 5)
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != "GET /" {
			t.Errorf("%q, %v", got, err)
		}
		woken := make(chan error)
		go func() {
			_, err := conn.Read(got)
			woken <- err
		}()
		synctest.Wait()
		conn.Close()
		if err := <-woken; err == nil {
			t.Error("a closed connection was read")
		}
	})
}

func TestOpenAPIGivesUpWithoutAFreeChannel(t *testing.T) {
	withLibrary(t, func(t *testing.T, c *Conn, _ *fakeInstance) {
		for n := range maxAPIs {
			if _, err := c.OpenAPI(int64(n)); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		if _, err := c.OpenAPI(maxAPIs); drover.KindOf(err) != drover.KindTransient || time.Since(began) != wire.APIPatience {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// After a rekeying the session works as before, and VerifyHostKey is not called again.
func TestRenewedSessionKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, target := fake(t, &fakeRunner{bulk: library})
		i.config.RekeyThreshold = 1 << 20
		verify, asked := target.VerifyHostKey, 0
		target.VerifyHostKey = func(ctx context.Context, key ssh.PublicKey, output []byte) error {
			asked++
			return verify(ctx, key, output)
		}
		c, err := Connect(t.Context(), target)
		if err != nil {
			t.Fatal(err)
		}
		go c.Run(t.Context(), deaf{})
		if got := len(fetch(t, c, "long", 0, math.MaxInt64)); got != longLog {
			t.Errorf("%d bytes", got)
		}
		if asked != 1 {
			t.Errorf("asked %d times", asked)
		}
		c.Close()
		synctest.Wait()
	})
}

// Control messages arrive while the runner does not read uploads.
func TestUploadsDoNotHoldUpTheControlStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBlobs()
		stopped := make(chan wire.Stop, 1)
		f := &fakeRunner{bulk: b.bulk, message: func(m wire.Message, to *wire.Conn) {
			if m.Stop != nil {
				stopped <- *m.Stop
			}
			b.starting(m, to)
		}}
		b.gate = make(chan struct{})
		_, target := fake(t, f)
		c, err := Connect(t.Context(), target)
		if err != nil {
			t.Fatal(err)
		}
		go c.Run(t.Context(), deaf{})
		started := make(chan error, 1)
		go func() {
			started <- c.Start(t.Context(), startOf(1, "a", "b", "c", "d"), func(string) (io.ReadCloser, int64, error) {
				return io.NopCloser(zeros{}), longLog, nil
			})
		}()
		synctest.Wait() // every window is full

		if err := c.Stop(attempt(2), time.Second); err != nil {
			t.Error(err)
		}
		if s := <-stopped; s.ID != attempt(2) || len(started) != 0 {
			t.Errorf("%+v, %d starts", s, len(started))
		}

		close(b.gate)
		if err := <-started; err != nil {
			t.Error(err)
		}
		c.Close()
		synctest.Wait()
	})
}

// Control messages are answered while unread transfers fill every buffer.
func TestTransfersDoNotHoldUpTheControlStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBlobs()
		f := &fakeRunner{bulk: library, message: b.starting}
		_, target := fake(t, f)
		c, err := Connect(t.Context(), target)
		if err != nil {
			t.Fatal(err)
		}
		go c.Run(t.Context(), deaf{})
		var floods []io.Reader
		for range maxTransfers {
			r, err := c.FetchLog(t.Context(), attempt(1), "long", 0, math.MaxInt64)
			if err != nil {
				t.Fatal(err)
			}
			floods = append(floods, r)
		}
		synctest.Wait() // everything is full, and every sender waits

		if err := c.Start(t.Context(), startOf(2), contents); err != nil {
			t.Fatal(err)
		}

		for _, r := range floods {
			if n, err := io.Copy(io.Discard, r); n != longLog || err != nil {
				t.Errorf("%d bytes, %v", n, err)
			}
		}
		c.Close()
		synctest.Wait()
	})
}
