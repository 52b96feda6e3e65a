package external

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"
)

// What a program may do.
const (
	maxReply = 16 << 20        // bytes; a list of ten thousand instances takes some seven million
	maxCalls = 16              // programs that run at once, of one cloud
	grace    = 2 * time.Second // from SIGTERM to SIGKILL
	maxLine  = 1 << 10         // bytes of one line for the log
	maxLines = 100             // for the log in lineTime
	lineTime = time.Minute
)

// caller starts the program for each call.
type caller struct {
	command []string
	log     func(line string)
	slots   chan struct{}
	ended   context.Context // Close ends it
	end     context.CancelFunc
}

func newCaller(command []string, log func(string)) *caller {
	c := &caller{command: command, log: log, slots: make(chan struct{}, maxCalls)}
	c.ended, c.end = context.WithCancel(context.Background())
	return c
}

// Close ends the calls that are under way.
func (c *caller) Close() error {
	c.end()
	for range maxCalls { // each has given its slot back
		c.slots <- struct{}{}
	}
	return nil
}

// speak runs the program with the call's name behind its arguments and the request on its standard input. When it has
// ended, or its time is up, nothing of its process group is left.
func (c *caller) speak(ctx context.Context, call string, _ int64, request []byte) ([]byte, error) {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-c.ended.Done():
		return nil, errClosed
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.ended, cancel)()
	out, log := &bounded{most: maxReply}, &lineWriter{log: c.log}
	cmd := exec.CommandContext(ctx, c.command[0], append(c.command[1:len(c.command):len(c.command)], call)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(request), out, log
	inGroup(cmd)
	err := cmd.Run()
	if cmd.Process != nil {
		// Nothing of the group may go on behind a call that is over; what is meant to last has left it.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	log.flush()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case out.over:
		return nil, fmt.Errorf("the driver program wrote more than %d bytes", maxReply)
	case len(bytes.TrimSpace(out.kept)) > 0:
		return bytes.TrimSpace(out.kept), nil // an exit code says nothing beside a reply
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return nil, fmt.Errorf("the driver program exited without replying: %w%s", err, log.last())
	}
	return nil, fmt.Errorf("the driver program exited without replying%s", log.last())
}

// inGroup gives a program a process group of its own, which is told to end when its context is over, and not waited for
// longer than grace.
func inGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = grace
}

var errClosed = errors.New("the cloud has been closed")

// bounded keeps what is written to it, up to a limit. It has no method but Write, since whoever copies to it would use
// any other.
type bounded struct {
	kept []byte
	most int
	over bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if len(b.kept)+len(p) > b.most {
		b.over = true
		return 0, errors.New("too much")
	}
	b.kept = append(b.kept, p...)
	return len(p), nil
}
