package record

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"drover"
	"drover/internal/engine"
)

// ErrCut is the error at the end of a segment that was not closed: its writer was killed, or still writes.
var ErrCut = errors.New("the recording is cut short here")

const (
	maxLine = 64 << 20 // bytes of one value of a segment; a Writer makes none that is longer
	sparse  = 16       // minimum average bytes of the objects in a long line: small ones take much more memory than their length
)

// Reader reads a segment.
type Reader struct {
	Header Header
	State  engine.State // as the engine began

	from *bufio.Reader
	line []byte // the last one read
}

// NewReader reads the beginning of a segment. One of another format, or whose State this program cannot read, is
// refused.
func NewReader(r io.Reader) (*Reader, error) {
	stream, err := gzip.NewReader(bufio.NewReader(r))
	if errors.Is(err, gzip.ErrHeader) {
		return nil, drover.Errorf(drover.KindInvalid, "this is not a recording").WithHint("a controller's recordings are in recording/ in its folder")
	}
	if err != nil {
		return nil, fmt.Errorf("opening the recording: %w", beginning(cut(err)))
	}
	s := &Reader{from: bufio.NewReader(stream)}
	if err := s.next(&s.Header); err != nil {
		return nil, fmt.Errorf("reading the recording's header: %w", beginning(err))
	}
	if h := s.Header; h.Format != Format || h.State != engine.StateVersion {
		return nil, drover.Errorf(drover.KindInvalid, "the recording has format %d and state version %d, but this program reads %d and %d",
			h.Format, h.State, Format, engine.StateVersion).WithHint("it was written by drover %s: use that version", h.Program)
	}
	if err := s.readState(); err != nil {
		return nil, fmt.Errorf("reading the recording's initial state: %w", beginning(err))
	}
	return s, nil
}

func (r *Reader) readState() error {
	if err := r.next(&r.State); err != nil {
		return err
	}
	jobs := newJobs()
	for range r.Header.Jobs {
		var changed map[string]json.RawMessage
		if err := r.next(&changed); err != nil {
			return err
		}
		j, err := jobs.next(changed)
		if err != nil {
			return err
		}
		r.State.Jobs = append(r.State.Jobs, j)
	}
	return nil
}

// beginning converts an error within a segment's beginning, before which there is no regular end.
func beginning(err error) error {
	if errors.Is(err, io.EOF) {
		return ErrCut
	}
	return err
}

// Next reads the next record. It returns io.EOF at the end of a closed segment, and ErrCut where one was cut.
func (r *Reader) Next() (rec Record, err error) {
	if err := r.next(&rec); err != nil {
		return rec, err
	}
	if rec.Event.Body == nil {
		return rec, drover.Errorf(drover.KindInvalid, "a record has no event")
	}
	return rec, nil
}

// next reads the next line into v, which shares no memory with it.
func (r *Reader) next(v any) error {
	if err := r.readLine(); err != nil {
		return cut(err)
	}
	if objects := bytes.Count(r.line, []byte{'{'}); objects > 1000 && objects > len(r.line)/sparse {
		return drover.Errorf(drover.KindInvalid, "a record has %d objects in %d bytes, more than any valid record", objects, len(r.line))
	}
	return json.Unmarshal(r.line, v)
}

// readLine reads a line with its end. A line without an end is cut.
func (r *Reader) readLine() error {
	r.line = r.line[:0]
	for {
		part, err := r.from.ReadSlice('\n')
		r.line = append(r.line, part...)
		switch {
		case len(r.line) > maxLine:
			return drover.Errorf(drover.KindInvalid, "a record is over the limit of %d bytes", maxLine)
		case errors.Is(err, io.EOF) && len(r.line) > 0:
			return io.ErrUnexpectedEOF
		case !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
	}
}

// cut converts an end that came too early, which is not damage.
func cut(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrCut
	}
	return err
}
