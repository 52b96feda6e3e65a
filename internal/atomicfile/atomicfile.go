// Package atomicfile replaces files. A reader sees all of the old content or all of the new.
package atomicfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Write replaces the file at path with one that only its user may read.
func Write(path string, content []byte) error { return replace(path, content, false) }

// WriteDurably is Write, but survives a power failure.
func WriteDurably(path string, content []byte) error { return replace(path, content, true) }

// WriteJSON writes a value as JSON.
func WriteJSON(path string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return Write(path, text)
}

// replace first writes a file with a unique name, since several processes may replace one file.
func replace(path string, content []byte, durable bool) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil && durable {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return err
	}
	if !durable {
		return nil
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
