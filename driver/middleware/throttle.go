package middleware

import (
	"context"
	"errors"
	"sync"
	"time"

	"drover"
	"drover/driver"
)

// How long calls of a kind are refused after a rate limit for which the cloud gives no time: the time doubles with each
// consecutive refusal. A time that the cloud gives is honoured up to an hour, since it might be arbitrary.
const (
	firstLull = time.Second
	mostLull  = time.Minute
	mostSaid  = time.Hour
)

// Throttle wraps a cloud so that, after a rate limit, it refuses calls of that kind until the time that the cloud
// named, with the same error and without a request. Each kind of call is independent. Nothing waits here.
func Throttle(c driver.Cloud) driver.Cloud {
	p := &throttle{lulls: map[Method]lull{}}
	return Intercept(c, func(ctx context.Context, a Call, do func(context.Context) error) error {
		began := time.Now()
		if err := p.refuse(a.Method, began); err != nil {
			return err
		}
		err := do(ctx)
		p.heard(a.Method, began, time.Now(), err)
		return err
	})
}

type throttle struct {
	mu    sync.Mutex
	lulls map[Method]lull // guarded by mu
}

// lull is a time in which no call of a kind is made.
type lull struct {
	began, until time.Time
	length       time.Duration // unless the cloud requests more
	why          string
}

// refuse returns an error during a lull.
func (p *throttle) refuse(call Method, now time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.lulls[call]
	if !now.Before(l.until) {
		return nil
	}
	return &drover.Error{Kind: drover.KindRateLimit, RetryAt: drover.TimeOf(l.until), Message: l.why}
}

// heard learns from a result. Concurrent calls that are refused together count once.
func (p *throttle) heard(call Method, began, now time.Time, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l, known := p.lulls[call]
	later := !known || began.After(l.began)
	var e *drover.Error
	switch {
	case errors.As(err, &e) && e.Kind == drover.KindRateLimit:
		if later {
			l.began, l.length = now, min(mostLull, max(firstLull, 2*l.length))
		}
		l.why = err.Error()
		for _, until := range []time.Time{l.began.Add(l.length), said(e.RetryAt, now)} {
			if until.After(l.until) {
				l.until = until
			}
		}
		p.lulls[call] = l
	case later && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded):
		delete(p.lulls, call)
	}
}

// said returns the time that a cloud named, at most an hour ahead.
func said(at drover.Time, now time.Time) time.Time {
	if most := now.Add(mostSaid); at.Std().After(most) {
		return most
	}
	return at.Std()
}
