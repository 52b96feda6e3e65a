package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"drover"
	"drover/driver"
	"drover/driver/middleware"
)

// busy is a cloud that takes a second to refuse calls with a given error, and counts them.
type busy struct {
	driver.Cloud
	mu    sync.Mutex
	err   error // guarded by mu
	calls int   // guarded by mu
}

func (b *busy) Destroy(context.Context, string) error {
	time.Sleep(time.Second)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls++
	return b.err
}

func (b *busy) SetTags(context.Context, string, map[string]string) error { return nil }

func (b *busy) say(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
}

func tooMany(until time.Time) error {
	e := &drover.Error{Kind: drover.KindRateLimit, Message: "too many"}
	if !until.IsZero() {
		e.RetryAt = drover.TimeOf(until)
	}
	return fmt.Errorf("destroy: %w", e)
}

// covers D17
func TestThrottle(t *testing.T) {
	// lull expects that a call is refused without reaching the cloud, and returns for how much longer.
	lull := func(t *testing.T, c driver.Cloud, b *busy) time.Duration {
		t.Helper()
		before := b.calls
		err := c.Destroy(t.Context(), "i")
		e := drover.AsError(err, "")
		if err == nil || e.Kind != drover.KindRateLimit || b.calls != before {
			t.Fatalf("got %v after %d calls, want a refusal without one", err, b.calls-before)
		}
		return time.Until(e.RetryAt.Std())
	}
	begin := func(t *testing.T, f func(t *testing.T, c driver.Cloud, b *busy)) {
		synctest.Test(t, func(t *testing.T) {
			b := &busy{}
			f(t, middleware.Throttle(b), b)
		})
	}
	t.Run("calls are refused until the time that the cloud named", func(t *testing.T) {
		begin(t, func(t *testing.T, c driver.Cloud, b *busy) {
			b.say(tooMany(time.Now().Add(31 * time.Second)))
			c.Destroy(t.Context(), "i")
			if got := lull(t, c, b); got != 30*time.Second {
				t.Errorf("refused for %v", got)
			}
			if err := c.SetTags(t.Context(), "i", nil); err != nil {
				t.Errorf("another kind of call: %v", err)
			}
			b.say(nil)
			time.Sleep(30 * time.Second)
			if err := c.Destroy(t.Context(), "i"); err != nil {
				t.Errorf("at the named time: %v", err)
			}
		})
	})
	t.Run("without a time, the lull doubles with each refusal and a success resets it", func(t *testing.T) {
		begin(t, func(t *testing.T, c driver.Cloud, b *busy) {
			for _, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
				b.say(tooMany(time.Time{}))
				c.Destroy(t.Context(), "i")
				got := lull(t, c, b)
				if got != want*time.Second {
					t.Errorf("refused for %v, want %d seconds", got, want)
				}
				time.Sleep(got)
			}
			b.say(nil)
			c.Destroy(t.Context(), "i")
			b.say(tooMany(time.Time{}))
			c.Destroy(t.Context(), "i")
			if got := lull(t, c, b); got != time.Second {
				t.Errorf("refused for %v", got)
			}
		})
	})
	t.Run("concurrent refusals count once", func(t *testing.T) {
		begin(t, func(t *testing.T, c driver.Cloud, b *busy) {
			b.say(tooMany(time.Time{}))
			var all sync.WaitGroup
			for range 10 {
				all.Go(func() { c.Destroy(t.Context(), "i") })
			}
			all.Wait()
			if got := lull(t, c, b); b.calls != 10 || got != time.Second {
				t.Errorf("%d calls, refused for %v", b.calls, got)
			}
		})
	})
	t.Run("a time a year ahead is cut to an hour", func(t *testing.T) {
		begin(t, func(t *testing.T, c driver.Cloud, b *busy) {
			b.say(tooMany(time.Now().AddDate(1, 0, 0)))
			c.Destroy(t.Context(), "i")
			if got := lull(t, c, b); got != time.Hour {
				t.Errorf("refused for %v", got)
			}
		})
	})
	t.Run("a cancelled call changes nothing", func(t *testing.T) {
		begin(t, func(t *testing.T, c driver.Cloud, b *busy) {
			for _, err := range []error{tooMany(time.Time{}), context.Canceled, tooMany(time.Time{})} {
				b.say(err)
				c.Destroy(t.Context(), "i")
				time.Sleep(time.Second)
			}
			if err := c.Destroy(t.Context(), "i"); drover.KindOf(err) != drover.KindRateLimit || b.calls != 3 || errors.Is(err, context.Canceled) {
				t.Errorf("got %v after %d calls", err, b.calls)
			}
		})
	})
}
