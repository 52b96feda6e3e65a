package remote

import (
	"context"
	"io"
	"sync"
	"time"

	"drover"
)

// step is one step of a Connect.
type step struct {
	doing string           // what we are doing, the beginning of an error's text
	kind  drover.ErrorKind // of an error without a kind of its own
	limit time.Duration    // after which the connection is closed; 0: none
}

// fail makes err an error of the step.
func (s step) fail(err error) error {
	e := *drover.AsError(err, s.kind)
	e.Message = s.doing + ": " + e.Message
	return &e
}

// deadlines closes a connection when a step has taken too long or the context has ended. That wakes every goroutine
// that waits for the other side.
type deadlines struct {
	conn   io.Closer
	unhook func() bool

	mu    sync.Mutex
	step  step
	timer *time.Timer
	ended bool
	over  error // why the connection was closed; guarded, like the rest, by mu
}

// newDeadlines begins the first step.
func newDeadlines(ctx context.Context, conn io.Closer, first step) *deadlines {
	d := &deadlines{conn: conn}
	d.begin(first)
	d.unhook = context.AfterFunc(ctx, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.closeLocked(drover.Errorf(drover.KindTransient, "%s: %v", d.step.doing, context.Cause(ctx)))
	})
	return d
}

// begin ends the present step and begins another.
func (d *deadlines) begin(s step) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
	}
	if d.step = s; s.limit == 0 {
		return
	}
	d.timer = time.AfterFunc(s.limit, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.step == s {
			d.closeLocked(drover.Errorf(s.kind, "%s: no answer within %v", s.doing, s.limit))
		}
	})
}

func (d *deadlines) closeLocked(why error) {
	if d.ended || d.over != nil {
		return
	}
	d.over = why
	d.conn.Close()
}

// fail makes err an error of the present step, unless the connection was closed before: then that is the reason.
func (d *deadlines) fail(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over != nil {
		return d.over
	}
	return d.step.fail(err)
}

// end stops watching the connection. It returns why the connection was closed, if it was.
func (d *deadlines) end() error {
	d.unhook()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.timer.Stop()
	d.ended = true
	return d.over
}
