package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// nothingLeft reports what a run left behind: processes (and with them listeners and locks), or state of runs. It waits
// a moment, since killed processes end slightly later.
func nothingLeft(state string) (err error) {
	for end := time.Now().Add(2 * time.Second * busy); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if err = leftovers(state); err == nil {
			return nil
		}
	}
	return err
}

func leftovers(state string) error {
	var left []string
	for _, pid := range processesOf(state) {
		left = append(left, fmt.Sprintf("process %d: %s", pid, commandLine(pid)))
	}
	files, _ := os.ReadDir(filepath.Join(state, "drover"))
	for _, f := range files {
		if f.Name() != "recordings" && f.Name() != "ended" { // these stay on purpose
			left = append(left, f.Name())
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("left behind:\n%s", strings.Join(left, "\n"))
	}
	return nil
}

// processesOf finds every process with the home of a run's state in its environment, in any variable: controllers have
// it as XDG_STATE_HOME, instances and their processes in DROVER_LOCAL_INSTANCE. Zombies have no environment any more.
func processesOf(state string) (pids []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if env, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ")); err == nil && bytes.Contains(env, []byte("="+state)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func commandLine(pid int) string {
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return string(bytes.ReplaceAll(line, []byte{0}, []byte{' '}))
}
