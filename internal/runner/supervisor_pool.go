package runner

import (
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"drover"
	"drover/internal/wire"
)

// maxSpares is how many supervisors wait for work at most.
const maxSpares = 8

// supervisorPool holds the idle supervisors. Closing a supervisor's socket ends it.
type supervisorPool struct {
	mu   sync.Mutex
	idle []*overseer // guarded by mu; the last used is last
}

// overseer is the daemon's end of a supervisor process.
type overseer struct {
	socket *os.File
	lines  *wire.Conn
}

// take returns an idle supervisor, or a new one if none is idle.
func (s *supervisorPool) take() (*overseer, error) {
	s.mu.Lock()
	if n := len(s.idle); n > 0 {
		o := s.idle[n-1]
		s.idle = s.idle[:n-1]
		s.mu.Unlock()
		return o, nil
	}
	s.mu.Unlock()
	return newOverseer()
}

// put returns a supervisor whose work is done to the pool.
func (s *supervisorPool) put(o *overseer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.idle) == maxSpares {
		o.socket.Close()
		return
	}
	s.idle = append(s.idle, o)
}

// trim ends all but one of the idle supervisors, the longest idle first.
func (s *supervisorPool) trim() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.idle) > 1 {
		s.idle[0].socket.Close()
		s.idle = s.idle[1:]
	}
}

// newOverseer starts a supervisor in its own session.
func newOverseer() (*overseer, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("connecting a supervisor: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "supervisor"), os.NewFile(uintptr(pair[1]), "daemon")
	defer theirs.Close()
	cmd := background(os.Stderr, theirs, "supervise")
	if err := cmd.Start(); err != nil {
		ours.Close()
		return nil, fmt.Errorf("starting a supervisor: %w", err)
	}
	go cmd.Wait() // only so that it leaves no zombie; its socket shows when it ends
	return &overseer{socket: ours, lines: wire.NewConn(ours, ours)}, nil
}

// carryOut gives the supervisor an order and waits until it is done. It calls started when the command runs. After an
// error the supervisor cannot be used again, and only the attempt's folder shows what became of the order.
func (o *overseer) carryOut(work order, started func()) (drover.Exit, error) {
	if err := o.lines.Write(work); err != nil {
		o.socket.Close()
		return drover.Exit{}, err
	}
	for {
		var r report
		if err := o.lines.Read(&r); err != nil {
			o.socket.Close()
			return drover.Exit{}, err
		}
		if r.Started {
			started()
		}
		if r.Exit != nil {
			return *r.Exit, nil
		}
	}
}
