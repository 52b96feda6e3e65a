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

// trash deletes folders in the background. However large a folder is, throw only renames it.
type trash struct {
	began int64 // keeps this daemon's names distinct from its predecessors'
	last  atomic.Int64
	wake  chan struct{}
}

func newTrash() (*trash, error) {
	return &trash{began: time.Now().UnixNano(), wake: make(chan struct{}, 1)}, os.MkdirAll(trashFolder, 0o700)
}

// throw moves the folder away at once. A missing folder is no error.
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

// run deletes what is in the trash, including what an earlier daemon left, until the context ends.
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
			continue // root can write everywhere, and must not chmod through a job's link
		}
		// A job may have made a folder read-only. What still cannot be deleted is tried again with the next folder.
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
