package kit

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync/atomic"
	"time"
)

// Gate passes a driver's calls to its cloud: it keeps them within the rates and counts each one.
type Gate struct {
	Limiter *RateLimiter                 // nil: there are no limits
	Metric  func(call string, err error) // as in Options
}

// Pass makes a call, unless its context has ended or one of its rates is used up.
func (g Gate) Pass(ctx context.Context, call string, do func() error, rates ...string) error {
	if err := g.take(ctx, rates); err != nil {
		return err
	}
	err := do()
	g.count(call, err)
	return err
}

// Send is Pass for an HTTP request, whose status is its result.
func (g Gate) Send(r *http.Request, next http.RoundTripper, call string, rates ...string) (*http.Response, error) {
	if err := g.take(r.Context(), rates); err != nil {
		if r.Body != nil {
			r.Body.Close() // a RoundTripper must close the body even if it does not send the request
		}
		return nil, err
	}
	answer, err := next.RoundTrip(r)
	result := err
	if err == nil && answer.StatusCode >= http.StatusBadRequest {
		result = errors.New(answer.Status)
	}
	g.count(call, result)
	return answer, err
}

func (g Gate) take(ctx context.Context, rates []string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if p, has := ctx.Value(prepaid{}).(*prepaid); has && slices.Contains(rates, p.rate) && p.left.Add(-1) >= 0 {
		rates = slices.DeleteFunc(slices.Clone(rates), func(rate string) bool { return rate == p.rate })
	}
	return g.Limiter.Take(time.Now(), 1, rates...)
}

// prepaid holds calls that were reserved before the first of them is made; it is also the context's key.
type prepaid struct {
	rate string
	left atomic.Int32
}

// Prepay reserves n calls of a rate, or none; calls with the returned context use the reservation. Otherwise concurrent
// actions that need several calls could each spend the rate on their first call and never reach the last.
func (g Gate) Prepay(ctx context.Context, rate string, n int) (context.Context, error) {
	n = g.Limiter.atMost(rate, n)
	if err := g.Limiter.Take(time.Now(), n, rate); err != nil {
		return ctx, err
	}
	p := &prepaid{rate: rate}
	p.left.Store(int32(n))
	return context.WithValue(ctx, prepaid{}, p), nil
}

func (g Gate) count(call string, err error) {
	if g.Metric != nil {
		g.Metric(call, err)
	}
}
