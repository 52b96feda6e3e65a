package local

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gliderlabs/ssh"
	gossh "golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
)

// hangUpTime is how long a command has to end after its session was closed under it.
const hangUpTime = time.Second

// exitNoStart is what shells give for a command that cannot be run.
const exitNoStart = 126

// session runs one command, or a shell if there is none, and reports its end. Like any SSH server it keeps the session open until the
// command has ended and its output is closed, by whoever may have inherited it.
func (g *guest) session(s ssh.Session) {
	p, err := g.runCommand(s)
	if err != nil {
		fmt.Fprintf(s.Stderr(), "run the command: %v\n", err)
		s.Exit(exitNoStart)
		return
	}
	go g.forwardSignals(s, p.pid)
	drained := p.pipe(s)
	select {
	case <-drained:
	case <-s.Context().Done():
		g.hangUp(p, drained)
		return
	}
	select {
	case status := <-p.exited:
		report(s, status)
	case <-s.Context().Done():
		g.hangUp(p, drained)
	}
}

// command is a running one, and our ends of its pipes.
type command struct {
	pid            int
	exited         <-chan unix.WaitStatus
	stdin          *os.File
	stdout, stderr *os.File
}

func (g *guest) runCommand(s ssh.Session) (c command, err error) {
	var theirs [3]*os.File
	var ours [3]*os.File
	defer func() {
		closeAll(theirs[:])
		if err != nil {
			closeAll(ours[:])
		}
	}()
	for i := range theirs {
		r, w, err := os.Pipe()
		if err != nil {
			return c, err
		}
		theirs[i], ours[i] = r, w
		if i > 0 {
			theirs[i], ours[i] = w, r
		}
	}
	args := []string{"sh"}
	if text := s.RawCommand(); text != "" {
		args = append(args, "-c", text)
	}
	pid, exited, err := g.reaper.start("/bin/sh", args, g.home, g.environ(s.Environ()), theirs[:]...)
	return command{pid, exited, ours[0], ours[1], ours[2]}, err
}

// environ adds what the client asks for to what the instance has, of which nothing is replaced.
func (g *guest) environ(asked []string) []string {
	env := slices.Clone(g.Environment)
	for _, v := range asked {
		name, _, _ := strings.Cut(v, "=")
		has := slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
		if !has && name != "" && !strings.ContainsRune(v, 0) {
			env = append(env, v)
		}
	}
	return env
}

// pipe connects the command with the session. The channel is closed once all output has been sent, or can no longer be.
func (c command) pipe(s ssh.Session) <-chan struct{} {
	go func() {
		defer c.stdin.Close()
		io.Copy(c.stdin, s) // a command may well not want to read it all
	}()
	var outputs sync.WaitGroup
	send := func(to io.Writer, from *os.File) {
		outputs.Go(func() {
			defer from.Close()
			io.Copy(to, from) // if the client is gone, so is whoever could be told
		})
	}
	send(s, c.stdout)
	send(s.Stderr(), c.stderr)
	drained := make(chan struct{})
	go func() {
		outputs.Wait()
		close(drained)
	}()
	return drained
}

// hangUp ends a command that nobody listens to any more. What has left its session (a supervisor) is not touched.
func (g *guest) hangUp(c command, drained <-chan struct{}) {
	c.stdout.Close()
	c.stderr.Close()
	g.reaper.signal(c.pid, unix.SIGHUP)
	select {
	case <-c.exited:
	case <-time.After(hangUpTime):
		g.reaper.signal(c.pid, unix.SIGKILL)
	}
	<-drained
}

// forwardSignals passes on what the client sends. It goes on until the channel is closed, since the library waits for whoever has
// asked for signals to take them.
func (g *guest) forwardSignals(s ssh.Session, pid int) {
	signals := make(chan ssh.Signal, 8)
	s.Signals(signals)
	for {
		select {
		case name := <-signals:
			if sig := unix.SignalNum("SIG" + string(name)); sig != 0 {
				g.reaper.signal(pid, sig)
			}
		case <-s.Context().Done():
			return
		}
	}
}

// report tells the client how the command ended, by its exit code or by the signal that ended it.
func report(s ssh.Session, status unix.WaitStatus) {
	if !status.Signaled() {
		s.Exit(status.ExitStatus())
		return
	}
	end := struct {
		Signal string
		Core   bool
		Text   string
		Lang   string
	}{Signal: strings.TrimPrefix(unix.SignalName(status.Signal()), "SIG"), Core: status.CoreDump()}
	s.SendRequest("exit-signal", false, gossh.Marshal(&end))
	s.Close()
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}
