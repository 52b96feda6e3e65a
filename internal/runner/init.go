package runner

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"drover"
	"drover/internal/cgroup"
	"drover/internal/container"
	"drover/internal/wire"
)

// initiate is a container's first process, and returns its exit code. Like a supervisor, it runs the command in its own
// session, as a separate process, since signals do not have their usual effect on a first process.
func initiate(args []string, stderr io.Writer) int {
	signals := forwarded()
	pipe, err := os.OpenFile(folder(os.Getenv(marker)).pipe(), os.O_WRONLY, 0)
	if err != nil {
		fmt.Fprintf(stderr, "drover-runner: %v\n", err)
		return runtimeFailed
	}
	defer pipe.Close()
	return attend(pipe, signals, func() (*command, error) { return startWithin(args) })
}

// forwarded returns the signals that a first process passes on to its command.
func forwarded() <-chan os.Signal {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2)
	return signals
}

// attend starts the command of a first process, waits for it to end, and returns the exit code. It reports to the
// supervisor, which may be gone, that the command has started or why it could not, and how it ended.
func attend(reports io.Writer, signals <-chan os.Signal, start func() (*command, error)) int {
	supervisor := wire.NewConn(nil, reports)
	c, err := start()
	if err != nil {
		e := noStart(startCode(err), err)
		supervisor.Write(report{Exit: &e})
		return e.Code
	}
	supervisor.Write(report{Started: true})
	e := c.finishWithin(signals)
	supervisor.Write(report{Exit: &e})
	return e.Code
}

// startWithin starts the command with this process's folder, output and environment.
func startWithin(args []string) (*command, error) {
	env := unpair(container.Unpack(os.Environ()))
	path, err := lookUp(args[0], env["PATH"])
	if err != nil {
		return nil, err
	}
	return spawn(path, args, attributes{env: pairs(env), files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
}

// finishWithin passes signals on until the command has ended, kills and reaps what it left behind, and returns how it
// ended.
func (c *command) finishWithin(signals <-chan os.Signal) drover.Exit {
	ended := c.ended()
	reap := time.NewTicker(reapInterval)
	defer reap.Stop()
	for {
		select {
		case <-ended:
			e := c.finish()
			// In a container, the top of the control group tree is the container's own group. If it cannot be read, the
			// runtime still reports lack of memory.
			if n, err := cgroup.OwnOutOfMemory(); err == nil && n > 0 && e.Code != 0 {
				e.Cause = drover.CauseMemory
			}
			return e
		case <-reap.C:
			c.reapOrphans()
		case s := <-signals:
			// The error is ignored: the command may have ended by now.
			c.signal(s.(unix.Signal))
		}
	}
}
