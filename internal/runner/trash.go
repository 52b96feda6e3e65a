package runner

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"
)

const trashFolder = "trash"

// trash deletes folders in the background. Throwing one away is a rename, however large it is.
type trash struct {
	began int64 // tells this daemon's names from those of its predecessors
	last  atomic.Int64
	wake  chan struct{}
}

func newTrash() (*trash, error) {
	return &trash{began: time.Now().UnixNano(), wake: make(chan struct{}, 1)}, os.MkdirAll(trashFolder, 0o700)
}

// throw takes the folder away at once; what is not there is no error.
func (t *trash) throw(path string) error {
	name := strconv.FormatInt(t.began, 36) + "-" + strconv.FormatInt(t.last.Add(1), 36)
	err := os.Rename(path, filepath.Join(trashFolder, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	select {
	case t.wake <- struct{}{}:
	default:
	}
	return nil
}

// run deletes what is thrown away, and what an earlier daemon left, until the context ends.
func (t *trash) run(ctx context.Context) {
	for {
		t.empty()
		select {
		case <-ctx.Done():
			return
		case <-t.wake:
		}
	}
}

func (t *trash) empty() {
	entries, err := os.ReadDir(trashFolder)
	if err != nil {
		return
	}
	for _, entry := range entries {
		path := filepath.Join(trashFolder, entry.Name())
		if os.RemoveAll(path) == nil || os.Geteuid() == 0 {
			continue // root may write everywhere, and follows no link of a job's to change what it leads to
		}
		// A job may have taken its own right to write from a folder. What still resists is tried again with the next.
		makeWritable(path)
		os.RemoveAll(path)
	}
}

func makeWritable(root string) {
	filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() && err == nil {
			return os.Chmod(path, 0o700)
		}
		return nil
	})
}
