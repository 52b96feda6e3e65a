package notice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"drover"
)

// file reads a notice from a file: JSON with a cause and optionally a deadline in RFC 3339. If the file is missing
// there is no notice.
type file struct{ path string }

// NewFile returns the source that reads the file at path.
func NewFile(path string) (Source, error) {
	if path == "" {
		return nil, errors.New("the variable that names the file with the cloud's notices is not set: " + FileVariable)
	}
	return file{path}, nil
}

// Pause returns a short time, since reading a file costs almost nothing.
func (s file) Pause() time.Duration { return 200 * time.Millisecond }

// Notice reads the file.
func (s file) Notice(context.Context) (*drover.Notice, error) {
	f, err := os.Open(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the cloud's notices: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("reading the cloud's notices: %w", err)
	}
	var n drover.Notice
	if err := json.Unmarshal(text, &n); err != nil {
		return nil, fmt.Errorf("reading the cloud's notices: %w", err)
	}
	if n.Cause == "" {
		return nil, fmt.Errorf("reading the cloud's notices: there is no cause in %.100q", text)
	}
	return &n, nil
}
