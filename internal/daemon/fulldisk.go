package daemon

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"drover"
	"drover/internal/atomicfile"
	"drover/internal/config"
	"drover/internal/control"
)

// A controller that finds its disk full does not start, since it could not record what it does. It reports that and
// changes nothing; a service manager then starts it again.

// KeepFile writes data to a file, whole or not at all, even if the power fails. It does not write a file that has the
// data already, so that it needs no room.
func KeepFile(path string, data []byte) error {
	if held, err := os.ReadFile(path); err == nil && bytes.Equal(held, data) {
		return nil
	}
	return atomicfile.WriteDurably(path, data)
}

// orFull returns the error with which a controller does not start. If a disk is full, the error reports that, which
// SQLite's does not always do. Any other failure of the host, such as of its disk, is internal rather than invalid, so
// that a service manager starts the controller again.
func (f Folder) orFull(err error) error {
	for _, folder := range []string{f.Path(), filepath.Dir(f.DB())} {
		if control.IsFull(err) || control.IsFull(tryRoom(folder)) {
			return drover.Errorf(drover.KindTransient, "the disk that holds %s is full: %v", folder, err).
				WithHint("free up space there, then start the controller again; nothing was changed")
		}
	}
	return asHost(err)
}

// asHost returns an error with which a controller does not start. Unless it is about the configuration, it is the
// host's. A file of another user, such as one that root made by starting the controller once, gets a hint.
func asHost(err error) error {
	if _, faults := errors.AsType[config.Faults](err); faults {
		return err
	}
	e := drover.AsError(err, drover.KindInternal)
	if e.Hint == "" && errors.Is(err, fs.ErrPermission) {
		e = e.WithHint("run the controller as the owner of its files, or make the controller's user the owner of all of them")
	}
	return e
}

// leastRoom is the least room that a controller needs to start.
const leastRoom = 64 << 10

// tryRoom reports whether a folder has room for a small file.
func tryRoom(folder string) error {
	file, err := os.CreateTemp(folder, "room-*")
	if err != nil {
		return err
	}
	_, err = file.Write(make([]byte, leastRoom))
	return errors.Join(err, file.Close(), os.Remove(file.Name()))
}
