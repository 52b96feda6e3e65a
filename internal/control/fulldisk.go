package control

import (
	"context"
	"errors"
	"syscall"
	"time"

	"drover"
	"drover/internal/engine"
	"drover/internal/loop"
	"drover/internal/store"
)

// A commit that finds the disk full is retried after firstTry, then less and less often, but at least every lastTry.
const (
	firstTry = 200 * time.Millisecond
	lastTry  = 5 * time.Second
)

// commitWhenRoom commits, and while the disk is full it waits and repeats the same writes, since a failed commit
// leaves nothing in the records. The engine has already decided; queries are answered meanwhile. No effect leaves,
// no submission is accepted, and events queue up.
func (c *Controller) commitWhenRoom(ctx context.Context, l *loop.Loop, try func() error) error {
	err := c.answerDuring(l, try)
	if !errors.Is(err, store.ErrFull) {
		return err
	}
	c.note(engine.Note{Level: engine.Warn, Text: "the controller makes no decisions and accepts nothing new until there is free disk space: " + err.Error()})
	c.full.Store(&drover.Reason{Code: drover.ReasonDiskFull, Text: err.Error(), Since: c.clock.now()})
	defer c.full.Store(nil)
	for wait := firstTry; errors.Is(err, store.ErrFull); wait = min(2*wait, lastTry) {
		if err := c.answerFor(ctx, l, wait); err != nil {
			return err
		}
		err = c.answerDuring(l, try)
	}
	if err == nil {
		c.note(engine.Note{Level: engine.Info, Text: "the disk that holds the records has free space again"})
	}
	return err
}

// answerDuring tries to commit, and answers peeks meanwhile.
func (c *Controller) answerDuring(l *loop.Loop, try func() error) error {
	done := make(chan error, 1)
	go func() { done <- try() }()
	for {
		select {
		case err := <-done:
			return err
		case q := <-c.peeks:
			q.answer(l.Engine)
		}
	}
}

// answerFor answers queries for a while.
func (c *Controller) answerFor(ctx context.Context, l *loop.Loop, while time.Duration) error {
	timer := time.NewTimer(while)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case q := <-c.queries:
			q.answer(l.Engine)
		case q := <-c.peeks:
			q.answer(l.Engine)
		case <-timer.C:
			return nil
		}
	}
}

// IsFull reports whether an error means that a disk is full.
func IsFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// orFull turns err into a full-disk error for the sender of data that does not fit.
func orFull(err error) error {
	if IsFull(err) {
		return drover.Errorf(drover.KindTransient, "the controller's disk is full: %v", err).WithHint("try again when it has free space")
	}
	return err
}

func (q query) answer(e *engine.Engine) {
	q.ask(e)
	close(q.done)
}

// suspended returns why the controller can change nothing now; nil if it can, as far as is known.
func (c *Controller) suspended() *drover.Reason {
	if why := c.full.Load(); why != nil {
		return why
	}
	c.ready.mu.Lock()
	defer c.ready.mu.Unlock()
	if errors.Is(c.ready.err, store.ErrFull) && time.Since(c.ready.asked) < readyFor {
		return &drover.Reason{Code: drover.ReasonDiskFull, Text: c.ready.err.Error()}
	}
	return nil
}
