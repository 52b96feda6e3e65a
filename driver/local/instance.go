package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"drover/internal/atomicfile"
	"drover/internal/backoff"
	"drover/internal/processes"
)

// Command is the first argument with which Drover's binary becomes an instance: it then calls [InstanceMain] with the
// arguments after it, before anything else.
const Command = "local-instance"

// guestFlag distinguishes the inner process from the outer one.
const guestFlag = "-guest"

// launch is what Create passes to the two processes, as JSON on their standard input.
type launch struct {
	HostKey     string        `json:"host_key"`
	PublicKey   string        `json:"public_key"`
	Init        []string      `json:"init"`
	BootDelay   time.Duration `json:"boot_delay"`
	NeverBoots  bool          `json:"never_boots"`
	Fate        fate          `json:"fate"`
	Environment []string      `json:"environment"`
}

// The files that the processes inherit besides the standard three.
const (
	fdLock   = 3 // both: the instance's folder, locked
	fdSocket = 4 // both: bound, perhaps not yet listening
	fdAlive  = 5 // guest: a pipe that ends when the outer process does
)

// InstanceMain is an instance's process. Its arguments are those after [Command]; it returns the exit code.
func InstanceMain(args []string) int {
	run := runOuter
	if len(args) > 0 && args[0] == guestFlag {
		run, args = runGuest, args[1:]
	}
	if len(args) != 1 {
		fmt.Fprintf(os.Stderr, "drover %s is for internal use only\n", Command)
		return 2
	}
	if err := run(args[0]); err != nil {
		fmt.Fprintf(os.Stderr, "%s %v\n", time.Now().UTC().Format(time.RFC3339), err)
		return 1
	}
	return 0
}

// runOuter is the process whose death is the instance's: it starts the guest and, when that ends, ends everything that
// ran in it.
func runOuter(folder string) error {
	lock, socket := inherited(fdLock, "lock"), inherited(fdSocket, "ssh")
	defer lock.Close()
	r, err := processes.NewReaper()
	if err != nil {
		return err
	}
	l, err := readLaunch()
	if err != nil {
		return err
	}
	watch, alive, err := os.Pipe()
	if err != nil {
		return err
	}
	defer alive.Close()
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, unix.SIGTERM, unix.SIGINT)
	if err := writePID(folder, os.Getpid()); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, upFile), nil, 0o600); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go r.Run(ctx)

	args := []string{"drover", Command, guestFlag, folder}
	_, ended, err := r.Start("/proc/self/exe", args, folder, l.Environment, os.Stdin, os.Stdout, os.Stderr, lock, socket, watch)
	if err := errors.Join(err, watch.Close(), socket.Close(), os.Stdin.Close()); err != nil {
		return fmt.Errorf("start the guest: %w", err)
	}
	dies := make(chan error, 1)
	go func() {
		if yes, err := l.Fate.unfold(ctx, folder); yes || err != nil {
			dies <- err
		}
	}()
	select {
	case <-ended:
	case <-removed(ctx, lock):
	case <-stop:
		if l.Fate.Stops || has(folder, stoppedFile) {
			l.Init = nil // the scripts were for the first boot, and may contain secrets
			err = errors.Join(os.Remove(filepath.Join(folder, upFile)), atomicfile.WriteJSON(filepath.Join(folder, stoppedFile), l))
		}
	case err := <-dies:
		// A sudden death leaves no time for an orderly end.
		return errors.Join(err, unix.Kill(os.Getpid(), unix.SIGKILL))
	}
	return errors.Join(err, r.EndTree())
}

// removedInterval is how often an instance checks that its folder still exists.
const removedInterval = 200 * time.Millisecond

// removed returns a channel that is closed when somebody removes the folder. The instance must then end, since its cloud
// no longer lists it.
func removed(ctx context.Context, folder *os.File) <-chan struct{} {
	gone := make(chan struct{})
	go func() {
		var info unix.Stat_t
		for backoff.For(ctx, removedInterval) == nil {
			if unix.Fstat(int(folder.Fd()), &info) == nil && info.Nlink == 0 {
				close(gone)
				return
			}
		}
	}()
	return gone
}

// readLaunch reads standard input and rewinds it for the guest.
func readLaunch() (l launch, err error) {
	if err := json.NewDecoder(os.Stdin).Decode(&l); err != nil {
		return l, fmt.Errorf("read the launch request: %w", err)
	}
	_, err = os.Stdin.Seek(0, io.SeekStart)
	return l, err
}

// inherited opens a file that Create or the outer process passed on, and keeps child processes from inheriting it by
// default.
func inherited(fd int, name string) *os.File {
	unix.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), name)
}
