package benchfleet

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// processTime returns the user and system time that this process has used.
func processTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peakMemory returns this process's peak resident memory in bytes; 0 if the kernel does not report it.
func peakMemory() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, after, _ := bytes.Cut(status, []byte("VmHWM:"))
	text, _, _ := bytes.Cut(after, []byte("kB"))
	kilobytes, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0
	}
	return kilobytes << 10
}
