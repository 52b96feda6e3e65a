// Package cgroup limits the CPU and memory that a process and its descendants use, by control groups of the Linux
// kernel: version 2, or version 1 if its controllers are mounted, as on hybrid hosts. See cgroups(7).
//
// A [Base], found once, is where groups can be created; a [Group] is created in it for each attempt. A process starts
// in its group, so it never runs without its limits.
package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"drover"
	"drover/internal/backoff"
)

// Base is where groups can be made: one folder for each controller; in version 2 both are the same. It can be
// marshalled to JSON.
type Base struct {
	Unified bool   `json:"unified,omitempty"` // version 2
	Memory  string `json:"memory"`
	CPU     string `json:"cpu"`
}

// Group is a group of processes.
type Group struct {
	base   Base
	memory string
	cpu    string
}

// Group returns the group of that name in the base. It need not exist.
func (b Base) Group(name string) *Group {
	return &Group{base: b, memory: filepath.Join(b.Memory, name), cpu: filepath.Join(b.CPU, name)}
}

// folders returns the group's folders, each once.
func (g *Group) folders() []string {
	if g.cpu == g.memory {
		return []string{g.memory}
	}
	return []string{g.memory, g.cpu}
}

// Make makes the group with its limits; 0 means no limit. It fails if the group already exists, left by a process that
// died: Remove it first.
func (g *Group) Make(limits drover.Resources) error {
	for _, folder := range g.folders() {
		if err := os.Mkdir(folder, 0o700); err != nil {
			return fmt.Errorf("creating a control group: %w", err)
		}
	}
	if err := g.limit(limits); err != nil {
		return errors.Join(fmt.Errorf("setting the limits of a control group: %w", err), g.Remove(0))
	}
	return nil
}

// period is the interval of a group's CPU quota, in microseconds. It is the kernel's default.
const period = 100_000

func (g *Group) limit(r drover.Resources) error {
	quota := max(1000, int64(r.CPU)*period/1000)
	memory := strconv.FormatInt(int64(r.Memory), 10)
	var errs []error
	switch {
	case r.CPU <= 0:
	case g.base.Unified:
		errs = append(errs, write(g.cpu, "cpu.max", fmt.Sprintf("%d %d", quota, period)))
	default:
		errs = append(errs, write(g.cpu, "cpu.cfs_period_us", strconv.Itoa(period)), write(g.cpu, "cpu.cfs_quota_us", strconv.FormatInt(quota, 10)))
	}
	switch {
	case r.Memory <= 0:
	case g.base.Unified:
		errs = append(errs, write(g.memory, "memory.max", memory), ifThere(write(g.memory, "memory.swap.max", "0")))
	default:
		errs = append(errs, write(g.memory, "memory.limit_in_bytes", memory), ifThere(write(g.memory, "memory.memsw.limit_in_bytes", memory)))
	}
	return errors.Join(errs...)
}

// ifThere ignores a missing file: a kernel without swap accounting has no file to limit it.
func ifThere(err error) error {
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		return nil
	}
	return err
}

// write sets one of a group's values. It never creates the file: a value that the kernel lacks is an error.
func write(folder, file, value string) error {
	f, err := os.OpenFile(filepath.Join(folder, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// OutOfMemory returns how many processes of the group the kernel has killed because the group exceeded its memory
// limit.
func (g *Group) OutOfMemory() (int, error) {
	file := "memory.oom_control"
	if g.base.Unified {
		file = "memory.events"
	}
	return countOf(filepath.Join(g.memory, file))
}

// countOf reads the kernel's count of processes killed for lack of memory.
func countOf(path string) (int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("counting the processes killed for lack of memory: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if n, ok := strings.CutPrefix(line, "oom_kill "); ok {
			return strconv.Atoi(strings.TrimSpace(n))
		}
	}
	return 0, fmt.Errorf("%s has no oom_kill entry", path)
}

// OwnOutOfMemory is [Group.OutOfMemory] for the group that this process sees at the top, which in a container is its
// own.
func OwnOutOfMemory() (int, error) {
	n, err := countOf(mountPoint + "/memory.events")
	if errors.Is(err, os.ErrNotExist) {
		n, err = countOf(mountPoint + "/memory/memory.oom_control")
	}
	return n, err
}

// Remove kills the processes left in the group and its subgroups, and removes them. It retries for as long as patience
// if some do not die at once. A missing group is no error.
func (g *Group) Remove(patience time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var busy error
	for range backoff.Tries(ctx, time.Millisecond, 100*time.Millisecond) {
		busy = nil
		for _, folder := range g.folders() {
			if err := remove(folder); err != nil {
				busy = fmt.Errorf("removing control group %s: %w", folder, err)
			}
		}
		if busy == nil {
			break
		}
	}
	return busy
}

// remove removes an empty group. Otherwise it kills the group's processes and leaves the group to the next call.
func remove(folder string) error {
	err := unix.Rmdir(folder)
	if err == nil || err == unix.ENOENT {
		return nil
	}
	if entries, err := os.ReadDir(folder); err == nil {
		for _, entry := range entries {
			if entry.IsDir() {
				// If the subgroup cannot be removed, the outer group cannot be either, and its error is returned.
				_ = remove(filepath.Join(folder, entry.Name()))
			}
		}
	}
	kill(folder)
	return err
}

// Sweep removes the groups with this prefix that hold no process and were made before the given time: their maker died,
// or a whole instance on this host did. A younger group may be about to get its first process.
func (b Base) Sweep(prefix string, before time.Time) {
	for _, folder := range (&Group{memory: b.Memory, cpu: b.CPU}).folders() {
		entries, err := os.ReadDir(folder)
		if err != nil {
			continue
		}
		for _, entry := range entries {
			info, err := entry.Info()
			if err == nil && info.IsDir() && strings.HasPrefix(entry.Name(), prefix) && info.ModTime().Before(before) {
				unix.Rmdir(filepath.Join(folder, entry.Name()))
			}
		}
	}
}

// kill kills the processes in a group. The next call kills those that start in the meantime.
func kill(folder string) {
	text, err := os.ReadFile(filepath.Join(folder, "cgroup.procs"))
	if err != nil {
		return
	}
	for _, field := range strings.Fields(string(text)) {
		if pid, err := strconv.Atoi(field); err == nil && pid > 1 {
			unix.Kill(pid, unix.SIGKILL)
		}
	}
}
