package runner

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"drover/internal/cgroup"
)

// attributes are how a process starts.
type attributes struct {
	dir   string // empty: this process's
	env   []string
	files []*os.File
	group *cgroup.Group // nil: this process's
	apart bool          // make it the first process of new namespaces
	uid   int           // the user that it runs as; 0: this process's
}

// spawn executes a program in its own session.
func spawn(path string, args []string, a attributes) (*command, error) {
	attr := &syscall.ProcAttr{Dir: a.dir, Env: a.env, Sys: &syscall.SysProcAttr{Setsid: true}}
	if a.apart {
		attr.Sys.Cloneflags = unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC
	}
	if a.uid != 0 {
		attr.Sys.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.uid)}
	}
	for _, f := range a.files {
		attr.Files = append(attr.Files, f.Fd())
	}
	start := func() (int, error) { return execute(path, args, attr) }
	var pid int
	var err error
	if a.group == nil {
		pid, err = start()
	} else {
		pid, err = a.group.Enter(attr.Sys, start)
	}
	if err != nil {
		return nil, fmt.Errorf("executing %s: %w", path, err)
	}
	return &command{pid: pid, group: a.group}, nil
}

// The daemon may fork while it writes a program among an attempt's inputs. The child holds the program open for writing
// until it executes its own, and until then the kernel refuses to execute it. That takes moments; execute waits up to a
// second.
const (
	busyTries = 200
	busyPause = 5 * time.Millisecond
)

// execute starts a program, after waiting until no process has it open for writing.
func execute(path string, args []string, attr *syscall.ProcAttr) (pid int, err error) {
	for range busyTries {
		pid, err = syscall.ForkExec(path, args, attr)
		if err != syscall.ETXTBSY {
			return pid, err
		}
		time.Sleep(busyPause)
	}
	return pid, err
}
