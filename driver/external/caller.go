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

// The limits of a program.
const (
	maxReply = 16 << 20        // bytes; a list of ten thousand instances takes about seven million
	maxCalls = 16              // programs of one cloud that run at once
	grace    = 2 * time.Second // from SIGTERM to SIGKILL
	maxLine  = 1 << 10         // bytes of one line for the log
	maxLines = 100             // lines for the log in lineTime
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
	for range maxCalls { // wait until each call has released its slot
		c.slots <- struct{}{}
	}
	return nil
}

// speak runs the program with the call's name as its last argument and the request on its standard input. When the
// program has ended, or its time is up, nothing of its process group is left.
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
		// No process of the group may outlive the call; a process that is meant to last must leave the group.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	log.flush()
	failed := err != nil && !errors.Is(err, exec.ErrWaitDelay)
	reply := bytes.TrimSpace(out.kept)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case cmd.Process == nil:
		return nil, fmt.Errorf("start the driver program: %w", err)
	case out.over:
		return nil, fmt.Errorf("the driver program wrote more than %d bytes", maxReply)
	case failed && len(reply) == 0:
		return nil, fmt.Errorf("the driver program exited without replying: %w%s", err, log.last())
	case failed && !isError(reply): // it may be incomplete
		return nil, fmt.Errorf("the driver program replied, but then failed: %w%s", err, log.last())
	case len(reply) > 0:
		return reply, nil
	}
	return nil, fmt.Errorf("the driver program exited without replying%s", log.last())
}

// inGroup runs a program in its own process group. When its context ends, the group gets SIGTERM, and Wait returns
// after grace at the latest.
func inGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = grace
}

var errClosed = errors.New("the driver has been closed")

// bounded keeps what is written to it, up to a limit. It has only the method Write, since io.Copy would use any other.
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
