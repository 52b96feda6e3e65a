package runner

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"

	"drover"
)

// What happens to a job whose attempt cannot begin depends on the cause: if this instance lacks something, another may
// have it; if the job requests something impossible, it fails everywhere.

// noStartCode is the exit code with which shells report that a file exists but could not be executed.
const noStartCode = 126

// instanceFails reports whether the instance is the cause of an error: it has no disk space, memory, processes or open
// files left, or a broken disk. Its next attempt would fail as well.
func instanceFails(err error) bool {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return false
	}
	switch errno {
	case unix.ENOSPC, unix.EDQUOT, unix.EIO, unix.EROFS, unix.ENOMEM, unix.EAGAIN, unix.EMFILE, unix.ENFILE:
		return true
	}
	return false
}

// failedBySupervisor reports whether a supervisor's exit means that the instance failed before the command began.
func failedBySupervisor(e drover.Exit) bool {
	return e.Cause == drover.CauseLost && e.Code == noStartCode
}

// layError is why an attempt's inputs could not be placed.
type layError struct{ error }

func (e layError) Unwrap() error { return e.error }

// impossible reports whether inputs could not be placed because of their names: a and a/b cannot both exist.
func impossible(err error) bool {
	var lay layError
	var errno syscall.Errno
	if !errors.As(err, &lay) || !errors.As(err, &errno) {
		return false
	}
	switch errno {
	case unix.ENOTDIR, unix.EISDIR, unix.EEXIST, unix.ENAMETOOLONG:
		return true
	}
	return false
}
