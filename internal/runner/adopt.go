package runner

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"drover"
)

// adopt takes over what an earlier daemon left: results and running attempts. It deletes the folders of attempts that
// never began. It is called before anyone else can reach the daemon.
func (d *daemon) adopt() error {
	entries, err := os.ReadDir(attemptsFolder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := d.adoptFolder(filepath.Join(d.folder, attemptsFolder, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (d *daemon) adoptFolder(path string) error {
	h, err := folder(path).history()
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) {
		return err // the attempt may be running
	}
	if err != nil || h.attempt == nil || h.attempt.ID.Folder() != filepath.Base(path) {
		return d.trash.throw(path)
	}
	a := d.newAttempt(h.attempt.ID)
	a.handed, a.sandbox, a.store, a.proof = true, h.attempt.Place, h.attempt.Store, h.attempt.Proof
	s, h, err := a.folder.settle(d.boot, false)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		s = lost // a supervisor still has it: aftermath waits for its end
	case err != nil:
		return err
	}
	switch s {
	case unbegun:
		return d.trash.throw(path)
	case ended:
		a.running, a.exit, a.known = h.begun != nil && h.exit.Cause != drover.CauseNoStart, h.exit, time.Now()
	case lost:
		a.running = true
		go func() { d.end(a, d.aftermath(a)) }()
	}
	d.attempts[a.id] = a
	return nil
}
