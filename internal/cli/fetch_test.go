package cli

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestWriteFile(t *testing.T) {
	full := func(w io.Writer) error {
		_, err := io.WriteString(w, "half")
		return errors.Join(err, unix.ENOSPC)
	}
	t.Run("leaves no partial file", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "file")
		if err := writeFile(path, os.O_TRUNC, full); !errors.Is(err, unix.ENOSPC) {
			t.Errorf("%v", err)
		}
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%v", err)
		}
	})
	t.Run("does not remove a pipe", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "pipe")
		if err := unix.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		reader, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer reader.Close()
		if err := writeFile(path, os.O_TRUNC, full); !errors.Is(err, unix.ENOSPC) {
			t.Errorf("%v", err)
		}
		if _, err := os.Lstat(path); err != nil {
			t.Error(err)
		}
	})
}
