package processes

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Spawn starts a program in its own session with exactly these files, as descriptors 0 and up, and this environment. It
// returns once the program runs; the caller must wait for the process.
func Spawn(program string, args []string, folder string, env []string, files ...*os.File) (pid int, err error) {
	p, err := os.StartProcess(program, args, &os.ProcAttr{Dir: folder, Env: env, Files: files, Sys: &unix.SysProcAttr{Setsid: true}})
	if err != nil {
		return 0, err
	}
	pid = p.Pid
	return pid, p.Release()
}

// endTime bounds the killing of a tree: only processes that the kernel cannot kill take this long.
const endTime = 10 * time.Second

// Reaper starts processes and waits for every child. Like a host's first process, it adopts orphaned descendants, so
// waiting only for the children that it started would leave zombies.
type Reaper struct {
	mu      sync.Mutex
	waiting map[int]chan<- unix.WaitStatus // processes started here that have not ended; guarded by mu
}

// NewReaper makes this process the subreaper of its descendants.
func NewReaper() (*Reaper, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("adopting orphaned processes: %w", err)
	}
	return &Reaper{waiting: map[int]chan<- unix.WaitStatus{}}, nil
}

// Run reaps ended children until the context ends.
func (r *Reaper) Run(ctx context.Context) {
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

// bury reaps all children that have ended. It holds the lock from before the wait, so that Signal never uses a pid that
// already belongs to another process.
func (r *Reaper) bury() {
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

// Start spawns a process. The channel receives its status when it has ended.
func (r *Reaper) Start(program string, args []string, folder string, env []string, files ...*os.File) (int, <-chan unix.WaitStatus, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pid, err := Spawn(program, args, folder, env, files...)
	if err != nil {
		return 0, nil, err
	}
	exited := make(chan unix.WaitStatus, 1)
	r.waiting[pid] = exited
	return pid, exited, nil
}

// Signal sends a signal to the process group of a process started here, unless it has ended.
func (r *Reaper) Signal(pid int, sig unix.Signal) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.waiting[pid]; !ok {
		return nil
	}
	return unix.Kill(-pid, sig)
}

// EndTree kills all descendants of this process and reaps them.
func (r *Reaper) EndTree() error {
	ctx, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	defer r.bury()
	return EndAll(ctx, descendants)
}
