package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"drover/internal/engine"
)

// DefaultLimit is how much of recordings is kept.
const DefaultLimit = 1 << 30

// segments is into how many the limit of a folder is divided.
const segments = 16

const suffix = ".jsonl.gz"

// Folder keeps the latest segments, by number, and deletes older ones.
type Folder struct {
	path  string
	limit int64
}

// Segment is a segment in a file of a Folder.
type Segment struct {
	*Writer
	file *os.File
	most int64
}

// NewFolder is the folder at path, with at most limit bytes of segments. It is made when the first is begun.
func NewFolder(path string, limit int64) Folder { return Folder{path, limit} }

// Begin begins the next segment, readable by this user only, and makes room for it by deleting the oldest.
func (f Folder) Begin(header Header, state engine.State) (*Segment, error) {
	s, err := f.begin(header, state)
	if err != nil {
		return nil, fmt.Errorf("beginning a recording in %s: %w", f.path, err)
	}
	return s, nil
}

func (f Folder) begin(header Header, state engine.State) (*Segment, error) {
	if err := os.MkdirAll(f.path, 0o700); err != nil {
		return nil, err
	}
	last, err := f.prune()
	if err != nil {
		return nil, err
	}
	w, err := os.OpenFile(f.name(last+1), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	writer, err := NewWriter(w, header, state)
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return &Segment{writer, w, f.limit / segments}, nil
}

func (f Folder) name(number int) string {
	return filepath.Join(f.path, fmt.Sprintf("%08d%s", number, suffix))
}

// prune deletes the oldest segments until a new one fits under the limit, and returns the last one's number.
func (f Folder) prune() (last int, err error) {
	entries, err := os.ReadDir(f.path) // sorted by name, and so by number
	if err != nil {
		return 0, err
	}
	sizes := map[int]int64{}
	var numbers []int
	var total int64
	for _, e := range entries {
		info, err := e.Info()
		number, bad := strconv.Atoi(strings.TrimSuffix(e.Name(), suffix))
		if err != nil || bad != nil || !info.Mode().IsRegular() {
			continue
		}
		numbers, last = append(numbers, number), number
		sizes[number] = info.Size()
		total += info.Size()
	}
	for _, number := range numbers {
		if total <= f.limit-f.limit/segments {
			break
		}
		if err := os.Remove(f.name(number)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
		total -= sizes[number]
	}
	return last, nil
}

// Full reports whether it is time to close this segment and begin the next with the State of that moment.
func (s *Segment) Full() bool { return s.Size() >= s.most }

// Close ends the segment and its file.
func (s *Segment) Close() error { return errors.Join(s.Writer.Close(), s.file.Close()) }
