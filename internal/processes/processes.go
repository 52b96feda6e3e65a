// Package processes finds, starts and ends processes on this host. It finds the processes that belong together by a
// marker, an environment variable that descendants inherit.
package processes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"drover/internal/backoff"
)

// process is one line of this host's process table.
type process struct {
	pid, parent int
	zombie      bool // ended, but not yet waited for
}

// processes reads the process table. It leaves out a process that ends during the read.
func processes() (all []process, err error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("read the process table: %w", err)
	}
	for _, e := range entries {
		if p, ok := readProcess(e.Name()); ok {
			all = append(all, p)
		}
	}
	return all, nil
}

// readProcess reads /proc/PID/stat: "PID (NAME) STATE PARENT …", where the name may contain anything, even parentheses.
func readProcess(name string) (process, bool) {
	pid, err := strconv.Atoi(name)
	stat, missing := os.ReadFile(filepath.Join("/proc", name, "stat"))
	if err != nil || missing != nil {
		return process{}, false
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return process{}, false
	}
	parent, err := strconv.Atoi(string(fields[1]))
	state := fields[0][0]
	return process{pid, parent, state == 'Z' || state == 'X'}, err == nil
}

// Marked reports whether a process started with a marker, written NAME=VALUE. It returns false for another user's
// process, whose environment cannot be read.
func Marked(pid int, marker string) bool {
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return false
	}
	return slices.ContainsFunc(bytes.Split(environ, []byte{0}), func(v []byte) bool { return string(v) == marker })
}

// WithMarker returns the live processes that started with a marker, and their live descendants.
func WithMarker(marker string) ([]int, error) {
	all, err := processes()
	return withDescendants(all, func(p process) bool { return Marked(p.pid, marker) }), err
}

// descendants returns this process's live descendants.
func descendants() ([]int, error) {
	all, err := processes()
	self := os.Getpid()
	return withDescendants(all, func(p process) bool { return p.parent == self }), err
}

// withDescendants returns the picked processes and all their descendants, without this process and without those that
// have ended.
func withDescendants(all []process, pick func(process) bool) []int {
	children := map[int][]process{}
	var queue []process
	for _, p := range all {
		children[p.parent] = append(children[p.parent], p)
		if pick(p) {
			queue = append(queue, p)
		}
	}
	var pids []int
	seen := map[int]bool{os.Getpid(): true}
	for len(queue) > 0 {
		p := queue[0]
		queue = queue[1:]
		if seen[p.pid] {
			continue
		}
		seen[p.pid] = true
		queue = append(queue, children[p.pid]...)
		if !p.zombie {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// Table is the process table at one moment.
type Table []process

// ReadTable returns this host's process table. It leaves out a process that ends during the read.
func ReadTable() (Table, error) { return processes() }

// Catch reports whether a live descendant of a process catches a signal, or may: one whose state cannot be read counts.
// If inner is set, the process's own children do not count.
func (t Table) Catch(pid int, sig unix.Signal, inner bool) bool {
	above := map[int]bool{pid: true}
	if inner {
		for _, p := range t {
			if p.parent == pid {
				above[p.pid] = true
			}
		}
	}
	below := withDescendants(t, func(p process) bool { return above[p.parent] && !above[p.pid] })
	return slices.ContainsFunc(below, func(pid int) bool { return catches(pid, sig) })
}

// catches reads the mask of caught signals from /proc/PID/status. A process that has ended catches nothing.
func catches(pid int, sig unix.Signal) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return false
	}
	for line := range bytes.Lines(status) {
		if mask, ok := bytes.CutPrefix(line, []byte("SigCgt:")); ok {
			caught, err := strconv.ParseUint(string(bytes.TrimSpace(mask)), 16, 64)
			return err != nil || caught>>(sig-1)&1 != 0
		}
	}
	return true
}

// endInterval is the pause between two rounds of killing.
const endInterval = time.Millisecond

// EndAll kills what find returns until it returns nothing more: a process may have forked between find and the kill.
func EndAll(ctx context.Context, find func() ([]int, error)) error {
	for {
		pids, err := find()
		if err != nil || len(pids) == 0 {
			return err
		}
		for _, pid := range pids {
			if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("kill process %d: %w", pid, err)
			}
		}
		if err := backoff.For(ctx, endInterval); err != nil {
			return fmt.Errorf("wait for %d processes to end: %w", len(pids), err)
		}
	}
}
