package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"drover"
	"drover/internal/container"
	"drover/internal/wire"
)

const (
	// startPatience bounds the creation and the start of a container, whose image has been fetched before.
	startPatience = 2 * time.Minute
	// askPatience bounds every other call to a runtime while an attempt runs, so that no call delays the next signal
	// for long.
	askPatience = 10 * time.Second
	// lastReportPatience bounds the wait for a report from a container's first process: after the container has ended,
	// since the report may still be unread, or after its start is called off, since its command may already be running.
	lastReportPatience = time.Second
)

// contained is a command in a container. The process that is watched is the client that started the container: it
// carries the output and ends when the container does. The container's first process reports the rest, see initiate.
type contained struct {
	runtime container.Runtime
	spec    container.Spec
	folder  folder
	pipe    *os.File
	reports chan report // from the first process

	client      *command
	clientEnded <-chan struct{}
}

// startContained creates and starts the order's container, and waits until its command runs or ctx ends.
func startContained(ctx context.Context, o order) (*contained, error) {
	c, err := newContained(o)
	if err != nil {
		return nil, &failure{runtimeFailed, err}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startPatience, fmt.Errorf("it did not start within %v", startPatience))
	defer cancel()
	if err := c.start(ctx); err != nil {
		c.pipe.Close()
		c.kill()
		return nil, err
	}
	return c, nil
}

// newContained opens the pipe on which the container's first process reports. The pipe is open for writing too, so that
// reads do not return EOF before a writer opens it.
func newContained(o order) (*contained, error) {
	r, err := container.Open(o.Place.Runtime)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(o.Folder.makeTold(), unix.Mkfifo(o.Folder.pipe(), 0o600)); err != nil {
		return nil, fmt.Errorf("creating the pipe to the container: %w", err)
	}
	if uid := o.Place.UID; uid != 0 {
		if err := os.Chown(o.Folder.pipe(), uid, uid); err != nil {
			return nil, err
		}
	}
	pipe, err := os.OpenFile(o.Folder.pipe(), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	c := &contained{runtime: r, spec: *o.Container, folder: o.Folder, pipe: pipe, reports: make(chan report, 2)}
	c.spec.Env = containerEnv(o)
	go c.listen()
	return c, nil
}

// listen reads the reports of the container's first process, until it has the exit or no more are wanted. The command
// could write to the pipe too: see credible.
func (c *contained) listen() {
	defer close(c.reports)
	lines := wire.NewConn(c.pipe, nil)
	for range cap(c.reports) {
		var r report
		if lines.Read(&r) != nil {
			return
		}
		if r.Exit != nil {
			r.Exit = credible(*r.Exit)
		}
		c.reports <- r
		if r.Exit != nil {
			return
		}
	}
}

// credible limits a reported exit to what the command itself could have brought about, since the command can forge its
// first process's report. It cannot claim to have been interrupted, stopped or lost.
func credible(e drover.Exit) *drover.Exit {
	said := drover.Exit{Code: min(max(e.Code, 0), 255), Text: limit(e.Text), CPU: max(e.CPU, 0), MaxRSS: max(e.MaxRSS, 0)}
	if said.Code > 128 && e.Signal != "" {
		said.Signal = unix.Signal(said.Code - 128).String()
	}
	if e.Cause == drover.CauseMemory || e.Cause == drover.CauseNoStart {
		said.Cause = e.Cause
	}
	return &said
}

// start creates and starts the container, and waits for the report that its command runs.
func (c *contained) start(ctx context.Context) error {
	if err := c.runtime.Create(ctx, c.spec); err != nil {
		return &failure{runtimeFailed, fmt.Errorf("creating the container: %w", err)}
	}
	if err := c.startClient(); err != nil {
		return &failure{runtimeFailed, err}
	}
	first := c.firstReport(ctx)
	if first.Started {
		return nil
	}
	c.endClient()
	if first.Exit != nil {
		return &failure{first.Exit.Code, errors.New(first.Exit.Text)}
	}
	return startFailure(c.whyNot(ctx))
}

// startFailure is the failure of a container that did not start: a fault in the runtime or the instance, unless this
// program, built with cgo, lacks its C library in the image. That it lacks in the same image everywhere.
func startFailure(why error) error {
	said := strings.ToLower(why.Error())
	if strings.Contains(said, initPath) && (strings.Contains(said, "no such file or directory") || strings.Contains(said, "not found")) {
		return &failure{noStartCode, fmt.Errorf("the image lacks the C library that this build of Drover needs there (build Drover with make build, or with CGO_ENABLED=0): %w", why)}
	}
	return &failure{runtimeFailed, fmt.Errorf("starting the container: %w", why)}
}

// firstReport returns the first process's first report; the zero report if none comes before the container or ctx ends.
func (c *contained) firstReport(ctx context.Context) report {
	select {
	case r := <-c.reports:
		return r
	case <-c.clientEnded:
		return c.nextReport()
	case <-ctx.Done():
	}
	// The command may already be running, and have written output, a moment before its first process reports it.
	select {
	case r := <-c.reports:
		return r
	case <-time.After(lastReportPatience):
		return report{}
	}
}

// startClient starts the client that starts the container. The client's output becomes the attempt's.
func (c *contained) startClient() error {
	program, args := c.runtime.Start(c.spec.Name)
	path, err := lookUp(program, os.Getenv("PATH"))
	if err != nil {
		return err
	}
	files, err := openStreams(c.folder)
	if err != nil {
		return err
	}
	defer closeAll(files)
	env := append(os.Environ(), marker+"="+string(c.folder))
	if c.client, err = spawn(path, append([]string{program}, args...), attributes{env: env, files: files}); err != nil {
		return err
	}
	c.clientEnded = c.client.ended()
	return nil
}

// nextReport returns the next report, after the first process has ended; the zero report if there is none.
func (c *contained) nextReport() report {
	// If the deadline cannot be set, the pipe is closed, and there is no report either.
	c.pipe.SetReadDeadline(time.Now().Add(lastReportPatience))
	return <-c.reports
}

// whyNot returns why the container did not start, in the words of the runtime's client, whose stderr is the attempt's.
func (c *contained) whyNot(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	text, _, err := tail(c.folder.path("stderr"), 1000)
	if text = strings.TrimSpace(text); err != nil || text == "" {
		return errors.New(c.runtime.Name() + " gave no reason")
	}
	return errors.New(text)
}

// endClient ends the client, then the container if the client was killed, and then what the client started: podman
// leaves a process that cleans up, which gets time to finish.
func (c *contained) endClient() (status unix.WaitStatus) {
	if !isClosed(c.clientEnded) {
		c.client.signal(unix.SIGKILL)
		<-c.clientEnded
	}
	c.client.reap(c.client.pid, &status)
	if status.Signaled() {
		c.kill()
	}
	c.client.awaitRest(false)
	c.client.awaitRest(true)
	return status
}

// kill ends everything in the container, by the runtime or, if that fails, by the marker.
func (c *contained) kill() (left int) {
	ctx, cancel := c.asking()
	defer cancel()
	if c.runtime.Remove(ctx, c.spec.Name) == nil {
		return 0
	}
	return killMarked(string(c.folder))
}

func (c *contained) ended() <-chan struct{} { return c.clientEnded }

func (c *contained) reapOrphans() { c.client.reapOrphans() }

func (c *contained) String() string { return "container " + c.spec.Name }

// signal has the runtime send a signal to the container's first process, which passes it on. SIGKILL works without the
// runtime too.
func (c *contained) signal(sig unix.Signal) error {
	ctx, cancel := c.asking()
	defer cancel()
	err := c.runtime.Signal(ctx, c.spec.Name, sig)
	if err != nil && sig == unix.SIGKILL && !isClosed(c.clientEnded) {
		killMarked(string(c.folder))
	}
	return err
}

// asking returns the context of a call to the runtime.
func (c *contained) asking() (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(context.Background(), askPatience, fmt.Errorf("%s did not answer within %v", c.runtime.Name(), askPatience))
}

// finish returns how the command ended, and removes its container. If the removal fails, the daemon tries again later,
// see sweep.
func (c *contained) finish() drover.Exit {
	e := c.exit()
	if left := c.kill(); left > 0 {
		e.Text = strings.TrimPrefix(fmt.Sprintf("%s; %d of its processes could not be killed", e.Text, left), "; ")
	}
	return e
}

// exit returns how the command ended, as the container's first process reported it, or else the runtime.
func (c *contained) exit() drover.Exit {
	client := c.endClient()
	last := c.nextReport().Exit
	c.pipe.Close()
	switch {
	case client.Signaled():
		return lostContainer(fmt.Errorf("%s, which relayed the container's output, exited before the container did", c.runtime.Name()))
	case last != nil && last.Code == 0:
		return *last
	}
	ctx, cancel := c.asking()
	defer cancel()
	s, err := c.runtime.State(ctx, c.spec.Name)
	switch {
	case last != nil:
		if s.OOMKilled {
			last.Cause = drover.CauseMemory
		}
		return *last
	case err != nil:
		return lostContainer(err)
	case s.Running:
		return lostContainer(fmt.Errorf("%s exited before the container", c.runtime.Name()))
	}
	return exitOf(s)
}

// exitOf returns the exit of a command that only the runtime can report, because the container's first process was
// killed.
func exitOf(s container.State) drover.Exit {
	e := drover.Exit{Code: s.ExitCode}
	if s.ExitCode > 128 {
		e.Signal = unix.Signal(s.ExitCode - 128).String()
	}
	if s.OOMKilled {
		e.Cause = drover.CauseMemory
	}
	return e
}

// lostContainer returns the exit of a command whose real exit, or whole output, is unknown.
func lostContainer(err error) drover.Exit {
	return drover.Exit{Code: 128 + int(unix.SIGKILL), Cause: drover.CauseLost, Text: "its container was lost: " + err.Error()}
}

// containerEnv returns the environment of a container. Of the instance's environment it has only Drover's variables.
func containerEnv(o order) map[string]string {
	env := unpair(ownVariables())
	if o.Container.User != container.RootUser {
		env["HOME"] = o.Folder.work() // the instance's user has no home folder in an image
	}
	maps.Copy(env, o.Env)
	maps.Copy(env, o.markers())
	return env
}

// ownVariables returns Drover's variables from this process's environment. Drivers recognize an instance's processes by
// them.
func ownVariables() []string {
	return slices.DeleteFunc(os.Environ(), func(pair string) bool { return !strings.HasPrefix(pair, "DROVER_") })
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
