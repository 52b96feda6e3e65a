package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// mountPoint is where hosts mount control groups.
const mountPoint = "/sys/fs/cgroup"

// Find finds where this process can make groups, by making one. Its error explains to people why it cannot.
func Find() (Base, error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return Base{}, err
	}
	own := parse(string(text))
	var wrong []error
	for _, b := range candidates(own) {
		err := b.try()
		if err == nil {
			return b, nil
		}
		wrong = append(wrong, err)
	}
	if len(wrong) == 0 {
		return Base{}, fmt.Errorf("the memory and cpu controllers are not mounted under %s", mountPoint)
	}
	return Base{}, errors.Join(wrong...)
}

// parse reads /proc/PID/cgroup and returns the process's group by controller; version 2's key is "".
func parse(text string) map[string]string {
	own := make(map[string]string)
	for line := range strings.Lines(text) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(fields) != 3 {
			continue
		}
		for _, controller := range strings.Split(fields[1], ",") {
			own[controller] = fields[2]
		}
	}
	return own
}

// candidates returns the bases to try. The first is this process's own group, whose limits then apply too. In version
// 2, a group with processes in it cannot have child groups with controllers, so the top of the hierarchy is the second.
func candidates(own map[string]string) []Base {
	if _, ok := own["memory"]; ok {
		return []Base{{Memory: filepath.Join(mountPoint, "memory", own["memory"]), CPU: filepath.Join(mountPoint, "cpu", own["cpu"])}}
	}
	group, ok := own[""]
	if !ok {
		return nil
	}
	list := []Base{unified(filepath.Join(mountPoint, group))}
	if group != "/" {
		list = append(list, unified(mountPoint))
	}
	return list
}

func unified(folder string) Base { return Base{Unified: true, Memory: folder, CPU: folder} }

// try makes a group and removes it.
func (b Base) try() error {
	if b.Unified {
		if err := write(b.Memory, "cgroup.subtree_control", "+memory +cpu"); err != nil {
			return fmt.Errorf("enabling the memory and cpu controllers in %s: %w", b.Memory, err)
		}
	}
	g := b.Group(fmt.Sprintf("drover-try-%d", unix.Getpid()))
	for _, folder := range g.folders() {
		if err := unix.Mkdir(folder, 0o700); err != nil {
			return errors.Join(fmt.Errorf("creating control group %s: %w", folder, err), g.Remove(0))
		}
	}
	return g.Remove(0)
}
