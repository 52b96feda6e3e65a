package remote

import (
	"context"
	"fmt"
	"io"
	"slices"

	"golang.org/x/sync/errgroup"

	"drover"
	"drover/internal/wire"
)

// maxRounds bounds how often a runner may report missing contents for one Start: blobs may be evicted once, but not
// repeatedly.
const maxRounds = 4

// Content opens a blob by its hash and returns its size.
type Content func(hash string) (io.ReadCloser, int64, error)

// Start has the runner start an attempt, sends it the missing blobs, and returns nil once the runner has confirmed the
// start. It also returns nil if the attempt had already started.
//
// After a transient error it is unknown whether the attempt was started. KindInvalid means that the runner refused the
// attempt permanently, KindConflict that it refused it only under this number and on this instance. Any other kind is
// from open, and means that the attempt was not started.
func (c *Conn) Start(ctx context.Context, s wire.Start, open Content) error {
	s.Apart = c.session.target.Apart
	answers, err := c.await(s.ID)
	if err != nil {
		return err
	}
	defer c.forgetWait(s.ID)
	for range maxRounds {
		if err := c.send(wire.Message{Start: &s}); err != nil {
			return err
		}
		m, err := c.nextAnswer(ctx, answers)
		switch {
		case err != nil:
			return err
		case m.Started != nil:
			return nil
		case m.Refused != nil:
			kind := drover.KindInvalid
			if m.Refused.NotHere {
				kind = drover.KindConflict
			}
			return drover.Errorf(kind, "the runner refused attempt %v: %s", s.ID, printable(m.Refused.Text))
		}
		if err := c.provide(ctx, s, m.Missing.Hashes, open); err != nil {
			return err
		}
	}
	return drover.Errorf(drover.KindTransient, "starting attempt %v: its inputs are no longer on the instance", s.ID)
}

// await registers this goroutine for the answers about an attempt.
func (c *Conn) await(id drover.AttemptID) (<-chan wire.Message, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting[id] != nil {
		return nil, drover.Errorf(drover.KindTransient, "attempt %v is already being started", id)
	}
	answers := make(chan wire.Message, maxRounds)
	c.waiting[id] = answers
	return answers, nil
}

func (c *Conn) forgetWait(id drover.AttemptID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, id)
}

// answer passes an answer to the Start that waits for it. It drops answers that nothing waits for.
func (c *Conn) answer(id drover.AttemptID, m wire.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case c.waiting[id] <- m:
	default:
	}
}

func (c *Conn) nextAnswer(ctx context.Context, answers <-chan wire.Message) (wire.Message, error) {
	select {
	case m := <-answers:
		return m, nil
	case <-c.closed:
		return wire.Message{}, c.broken(c.why)
	case <-ctx.Done():
		return wire.Message{}, transient("waiting for the runner", context.Cause(ctx))
	}
}

// provide sends contents to the instance, several at a time, each once. It sends nothing that is not an input of the
// attempt.
func (c *Conn) provide(ctx context.Context, s wire.Start, hashes []string, open Content) error {
	hashes = slices.Compact(slices.Sorted(slices.Values(hashes)))
	for _, hash := range hashes {
		if !slices.ContainsFunc(s.Files, func(f drover.File) bool { return f.Hash == hash }) {
			return drover.Errorf(drover.KindTransient, "the runner asks for %s, which is not an input of attempt %v", printable(hash), s.ID)
		}
	}
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(maxTransfers)
	for _, hash := range hashes {
		work.Go(func() error { return c.put(ctx, hash, open) })
	}
	return work.Wait()
}

// upload is a blob that is being sent.
type upload struct {
	done chan struct{}
	err  error // set before done is closed
}

// put sends a blob to the instance, or waits for a call that is already sending it. If that call fails, put tries
// itself.
func (c *Conn) put(ctx context.Context, hash string, open Content) error {
	for {
		c.mu.Lock()
		other := c.uploads[hash]
		if other == nil {
			own := &upload{done: make(chan struct{})}
			c.uploads[hash] = own
			c.mu.Unlock()
			own.err = c.putBlob(ctx, hash, open)
			c.mu.Lock()
			delete(c.uploads, hash)
			c.mu.Unlock()
			close(own.done)
			return own.err
		}
		c.mu.Unlock()
		select {
		case <-other.done:
			if other.err == nil {
				return nil
			}
		case <-ctx.Done():
			return transient("waiting for an input to be sent", context.Cause(ctx))
		}
	}
}

// putBlob sends one blob on a bulk channel.
func (c *Conn) putBlob(ctx context.Context, hash string, open Content) error {
	if ctx.Err() != nil {
		return transient("sending an input", context.Cause(ctx))
	}
	content, size, err := open(hash)
	if err != nil {
		return drover.AsError(fmt.Errorf("opening input %s: %w", hash, err), drover.KindTransient)
	}
	defer content.Close()
	l, _, err := c.transfers.ask(ctx, wire.Request{Op: wire.PutBlob, Hash: hash, Size: size})
	if err != nil {
		return transient("sending an input", err)
	}
	if _, err = io.CopyN(l, content, size); err == nil {
		_, err = l.reply()
	}
	if err != nil {
		err = transient("sending an input", l.cause(err))
	}
	l.end(err == nil)
	return err
}
