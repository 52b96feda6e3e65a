package runner

import (
	"errors"
	"slices"
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
	return isOneOf(err, unix.ENOSPC, unix.EDQUOT, unix.EIO, unix.EROFS, unix.ENOMEM, unix.EAGAIN, unix.EMFILE, unix.ENFILE)
}

func isOneOf(err error, numbers ...syscall.Errno) bool {
	errno, ok := errors.AsType[syscall.Errno](err)
	return ok && slices.Contains(numbers, errno)
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
	_, lay := errors.AsType[layError](err)
	return lay && isOneOf(err, unix.ENOTDIR, unix.EISDIR, unix.EEXIST, unix.ENAMETOOLONG)
}
