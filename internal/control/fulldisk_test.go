package control

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"drover"
	"drover/internal/engine"
	"drover/internal/loop"
	"drover/internal/store"
)

// fullFixture returns a controller that does not run, and its loop. The test supplies the commits.
func fullFixture(t *testing.T) (*Controller, *loop.Loop) {
	f := newFixture(t)
	c := must(New(t.Context(), f.cfg))(t)
	return c, must(c.newLoop())(t)
}

// covers D9
func TestACommitWaitsForRoom(t *testing.T) {
	c, l := fullFixture(t)
	synctest.Test(t, func(t *testing.T) {
		c.queries, c.peeks, c.ended = make(chan query), make(chan query), make(chan struct{})
		var tries atomic.Int32
		var full atomic.Bool
		full.Store(true)
		done := make(chan error)
		go func() {
			done <- c.commitWhenRoom(t.Context(), l, func() error {
				tries.Add(1)
				if full.Load() {
					return fmt.Errorf("writing: %w", store.ErrFull)
				}
				return nil
			})
		}()
		synctest.Wait()
		if err := c.Query(t.Context(), func(*engine.Engine) {}); err != nil {
			t.Errorf("a query failed while the disk was full: %v", err)
		}
		if c.suspended() == nil || !errors.Is(c.Ready(t.Context()), store.ErrFull) {
			t.Error("it does not report the full disk")
		}
		if list := must(c.Explain(t.Context(), ""))(t); list[0].Reasons[0].Code != drover.ReasonDiskFull {
			t.Errorf("the fleet is explained as %+v", list[0])
		}
		if _, err := c.Submit(t.Context(), drover.Submission{}); !errors.Is(err, store.ErrFull) {
			t.Errorf("a submission returns %v", err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := tries.Load(); n < 5 || n > 60 {
			t.Errorf("tried %d times in a minute", n)
		}
		full.Store(false)
		time.Sleep(lastTry)
		if err := <-done; err != nil || c.suspended() != nil {
			t.Errorf("with room again: %v, %v", err, c.suspended())
		}
	})
}

func TestAPeekDoesNotWaitForACommit(t *testing.T) {
	c, l := fullFixture(t)
	synctest.Test(t, func(t *testing.T) {
		c.queries, c.peeks, c.ended = make(chan query), make(chan query), make(chan struct{})
		disk, committed := make(chan struct{}), make(chan error)
		go func() {
			committed <- c.commitWhenRoom(t.Context(), l, func() error { <-disk; return nil })
		}()
		if err := c.Peek(t.Context(), func(*engine.Engine) {}); err != nil {
			t.Error(err)
		}
		brief, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Query(brief, func(*engine.Engine) {}); err == nil {
			t.Error("a query saw a decision that was not committed")
		}
		close(disk)
		if err := <-committed; err != nil {
			t.Error(err)
		}
	})
}

func TestWaitingForRoomEndsWithTheController(t *testing.T) {
	c, l := fullFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.commitWhenRoom(ctx, l, func() error { return store.ErrFull }); !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
}
