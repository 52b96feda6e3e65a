package remote

import (
	"bufio"
	"io"
	"net"
	"sync/atomic"
	"time"

	"drover"
	"drover/internal/wire"
)

// bulk is a bulk channel. Reads and writes that make no progress fail, and Close wakes both. An SSH channel alone
// offers neither, so two goroutines copy its bytes to and from a pipe that does.
type bulk struct {
	pipe  net.Conn
	in    *bufio.Reader
	lines *wire.Conn
	began bool         // the login shell's noise has been read
	stall atomic.Int64 // how long one read or write may take, as a time.Duration; 0: no limit
	proc  *process
	dead  chan struct{} // closed once nothing more comes in

	expiry *time.Timer // closes a free channel; guarded by its pool
}

func newBulk(p *process, stall time.Duration) *bulk {
	ours, theirs := net.Pipe()
	b := &bulk{pipe: ours, proc: p, dead: make(chan struct{})}
	b.stall.Store(int64(stall))
	b.in = bufio.NewReaderSize(incoming{b}, 4096) // large enough for wire.NewConn to use this buffer itself
	b.lines = wire.NewConn(b.in, b)
	go func() {
		io.Copy(p, theirs) // ends with either; the bulk channel's user sees that
		p.Close()
	}()
	go func() {
		io.Copy(theirs, p)
		theirs.Close()
		close(b.dead)
	}()
	return b
}

// incoming reads what is not yet buffered.
type incoming struct{ *bulk }

func (b incoming) Read(p []byte) (int, error) {
	if err := b.pipe.SetReadDeadline(b.deadline()); err != nil {
		return 0, err
	}
	return b.pipe.Read(p)
}

func (b *bulk) deadline() time.Time {
	stall := time.Duration(b.stall.Load())
	if stall == 0 {
		return time.Time{}
	}
	return time.Now().Add(stall)
}

// Read reads what follows a reply.
func (b *bulk) Read(p []byte) (int, error) { return b.lines.Bytes().Read(p) }

// Write sends what follows a request.
func (b *bulk) Write(p []byte) (int, error) {
	if err := b.pipe.SetWriteDeadline(b.deadline()); err != nil {
		return 0, err
	}
	return b.pipe.Write(p)
}

// Close hangs up.
func (b *bulk) Close() error { return b.pipe.Close() }

// reply reads the runner's answer to the request.
func (b *bulk) reply() (wire.Reply, error) {
	var r wire.Reply
	if !b.began {
		if _, err := readVerdict(b.in); err != nil {
			return r, err
		}
		b.began = true
	}
	if err := b.lines.Read(&r); err != nil {
		return r, err
	}
	if r.Error != "" {
		return r, drover.Errorf(drover.KindNotFound, "the runner says: %s", printable(r.Error))
	}
	return r, nil
}

// stands reports whether the channel is still open.
func (b *bulk) stands() bool {
	select {
	case <-b.dead:
		return false
	default:
		return true
	}
}
