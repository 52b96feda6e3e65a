package runner

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"

	"drover"
)

// Whose fault it is that an attempt does not begin decides what becomes of its job: what the instance lacks another may
// have, and what the job asks for that cannot be is the same everywhere.

// noStartCode is the exit code by which shells say that what is there could not be executed.
const noStartCode = 126

// instanceFails reports whether an error comes of the instance, which has no room, memory, processes or files left, or
// a broken disk. The next attempt there would meet it as well.
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

// failedBySupervisor reports whether an exit is a supervisor's word that its instance failed it before the command was
// begun.
func failedBySupervisor(e drover.Exit) bool {
	return e.Cause == drover.CauseLost && e.Code == noStartCode
}

// layError is that an attempt's inputs could not be laid.
type layError struct{ error }

func (e layError) Unwrap() error { return e.error }

// impossible reports whether inputs could not be laid because of what they are called: a and a/b cannot both be.
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
