package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"drover"
	"drover/internal/wire"
)

// pool lends a limited number of bulk channels at once, and keeps reusable ones for a while.
type pool struct {
	conn  *Conn
	slots chan struct{} // has an element for each channel lent

	mu   sync.Mutex
	free []*bulk // the last used is last; guarded by mu
}

// lease is a bulk channel lent for one operation. It is closed when the operation's context ends.
type lease struct {
	*bulk
	pool   *pool
	ctx    context.Context // of the operation that this is a part of
	unhook func() bool
	once   sync.Once
}

// ask lends a channel and sends a request on it. If the runner refuses the request, the channel is closed.
func (p *pool) ask(ctx context.Context, r wire.Request) (*lease, wire.Reply, error) {
	l, err := p.lend(ctx)
	if err != nil {
		return nil, wire.Reply{}, err
	}
	if err = l.lines.Write(r); err == nil {
		var reply wire.Reply
		if reply, err = l.reply(); err == nil {
			return l, reply, nil
		}
	}
	err = l.cause(err)
	// After a refusal the runner may hang up, and does so if the operation is a channel's last.
	l.end(false)
	return nil, wire.Reply{}, err
}

func (p *pool) lend(ctx context.Context) (*lease, error) {
	select {
	case p.slots <- struct{}{}:
	case <-p.conn.closed:
		return nil, p.conn.broken(net.ErrClosed)
	case <-ctx.Done():
		return nil, transient("waiting for a bulk channel", context.Cause(ctx))
	}
	b, err := p.take(ctx)
	if err != nil {
		<-p.slots
		return nil, err
	}
	l := &lease{bulk: b, pool: p, ctx: ctx}
	l.unhook = context.AfterFunc(ctx, l.hangUp)
	return l, nil
}

// take returns a free channel that is still open, or a new one.
func (p *pool) take(ctx context.Context) (*bulk, error) {
	for {
		b := p.pop()
		if b == nil {
			return p.conn.openBulk(ctx)
		}
		if b.stands() {
			return b, nil
		}
		b.Close()
	}
}

// pop removes and returns the free channel used last; nil if there is none.
func (p *pool) pop() *bulk {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) == 0 {
		return nil
	}
	b := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	b.expiry.Stop()
	return b
}

// push keeps a channel for the next operation, and closes it if none comes.
func (p *pool) push(b *bulk) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, b)
	b.expiry = time.AfterFunc(p.conn.times.Idle, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if i := slices.Index(p.free, b); i >= 0 {
			p.free = slices.Delete(p.free, i, i+1)
			b.Close()
		}
	})
}

// end gives the channel back to the pool. If it is whole, it is reused: nothing more of the operation will come on it.
func (l *lease) end(whole bool) {
	// If the context has ended, its callback hangs up too, now or in a moment.
	if !l.unhook() || !whole {
		l.hangUp()
		return
	}
	l.once.Do(func() {
		l.pool.push(l.bulk)
		<-l.pool.slots
	})
}

// hangUp closes the channel, unless it was given back. The slot becomes free once the instance has closed it too.
func (l *lease) hangUp() {
	l.once.Do(func() {
		// The error does not matter: the operation has failed or is over.
		_ = l.Close()
		go func() {
			l.pool.conn.end(l.proc)
			<-l.pool.slots
		}()
	})
}

// end closes a command's channel and waits until the instance closes it too. If the instance does not, the connection
// ends, since unclosed channels would accumulate.
func (c *Conn) end(p *process) {
	// A goroutine that still writes to it is woken only when it ends. It may already be closed.
	_ = p.Close()
	timer := time.NewTimer(c.times.Command)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-c.closed:
	case <-timer.C:
		c.close(drover.Errorf(drover.KindUnreachable, "the instance did not close a channel within %v", c.times.Command))
	}
}

// cause returns why the operation failed with err. It leaves the runner's own errors unchanged.
func (l *lease) cause(err error) error {
	var said *drover.Error
	switch {
	case errors.As(err, &said):
		return err
	case l.ctx.Err() != nil:
		return transient("during a bulk transfer", context.Cause(l.ctx))
	case errors.Is(err, os.ErrDeadlineExceeded):
		return drover.Errorf(drover.KindTransient, "a bulk transfer made no progress for %v", l.pool.conn.times.Stall)
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe):
		return l.pool.conn.broken(fmt.Errorf("the bulk channel ended%s", afterColon(l.proc.stderr.lastLines())))
	default:
		return transient("during a bulk transfer", err)
	}
}

// openBulk opens a bulk channel. If the instance's SSH server accepts no more, it closes unused channels and retries,
// since others may end too.
func (c *Conn) openBulk(ctx context.Context) (*bulk, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.times.Command, errors.New("no response in time"))
	defer cancel()
	var full *ssh.OpenChannelError // the last refusal
	for {
		p, err := launch(ctx, c.session.conn, c.session.target.runnerShell(bulkScript, c.session.target.place()...))
		if err == nil {
			return newBulk(p, c.times.Stall), nil
		}
		late := full != nil && ctx.Err() != nil // the time ended during a retry
		if !errors.As(err, &full) && !late {
			return nil, c.broken(fmt.Errorf("opening a bulk channel: %w", err))
		}
		if late || !c.makeRoom(ctx) {
			return nil, drover.Errorf(drover.KindTransient, "the instance's SSH server accepts no more channels: %s", printable(full.Message)).
				WithHint("set MaxSessions 10 in its sshd_config")
		}
	}
}

// roomInterval is the pause before a retry at a server without room for a channel.
const roomInterval = 50 * time.Millisecond

// makeRoom closes the unused bulk channels and gives others a moment to end. It reports false if no time is left.
func (c *Conn) makeRoom(ctx context.Context) bool {
	for _, p := range []*pool{c.transfers, c.apis} {
		for b := p.pop(); b != nil; b = p.pop() {
			b.Close()
		}
	}
	select {
	case <-time.After(roomInterval):
		return true
	case <-ctx.Done():
	case <-c.closed:
	}
	return false
}
