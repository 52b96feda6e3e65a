package record

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"drover"
	"drover/internal/engine"
)

// ErrCut is the end of a segment that was not closed: its writer was killed, or still writes.
var ErrCut = errors.New("the recording is cut short here")

// maxRecord bounds what one value of a segment may make a reader hold.
const maxRecord = 256 << 20

// Reader reads a segment.
type Reader struct {
	Header Header
	State  engine.State // as the engine began

	from  *bounded
	lines *json.Decoder
}

// bounded is a reader that gives a limited number of bytes for each value.
type bounded struct {
	r    io.Reader
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, drover.Errorf(drover.KindInvalid, "a record is over the limit of %d bytes", maxRecord)
	}
	n, err := b.r.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// NewReader reads the beginning of a segment. One of another format, or whose State this program cannot read, is refused.
func NewReader(r io.Reader) (*Reader, error) {
	stream, err := gzip.NewReader(bufio.NewReader(r))
	if err != nil {
		return nil, fmt.Errorf("opening the recording: %w", cut(err))
	}
	from := &bounded{r: stream}
	s := &Reader{from: from, lines: json.NewDecoder(from)}
	if err := s.next(&s.Header); err != nil {
		return nil, fmt.Errorf("reading what wrote the recording: %w", beginning(err))
	}
	if h := s.Header; h.Format != Format || h.State != engine.StateVersion {
		return nil, drover.Errorf(drover.KindInvalid, "the recording has format %d and state %d, this program reads %d and %d",
			h.Format, h.State, Format, engine.StateVersion).WithHint("it was written by drover %s: use that one", h.Program)
	}
	if err := s.next(&s.State); err != nil {
		return nil, fmt.Errorf("reading the state in which the recording begins: %w", beginning(err))
	}
	return s, nil
}

// beginning is the error of a segment that has not even a beginning: there is no good end before that.
func beginning(err error) error {
	if errors.Is(err, io.EOF) {
		return ErrCut
	}
	return err
}

// Next reads on. At the end of a closed segment it returns io.EOF, where one was cut, ErrCut.
func (r *Reader) Next() (rec Record, err error) {
	return rec, r.next(&rec)
}

func (r *Reader) next(v any) error {
	r.from.left = maxRecord
	return cut(r.lines.Decode(v))
}

// cut tells an end that came too early from damage.
func cut(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrCut
	}
	return err
}
