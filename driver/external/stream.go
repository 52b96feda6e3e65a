package external

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// pause is the minimum time between two starts of the program, so that one which cannot start costs little.
const pause = time.Second

// stream is a program that keeps running: requests go to its standard input, and replies come in any order from its
// standard output. The first call starts it, and the next call restarts it if it has ended. When it ends, the calls
// under way fail. It is ended if it hangs: a call timed out, and the program answered no other since then.
type stream struct {
	command []string
	log     func(line string)

	mu      sync.Mutex
	now     *session  // nil: none was started; guarded by mu
	started time.Time // when the last one was started; guarded by mu
	closed  bool      // guarded by mu
}

func newStream(command []string, log func(string)) *stream {
	return &stream{command: command, log: log}
}

// speak sends a request and waits for the reply with its id.
func (s *stream) speak(ctx context.Context, _ string, id int64, request []byte) ([]byte, error) {
	se, err := s.session()
	if err != nil {
		return nil, err
	}
	answer, before := se.expect(id)
	defer se.forget(id)
	requests := se.requests
	for {
		select {
		case requests <- request:
			requests = nil // sent
		case line := <-answer:
			return line, nil
		case <-se.ended:
			return nil, se.why()
		case <-ctx.Done():
			if context.Cause(ctx) == errTimeout && se.repliesSoFar() == before {
				se.fail(errTimeout)
				go se.close()
			}
			return nil, ctx.Err()
		}
	}
}

// errTimeout is why a call ends that takes longer than the configured timeout.
var errTimeout = errors.New("the driver program did not answer a call in time")

// session returns the running program. It starts one if there is none.
func (s *stream) session() (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now != nil && !s.now.over() {
		return s.now, nil
	}
	switch {
	case s.closed:
		return nil, errClosed
	case time.Since(s.started) < pause && s.now != nil:
		return nil, s.now.why()
	}
	s.started = time.Now()
	se, err := begin(s.command, s.log)
	if err != nil {
		return nil, fmt.Errorf("start the driver program: %w", err)
	}
	s.now = se
	return se, nil
}

// Close ends the program by closing its input, and by signals if that is not enough.
func (s *stream) Close() error {
	s.mu.Lock()
	se := s.now
	s.closed = true
	s.mu.Unlock()
	if se != nil {
		se.close()
	}
	return nil
}

// session is one run of the program.
type session struct {
	cmd      *exec.Cmd
	in       io.WriteCloser
	log      *lineWriter
	requests chan []byte
	ended    chan struct{} // closed when the program has ended and nothing is left of it

	mu      sync.Mutex
	err     error                 // why it ended; guarded by mu
	waiting map[int64]chan []byte // guarded by mu
	replies int                   // how many it has sent; guarded by mu
}

func begin(command []string, log func(string)) (*session, error) {
	se := &session{
		cmd: exec.Command(command[0], append(command[1:len(command):len(command)], "stream")...), log: &lineWriter{log: log},
		requests: make(chan []byte), ended: make(chan struct{}), waiting: map[int64]chan []byte{},
	}
	se.cmd.Stdout, se.cmd.Stderr = &replies{se: se}, se.log
	se.cmd.WaitDelay = grace // for processes that inherited its output and outlive it
	se.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := se.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	se.in = in
	if err := se.cmd.Start(); err != nil {
		return nil, err
	}
	go se.send()
	go se.run()
	return se, nil
}

// send writes requests one after another, so that a caller whose context ends does not keep waiting for a program that
// does not read.
func (se *session) send() {
	for {
		select {
		case line := <-se.requests:
			if _, err := se.in.Write(line); err != nil {
				se.fail(fmt.Errorf("write to the driver program: %w", err))
				se.signal(syscall.SIGKILL)
				return
			}
		case <-se.ended:
			return
		}
	}
}

// run waits for the program's end and then kills the rest of its process group.
func (se *session) run() {
	err := se.cmd.Wait()
	se.signal(syscall.SIGKILL)
	se.log.flush()
	if err == nil || errors.Is(err, exec.ErrWaitDelay) {
		err = errors.New("exit status 0")
	}
	se.fail(fmt.Errorf("the driver program exited: %w%s", err, se.log.last()))
	close(se.ended)
}

// replies receives the program's standard output, and delivers each line.
type replies struct {
	se   *session
	line []byte // the current line so far
}

// Write ends the program at the first line that violates the protocol: after that, Drover cannot tell which calls will
// never be answered.
func (r *replies) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		r.line = append(r.line, line...)
		var err error
		switch {
		case len(r.line) > maxReply:
			err = fmt.Errorf("the driver program wrote a line of more than %d bytes", maxReply)
		case whole && len(bytes.TrimSpace(r.line)) > 0:
			err = r.se.deliver(r.line)
		}
		if err != nil {
			r.se.fail(err)
			r.se.signal(syscall.SIGKILL)
			return 0, err
		}
		if whole {
			r.line = r.line[:0]
		}
		rest = after
	}
	return len(p), nil
}

// deliver passes a reply to the call that waits for it. It drops a reply for which no call waits, and returns an error
// for one that names no request.
func (se *session) deliver(line []byte) error {
	var to struct {
		ID *int64 `json:"id"`
	}
	if err := json.Unmarshal(line, &to); err != nil || to.ID == nil {
		return unclear("this line is not a reply to a request: %s", printable(string(line), 100))
	}
	se.mu.Lock()
	defer se.mu.Unlock()
	se.replies++
	if answer, ok := se.waiting[*to.ID]; ok {
		delete(se.waiting, *to.ID)
		answer <- append([]byte(nil), line...)
	}
	return nil
}

// expect returns the channel of the reply to a request, and how many replies the program has sent so far.
func (se *session) expect(id int64) (reply <-chan []byte, replies int) {
	se.mu.Lock()
	defer se.mu.Unlock()
	answer := make(chan []byte, 1)
	se.waiting[id] = answer
	return answer, se.replies
}

func (se *session) repliesSoFar() int {
	se.mu.Lock()
	defer se.mu.Unlock()
	return se.replies
}

func (se *session) forget(id int64) {
	se.mu.Lock()
	defer se.mu.Unlock()
	delete(se.waiting, id)
}

// fail records why the program ends; the first reason stays.
func (se *session) fail(err error) {
	se.mu.Lock()
	defer se.mu.Unlock()
	if se.err == nil {
		se.err = err
	}
}

func (se *session) why() error {
	se.mu.Lock()
	defer se.mu.Unlock()
	return se.err
}

func (se *session) over() bool {
	select {
	case <-se.ended:
		return true
	default:
		return false
	}
}

func (se *session) signal(sig syscall.Signal) { _ = syscall.Kill(-se.cmd.Process.Pid, sig) }

// close ends the program: first by the end of its input, then by SIGTERM, then by SIGKILL.
func (se *session) close() {
	se.fail(errClosed)
	se.in.Close()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		select {
		case <-se.ended:
			return
		case <-time.After(grace):
			se.signal(sig)
		}
	}
	<-se.ended
}
