package runner

import (
	"context"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"drover/internal/backoff"
	"drover/internal/processes"
)

// killMarked kills every process with the attempt's marker in its environment, until none is left or clearPatience is
// over, and returns how many are left. It is for attempts whose supervisor was killed: a live supervisor finds its own
// descendants.
func killMarked(attempt string) (left int) {
	ctx, cancel := context.WithTimeout(context.Background(), clearPatience)
	defer cancel()
	for range backoff.Tries(ctx, time.Millisecond, 100*time.Millisecond) {
		left = 0
		entries, _ := os.ReadDir("/proc")
		for _, entry := range entries {
			pid, err := strconv.Atoi(entry.Name())
			if err == nil && pid != os.Getpid() && killIfMarked(pid, attempt) {
				left++
			}
		}
		if left == 0 {
			break
		}
	}
	return left
}

// killIfMarked kills the process if it is marked, and reports whether it was. It holds a handle on the process, so that
// the pid cannot come to mean another.
func killIfMarked(pid int, attempt string) bool {
	handle, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return false
	}
	defer unix.Close(handle)
	if !processes.Marked(pid, marker+"="+attempt) {
		return false
	}
	unix.PidfdSendSignal(handle, unix.SIGKILL, nil, 0)
	return true
}
