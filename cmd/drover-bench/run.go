package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// program is the measured drover.
type program struct {
	path   string
	folder string // for configurations, state, results and notes
	self   string // this program, which is also the job
}

// usage is what one `drover run` used. Its CPU time is that of the controller's process only, without the instances.
type usage struct {
	began   time.Time
	elapsed time.Duration
	cpu     time.Duration
	memory  int64 // peak resident memory in bytes
}

// configuration gives every running job its own instance, up to a limit. Memory and disk are plentiful, so that a job
// whose outputs are still being collected takes no room from the next.
const configuration = `version: 1
fleet: bench
state: sqlite:drover.db
clouds:
  here:
    driver: local
    max_instances: %d
    types: [{name: one, vcpus: 1, memory: 8Gi, disk: 80Gi, price: 0.01}]
`

// run runs an array of jobs to its end.
func (p program) run(instances, jobs int, command ...string) (usage, error) {
	config := filepath.Join(p.folder, "drover.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, configuration, instances), 0o600); err != nil {
		return usage{}, err
	}
	args := []string{"run", "-c", config, "--name", "bench", "--array", strconv.Itoa(jobs), "--vcpus", "1", "--"}
	cmd := exec.Command(p.path, append(args, command...)...)
	cmd.Dir = p.folder
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(p.folder, "state"))
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	u, err := watch(cmd)
	if err != nil {
		return u, fmt.Errorf("%s: %w\n%s", cmd, err, said.String())
	}
	return u, os.RemoveAll(filepath.Join(p.folder, "drover-out"))
}

// watch runs a command to its end and measures it.
func watch(cmd *exec.Cmd) (u usage, err error) {
	u.began = time.Now()
	if err := cmd.Start(); err != nil {
		return u, err
	}
	ended := make(chan error, 1)
	go func() {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		u.elapsed = time.Since(u.began)
		ended <- err
	}()
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		select {
		case err = <-ended:
			tick.Stop()
			// Read the process's own time before Wait, whose result includes that of its children.
			cpu, cpuErr := cpuTime(cmd.Process.Pid)
			u.cpu = cpu
			return u, errors.Join(err, cpuErr, cmd.Wait())
		case <-tick.C:
			u.memory = max(u.memory, peakMemory(cmd.Process.Pid))
		}
	}
}

// cpuTime returns the CPU time that a process, ended or not, has used without its children.
func cpuTime(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The fields follow the name, which is in parentheses and may contain anything. User and system time are the
	// twelfth and thirteenth of them.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	user, userErr := strconv.Atoi(fields[11])
	system, systemErr := strconv.Atoi(fields[12])
	const tick = 10 * time.Millisecond // on every Linux that Go supports
	return time.Duration(user+system) * tick, errors.Join(userErr, systemErr)
}

// peakMemory returns a process's peak resident memory; 0 if it has ended.
func peakMemory(pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	text, _, _ := strings.Cut(after, "kB")
	kilobytes, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return 0
	}
	return kilobytes << 10
}
