package remote

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/internal/wire"
)

// blobs are the blobs that a fake runner has received.
type blobs struct {
	mu   sync.Mutex
	have map[string]string
	puts map[string]int
	gate chan struct{} // closed when contents may be received; nil: at once
}

func newBlobs() *blobs { return &blobs{have: map[string]string{}, puts: map[string]int{}} }

// starting answers Start as a runner does, with the missing blobs first.
func (b *blobs) starting(m wire.Message, to *wire.Conn) {
	if m.Start == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var missing []string
	for _, f := range m.Start.Files {
		if _, ok := b.have[f.Hash]; !ok {
			missing = append(missing, f.Hash)
		}
	}
	if len(missing) > 0 {
		to.Write(wire.Message{Missing: &wire.Missing{ID: m.Start.ID, Hashes: missing}})
		return
	}
	to.Write(wire.Message{Started: &wire.Started{ID: m.Start.ID}})
}

func (b *blobs) bulk(r wire.Request, lines *wire.Conn, _ io.Writer) bool {
	b.mu.Lock()
	b.puts[r.Hash]++
	b.mu.Unlock()
	lines.Write(wire.Reply{})
	if b.gate != nil {
		<-b.gate
	}
	text, err := io.ReadAll(io.LimitReader(lines.Bytes(), r.Size))
	if err != nil || int64(len(text)) < r.Size {
		return false
	}
	b.mu.Lock()
	b.have[r.Hash] = string(text)
	b.mu.Unlock()
	return lines.Write(wire.Reply{Size: r.Size}) == nil
}

// contents opens blobs whose content is their hash.
func contents(hash string) (io.ReadCloser, int64, error) {
	return io.NopCloser(strings.NewReader(hash)), int64(len(hash)), nil
}

func startOf(job int64, hashes ...string) wire.Start {
	s := wire.Start{ID: attempt(job), Command: []string{"true"}}
	for _, h := range hashes {
		s.Files = append(s.Files, drover.File{Path: h, Hash: h, Size: int64(len(h))})
	}
	return s
}

func TestStart(t *testing.T) {
	t.Run("missing blobs are sent first", func(t *testing.T) {
		b := newBlobs()
		inBubble(t, &fakeRunner{message: b.starting, bulk: b.bulk}, func(t *testing.T, c *Conn, _ <-chan error) {
			if err := c.Start(t.Context(), startOf(1, "a", "b", "c", "d", "e", "f", "g"), contents); err != nil {
				t.Fatal(err)
			}
			want := map[string]string{"a": "a", "b": "b", "c": "c", "d": "d", "e": "e", "f": "f", "g": "g"}
			if diff := cmp.Diff(want, b.have); diff != "" {
				t.Error(diff)
			}
		})
	})
	t.Run("a blob that the runner asks for repeatedly is sent once", func(t *testing.T) {
		b := newBlobs()
		inBubble(t, &fakeRunner{message: b.starting, bulk: b.bulk}, func(t *testing.T, c *Conn, _ <-chan error) {
			if err := c.Start(t.Context(), startOf(1, "a", "b", "a", "a", "a", "a", "a"), contents); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[string]int{"a": 1, "b": 1}, b.puts); diff != "" {
				t.Error(diff)
			}
		})
	})
	t.Run("a blob that several attempts need is sent once", func(t *testing.T) {
		b := newBlobs()
		f := &fakeRunner{message: b.starting, bulk: b.bulk}
		synctest.Test(t, func(t *testing.T) {
			b.gate = make(chan struct{})
			_, target := fake(t, f)
			c, err := Connect(t.Context(), target)
			if err != nil {
				t.Fatal(err)
			}
			go c.Run(t.Context(), deaf{})
			var all sync.WaitGroup
			for job := range int64(10) {
				all.Go(func() {
					if err := c.Start(t.Context(), startOf(job+1, "a"), contents); err != nil {
						t.Error(err)
					}
				})
			}
			synctest.Wait()
			close(b.gate)
			all.Wait()
			if b.puts["a"] != 1 {
				t.Errorf("sent %d times", b.puts["a"])
			}
			c.Close()
		})
	})
	t.Run("a Start that waits for another's upload takes over when that one is cancelled", func(t *testing.T) {
		b := newBlobs()
		f := &fakeRunner{message: b.starting, bulk: b.bulk}
		synctest.Test(t, func(t *testing.T) {
			b.gate = make(chan struct{})
			_, target := fake(t, f)
			c, err := Connect(t.Context(), target)
			if err != nil {
				t.Fatal(err)
			}
			go c.Run(t.Context(), deaf{})
			ctx, cancel := context.WithCancel(t.Context())
			first, second := make(chan error, 1), make(chan error, 1)
			go func() { first <- c.Start(ctx, startOf(1, "a"), contents) }()
			synctest.Wait()
			go func() { second <- c.Start(t.Context(), startOf(2, "a"), contents) }()
			synctest.Wait()
			cancel()
			if err := <-first; drover.KindOf(err) != drover.KindTransient {
				t.Error(err)
			}
			close(b.gate)
			if err := <-second; err != nil {
				t.Error(err)
			}
			c.Close()
		})
	})
	for what, c := range map[string]struct {
		answer func(id drover.AttemptID) wire.Message
		open   Content
		kind   drover.ErrorKind
		text   string
	}{
		"a refusal is final": {
			func(id drover.AttemptID) wire.Message {
				return wire.Message{Refused: &wire.Refused{ID: id, Text: "attempt 2 has begun"}}
			}, contents, drover.KindInvalid, "attempt 2 has begun"},
		"a runner gets only the attempt's inputs": {
			func(id drover.AttemptID) wire.Message {
				return wire.Message{Missing: &wire.Missing{ID: id, Hashes: []string{"another's"}}}
			}, nil, drover.KindTransient, "not an input"},
		"an input that cannot be opened is an error": {
			func(id drover.AttemptID) wire.Message {
				return wire.Message{Missing: &wire.Missing{ID: id, Hashes: []string{"a"}}}
			}, func(string) (io.ReadCloser, int64, error) {
				return nil, 0, drover.Errorf(drover.KindNotFound, "it is gone")
			}, drover.KindNotFound, "it is gone"},
		"without an answer the outcome is unknown": {
			func(drover.AttemptID) wire.Message { return wire.Message{} }, contents, drover.KindTransient, "waiting for the runner"},
	} {
		t.Run(what, func(t *testing.T) {
			f := &fakeRunner{message: func(m wire.Message, to *wire.Conn) {
				if m.Start != nil {
					to.Write(c.answer(m.Start.ID))
				}
			}}
			inBubble(t, f, func(t *testing.T, conn *Conn, _ <-chan error) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				err := conn.Start(ctx, startOf(1, "a"), c.open)
				if drover.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.text) {
					t.Errorf("%v (%v)", err, drover.KindOf(err))
				}
			})
		})
	}
	t.Run("inputs that keep vanishing are not sent forever", func(t *testing.T) {
		b := newBlobs()
		f := &fakeRunner{bulk: b.bulk, message: func(m wire.Message, to *wire.Conn) {
			to.Write(wire.Message{Missing: &wire.Missing{ID: m.Start.ID, Hashes: []string{"a"}}})
		}}
		inBubble(t, f, func(t *testing.T, c *Conn, _ <-chan error) {
			if err := c.Start(t.Context(), startOf(1, "a"), contents); drover.KindOf(err) != drover.KindTransient {
				t.Error(err)
			}
			if b.puts["a"] != maxRounds {
				t.Errorf("sent %d times", b.puts["a"])
			}
		})
	})
	t.Run("a runner that rejects an input causes a transient error", func(t *testing.T) {
		b := newBlobs()
		f := &fakeRunner{message: b.starting, bulk: func(_ wire.Request, lines *wire.Conn, _ io.Writer) bool {
			lines.Write(wire.Reply{Error: "no space left on device"})
			return false
		}}
		inBubble(t, f, func(t *testing.T, c *Conn, _ <-chan error) {
			err := c.Start(t.Context(), startOf(1, "a"), contents)
			if drover.KindOf(err) != drover.KindTransient || !strings.Contains(err.Error(), "no space left") {
				t.Errorf("%v (%v)", err, drover.KindOf(err))
			}
		})
	})
	t.Run("after the connection breaks the outcome is unknown", func(t *testing.T) {
		inBubble(t, &fakeRunner{}, func(t *testing.T, c *Conn, _ <-chan error) {
			time.AfterFunc(time.Second, func() { c.close(drover.Errorf(drover.KindUnreachable, "pulled")) })
			err := c.Start(t.Context(), startOf(1), contents)
			if drover.KindOf(err) != drover.KindTransient || !strings.Contains(err.Error(), "pulled") {
				t.Error(err)
			}
		})
	})
	t.Run("an attempt cannot be started twice at once", func(t *testing.T) {
		inBubble(t, &fakeRunner{}, func(t *testing.T, c *Conn, _ <-chan error) {
			ctx, cancel := context.WithCancel(t.Context())
			first := make(chan error, 1)
			go func() { first <- c.Start(ctx, startOf(1), contents) }()
			synctest.Wait()
			if err := c.Start(ctx, startOf(1), contents); drover.KindOf(err) != drover.KindTransient {
				t.Error(err)
			}
			cancel()
			if err := <-first; errors.Is(err, nil) {
				t.Error("started")
			}
		})
	})
}
