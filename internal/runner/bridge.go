package runner

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"drover/internal/wire"
)

// socketName is relative: both ends change to the folder first, since a socket's path may have at most 107 bytes.
const socketName = "sock"

// daemonPatience is how long a daemon may take to start, including the wait for its predecessor to end.
const daemonPatience = 15 * time.Second

// greeting is a bridge's first line on the daemon's socket: the channel's role and the version of the bridge's program.
type greeting struct {
	Role   string `json:"role"` // "control" or "bulk"
	Binary string `json:"binary"`
}

// welcome answers a greeting. If Leaving, the daemon is about to exit, because a control stream came from another
// version of the program; the bridge must start a daemon of its own version.
type welcome struct {
	Leaving bool `json:"leaving,omitempty"`
}

// bridge carries bytes between an SSH channel and the daemon. It ends when either of them ends.
func bridge(role string, o options, stdin io.Reader, stdout io.Writer) error {
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return err
	}
	if err := os.Chdir(o.dir); err != nil {
		return err
	}
	conn, err := reachDaemon(role, o.identity)
	if err != nil {
		return err
	}
	defer conn.Close()
	go func() {
		// If the channel ends early, the daemon hangs up, so the error adds nothing.
		io.Copy(conn, stdin)
		conn.CloseWrite()
	}()
	_, err = io.Copy(stdout, conn)
	return err
}

// reachDaemon connects to the daemon, starting one if none answers.
func reachDaemon(role string, id identity) (*net.UnixConn, error) {
	hello := greeting{Role: role, Binary: binaryName()}
	deadline := time.Now().Add(daemonPatience)
	for {
		conn, err := greet(hello)
		if err == nil {
			return conn, nil
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("reaching the daemon: %w", err)
		}
		if err := startDaemon(id, hello); err != nil {
			return nil, err
		}
	}
}

// greet connects to a daemon that is not about to exit.
func greet(hello greeting) (*net.UnixConn, error) {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socketName})
	if err != nil {
		return nil, err
	}
	var answer welcome
	lines := wire.NewConn(conn, conn)
	if err := errors.Join(conn.SetReadDeadline(time.Now().Add(daemonPatience)), lines.Write(hello), lines.Read(&answer)); err != nil {
		conn.Close()
		return nil, err
	}
	if answer.Leaving {
		conn.Close()
		return nil, errors.New("it is about to exit")
	}
	return conn, conn.SetReadDeadline(time.Time{})
}

// startDaemon starts a daemon unless one answers, one bridge at a time, and waits until it listens.
func startDaemon(id identity, hello greeting) error {
	lock, err := lockFile("start.lock", os.O_CREATE|os.O_RDWR, true)
	if err != nil {
		return err
	}
	defer lock.Close()
	if conn, err := greet(hello); err == nil {
		return conn.Close()
	}
	ready, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ready.Close()
	err = spawnDaemon(id, theirs)
	theirs.Close()
	if err != nil {
		return err
	}
	if err := ready.SetReadDeadline(time.Now().Add(daemonPatience)); err != nil {
		return err
	}
	said, err := io.ReadAll(io.LimitReader(ready, 1024))
	if err == nil && string(said) != readyWord {
		err = errors.New(string(said))
	}
	if err != nil {
		return fmt.Errorf("starting the daemon: %w", err)
	}
	return nil
}

// readyWord is what a daemon writes to its readiness pipe once it listens. Anything else is why it cannot.
const readyWord = "ready"

// spawnDaemon starts this program as a daemon in its own session, with the readiness pipe as its descriptor 3.
func spawnDaemon(id identity, ready *os.File) error {
	log, err := openDaemonLog()
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := background(log, ready, "daemon", "--dir", ".", "--fleet", id.Fleet, "--instance", id.Instance)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the daemon: %w", err)
	}
	return cmd.Process.Release()
}

// background returns this program as a command in its own session, with a log and descriptor 3.
func background(log, third *os.File, args ...string) *exec.Cmd {
	return &exec.Cmd{Path: selfPath, Args: append([]string{binaryName()}, args...), Stdout: log, Stderr: log,
		ExtraFiles: []*os.File{third}, SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
}

// selfPath names the running program, even after its file has been replaced or deleted.
const selfPath = "/proc/self/exe"

// binaryName returns the name of this program's file. Controllers name the file by its content, so the name identifies
// the version. It is also the first argument of the daemon and of supervisors: a program that contains more than the
// runner recognizes its role by it.
func binaryName() string {
	path, err := os.Executable()
	if err != nil {
		return "drover-runner"
	}
	return filepath.Base(path)
}

const (
	logFile  = "daemon.log"
	logLimit = 1 << 20
)

// openDaemonLog opens the daemon's log. It rotates a log over its limit first.
func openDaemonLog() (*os.File, error) {
	if info, err := os.Stat(logFile); err == nil && info.Size() > logLimit {
		if err := os.Rename(logFile, logFile+".1"); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}

// limitLog makes log write to a new file once its file is over the limit.
func limitLog(log *os.File) error {
	if info, err := log.Stat(); err != nil || info.Size() <= logLimit {
		return err
	}
	next, err := openDaemonLog()
	if err != nil {
		return err
	}
	defer next.Close()
	return unix.Dup3(int(next.Fd()), int(log.Fd()), 0)
}
