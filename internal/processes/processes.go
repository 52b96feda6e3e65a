// Package processes has the processes of this host: which there are, whose they are, and how they end. A process is
// known to belong to something by an environment variable that all below it are born with: a marker.
package processes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
	zombie      bool // ended, and only waited for
}

// processes reads the process table. A process that ends meanwhile is left out.
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

// readProcess reads /proc/PID/stat: "PID (NAME) STATE PARENT …", where the name may hold anything, parentheses too.
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

// Marked reports whether a process was born with a marker, written NAME=VALUE. Of another user's it cannot be known,
// and is not said.
func Marked(pid int, marker string) bool {
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return false
	}
	return slices.ContainsFunc(bytes.Split(environ, []byte{0}), func(v []byte) bool { return string(v) == marker })
}

// WithMarker are those that were born with a marker, and their descendants, that have not ended.
func WithMarker(marker string) ([]int, error) {
	all, err := processes()
	return withDescendants(all, func(p process) bool { return Marked(p.pid, marker) }), err
}

// descendants are the processes below ours that have not ended.
func descendants() ([]int, error) {
	all, err := processes()
	self := os.Getpid()
	return withDescendants(all, func(p process) bool { return p.parent == self }), err
}

// withDescendants picks processes and all below them, never ourselves and never one that has ended.
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

// endInterval is the pause between two looks at processes that were told to end.
const endInterval = time.Millisecond

// EndAll kills what find finds until it finds nothing more: a process may have forked between the look and the kill.
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
