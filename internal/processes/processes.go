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
		return nil, fmt.Errorf("reading the process table: %w", err)
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
	return childrenOf(all).below(slices.DeleteFunc(slices.Clone(all), func(p process) bool { return !pick(p) }))
}

// Table is the process table at one moment: the children of each process.
type Table map[int][]process

// ReadTable returns this host's process table. It leaves out a process that ends during the read.
func ReadTable() (Table, error) {
	all, err := processes()
	return childrenOf(all), err
}

func childrenOf(all []process) Table {
	t := Table{}
	for _, p := range all {
		t[p.parent] = append(t[p.parent], p)
	}
	return t
}

// below returns these processes and all their descendants, as withDescendants does.
func (t Table) below(queue []process) (pids []int) {
	seen := map[int]bool{os.Getpid(): true}
	for len(queue) > 0 {
		p := queue[0]
		queue = queue[1:]
		if seen[p.pid] {
			continue
		}
		seen[p.pid] = true
		queue = append(queue, t[p.pid]...)
		if !p.zombie {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// Handle reports whether a live descendant of a process handles a signal, or may: it has a handler, or it sleeps with
// the signal blocked, as a program does that waits for it with sigwait or signalfd. One whose state cannot be read
// counts. If inner is set, the process's own children do not count.
func (t Table) Handle(pid int, sig unix.Signal, inner bool) bool {
	first := slices.Clone(t[pid])
	if inner {
		first = nil
		for _, child := range t[pid] {
			first = append(first, t[child.pid]...)
		}
	}
	return slices.ContainsFunc(t.below(first), func(pid int) bool { return handles(pid, sig) })
}

// handles reads from /proc/PID/status which signals are caught or blocked. A process that has ended handles nothing,
// and one that does not sleep may have blocked all signals only while it starts another.
func handles(pid int, sig unix.Signal) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return false
	}
	sleeps, masks := false, 0
	for line := range bytes.Lines(status) {
		key, value, _ := bytes.Cut(line, []byte(":"))
		name, value := string(key), bytes.TrimSpace(value)
		switch name {
		case "State":
			sleeps = bytes.HasPrefix(value, []byte("S"))
		case "SigBlk", "SigCgt":
			mask, err := strconv.ParseUint(string(value), 16, 64)
			if err != nil || mask>>(sig-1)&1 != 0 && (name == "SigCgt" || sleeps) {
				return true
			}
			masks++
		}
	}
	return masks < 2
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
				return fmt.Errorf("killing process %d: %w", pid, err)
			}
		}
		if err := backoff.For(ctx, endInterval); err != nil {
			return fmt.Errorf("waiting for %d processes to end: %w", len(pids), err)
		}
	}
}
