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

// DefaultLimit is how many bytes of recordings are kept.
const DefaultLimit = 1 << 30

// pieces is how many segments the limit of a folder is divided into.
const pieces = 16

const suffix = ".jsonl.gz"

// Folder keeps the latest segments, by number, and deletes older ones.
type Folder struct {
	path  string
	limit int64
}

// segment is a segment in a file of a Folder.
type segment struct {
	*Writer
	file *os.File
	most int64
}

// NewFolder returns the folder at path, with at most limit bytes of segments. The folder is created with the first
// segment.
func NewFolder(path string, limit int64) Folder { return Folder{path, limit} }

// Segments returns the files of the folder's segments, the oldest first; none if the folder does not exist.
func (f Folder) Segments() (paths []string, err error) {
	all, err := f.list()
	for _, s := range all {
		paths = append(paths, f.name(s.number))
	}
	return paths, err
}

// begin begins the next segment, readable by this user only, and makes room for it by deleting the oldest.
func (f Folder) begin(header Header, state engine.State) (*segment, error) {
	s, err := f.create(header, state)
	if err != nil {
		return nil, fmt.Errorf("starting a recording in %s: %w", f.path, err)
	}
	return s, nil
}

func (f Folder) create(header Header, state engine.State) (*segment, error) {
	if err := os.MkdirAll(f.path, 0o700); err != nil {
		return nil, err
	}
	last, err := f.prune()
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(f.name(last+1), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	writer, err := NewWriter(file, header, state)
	if err != nil {
		return nil, errors.Join(err, file.Close(), os.Remove(file.Name()))
	}
	return &segment{writer, file, f.limit / pieces}, nil
}

func (f Folder) name(number int) string {
	return filepath.Join(f.path, fmt.Sprintf("%08d%s", number, suffix))
}

// kept is an existing segment.
type kept struct {
	number int
	size   int64
}

func (f Folder) list() (all []kept, err error) {
	entries, err := os.ReadDir(f.path) // sorted by name, and so by number
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		number, bad := strconv.Atoi(strings.TrimSuffix(e.Name(), suffix))
		if bad != nil || f.name(number) != filepath.Join(f.path, e.Name()) {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			all = append(all, kept{number, info.Size()})
		}
	}
	return all, nil
}

// prune deletes the oldest segments until a new one, which may grow as large as the last, fits under the limit. It
// returns the last one's number.
func (f Folder) prune() (last int, err error) {
	all, err := f.list()
	if err != nil || len(all) == 0 {
		return 0, err
	}
	newest := all[len(all)-1]
	total := max(f.limit/pieces, newest.size)
	for _, s := range all {
		total += s.size
	}
	for _, s := range all {
		if total <= f.limit {
			break
		}
		if err := os.Remove(f.name(s.number)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
		total -= s.size
	}
	return newest.number, nil
}

// full reports whether it is time to end this segment and begin the next with the State of that moment. A segment with
// a large State continues until the events are at least as large.
func (s *segment) full() bool {
	first := s.first.Load()
	return first > 0 && s.Size() >= max(s.most, 2*first)
}

// Close ends the segment and its file. A segment without a beginning, which could not be written, is useless and is
// removed.
func (s *segment) Close() error {
	err := errors.Join(s.Writer.Close(), s.file.Close())
	if s.first.Load() == 0 {
		err = errors.Join(err, os.Remove(s.file.Name()))
	}
	return err
}
