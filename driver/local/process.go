package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// marker is the environment variable that every process of an instance is born with: the instance's folder.
const marker = "DROVER_LOCAL_INSTANCE"

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

// isMarked says whether a process was born in the instance of this folder. Another user's process was not.
func isMarked(pid int, path string) bool {
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return false
	}
	return slices.ContainsFunc(bytes.Split(environ, []byte{0}), func(v []byte) bool { return string(v) == marker+"="+path })
}

// markedProcesses are those of an instance, and their descendants, that have not ended.
func markedProcesses(path string) ([]int, error) {
	all, err := processes()
	return withDescendants(all, func(p process) bool { return isMarked(p.pid, path) }), err
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

// endAll kills what find finds until it finds nothing more: a process may have forked between the look and the kill.
func endAll(ctx context.Context, find func() ([]int, error)) error {
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
		if err := pause(ctx, endInterval); err != nil {
			return fmt.Errorf("wait for %d processes to end: %w", len(pids), err)
		}
	}
}

// spawn starts a program in a session of its own with exactly these files, 0 and up, and this environment. It returns once the program
// runs; whoever calls must wait for the process.
func spawn(program string, args []string, folder string, env []string, files ...*os.File) (pid int, err error) {
	p, err := os.StartProcess(program, args, &os.ProcAttr{Dir: folder, Env: env, Files: files, Sys: &unix.SysProcAttr{Setsid: true}})
	if err != nil {
		return 0, err
	}
	pid = p.Pid
	return pid, p.Release()
}

// endTime bounds the end of an instance: only processes that the kernel cannot kill take so long.
const endTime = 10 * time.Second

// reaper starts processes and waits for every child there is. An instance's processes adopt whatever is orphaned in it, as a host's
// first process does, so waiting for one's own children alone would leave zombies.
type reaper struct {
	mu      sync.Mutex
	waiting map[int]chan<- unix.WaitStatus // processes started here that have not ended; guarded by mu
}

// newReaper makes this process the one that orphans below it fall to.
func newReaper() (*reaper, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become the parent of orphans: %w", err)
	}
	return &reaper{waiting: map[int]chan<- unix.WaitStatus{}}, nil
}

// Run buries the dead until the context ends.
func (r *reaper) Run(ctx context.Context) {
	died := make(chan os.Signal, 1)
	signal.Notify(died, unix.SIGCHLD)
	defer signal.Stop(died)
	for {
		r.bury()
		select {
		case <-died:
		case <-ctx.Done():
			return
		}
	}
}

// bury waits for all that have ended. The lock is held from the wait on, so that signal never meets a number already given to another.
func (r *reaper) bury() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		if exited, ok := r.waiting[pid]; ok {
			delete(r.waiting, pid)
			exited <- status
		}
	}
}

// start spawns a process; its status comes on the channel when it has ended.
func (r *reaper) start(program string, args []string, folder string, env []string, files ...*os.File) (int, <-chan unix.WaitStatus, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pid, err := spawn(program, args, folder, env, files...)
	if err != nil {
		return 0, nil, err
	}
	exited := make(chan unix.WaitStatus, 1)
	r.waiting[pid] = exited
	return pid, exited, nil
}

// signal sends a signal to the process group of a process started here, unless it has ended.
func (r *reaper) signal(pid int, sig unix.Signal) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.waiting[pid]; !ok {
		return nil
	}
	return unix.Kill(-pid, sig)
}

// endTree ends everything below this process, and buries it.
func (r *reaper) endTree() error {
	ctx, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	defer r.bury()
	return endAll(ctx, descendants)
}
