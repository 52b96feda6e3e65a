package record

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"drover/internal/engine"
)

// maxWaiting is how many bytes of records may wait for the disk, besides the beginning.
const maxWaiting = 32 << 20

// Writer writes one segment. Append may be called by one goroutine while others flush.
type Writer struct {
	mu      sync.Mutex
	waiting bytes.Buffer // guarded by mu
	err     error        // guarded by mu; why recording has stopped
	most    int          // bytes that may wait

	out   sync.Mutex // held while the stream is written to, never together with mu
	gzip  *gzip.Writer
	size  *counter
	first atomic.Int64 // bytes of the first flush, 0 before: approximately the beginning
}

// counter counts what passes through a writer.
type counter struct {
	w io.Writer
	n atomic.Int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n.Add(int64(n))
	return n, err
}

// errClosed is why a closed Writer accepts nothing more.
var errClosed = errors.New("the recording is closed")

// NewWriter begins a segment on w. Format and State of the header are filled in. Nothing reaches w before the first
// Flush.
func NewWriter(w io.Writer, header Header, state engine.State) (*Writer, error) {
	header.Format, header.State, header.Jobs = Format, state.Version, len(state.Jobs)
	size := &counter{w: w}
	r := &Writer{gzip: gzip.NewWriter(size), size: size}
	err := appendLine(&r.waiting, header)
	if err == nil {
		err = appendState(&r.waiting, state)
	}
	if err != nil {
		return nil, fmt.Errorf("starting a recording: %w", err)
	}
	r.most = r.waiting.Len() + maxWaiting
	return r, nil
}

// appendLine writes a value as a line, unless that is longer than a Reader accepts.
func appendLine(to *bytes.Buffer, v any) error {
	was := to.Len()
	if err := json.NewEncoder(to).Encode(v); err != nil {
		return err
	}
	if n := to.Len() - was; n > maxLine {
		to.Truncate(was)
		return fmt.Errorf("an entry of %d bytes is too long for a recording", n)
	}
	return nil
}

// Append records an event and its decision. It does not wait for the disk, and does nothing once recording has stopped.
func (w *Writer) Append(event engine.Event, decision engine.Decision) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return
	}
	if w.waiting.Len() > w.most {
		w.err = errors.New("recording events: the disk is too slow")
		return
	}
	mark, err := MarkOf(decision)
	if err == nil {
		err = appendLine(&w.waiting, Record{event, mark})
	}
	if err != nil {
		w.err = fmt.Errorf("recording events: %w", err)
	}
}

// Flush writes everything that was appended, so that a reader gets it even if the process is killed right afterwards.
func (w *Writer) Flush() error {
	w.out.Lock()
	defer w.out.Unlock()
	return w.flush()
}

// flush is Flush with out held.
func (w *Writer) flush() error {
	lines, stopped := w.take()
	if len(lines) == 0 {
		return stopped
	}
	if _, err := w.gzip.Write(lines); err != nil {
		return w.stop(fmt.Errorf("writing the recording: %w", err))
	}
	if err := w.gzip.Flush(); err != nil {
		return w.stop(fmt.Errorf("writing the recording: %w", err))
	}
	w.first.CompareAndSwap(0, w.Size())
	return stopped
}

// take takes the lines that wait. Those from before recording stopped are complete and still worth writing.
func (w *Writer) take() ([]byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	lines := w.waiting.Bytes()
	w.waiting = bytes.Buffer{}
	return lines, w.err
}

// stop ends recording, for the first reason given.
func (w *Writer) stop(why error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = why
	}
	return w.err
}

// Size returns how many bytes have been written, compressed.
func (w *Writer) Size() int64 { return w.size.n.Load() }

// Close flushes and marks the segment's end, which shows a reader that nothing is missing. It does not close the stream
// below.
func (w *Writer) Close() error {
	w.out.Lock()
	defer w.out.Unlock()
	if err := w.flush(); err != nil {
		return err
	}
	if err := w.gzip.Close(); err != nil {
		return w.stop(fmt.Errorf("finishing the recording: %w", err))
	}
	w.stop(errClosed)
	return nil
}
