package kit

import (
	"context"
	"net/http"
	"time"
)

// Gate is what a driver's calls to its cloud go through: none is beyond a rate, and each that is made is counted.
type Gate struct {
	Limiter *RateLimiter                 // nil: there are no limits
	Metric  func(call string, err error) // as in Options
}

// Pass makes a call, unless its context has ended or one of the rates that it counts under is used up.
func (g Gate) Pass(ctx context.Context, call string, do func() error, rates ...string) error {
	if err := g.take(ctx, rates); err != nil {
		return err
	}
	err := do()
	g.count(call, err)
	return err
}

// Send does what Pass does with a call that is a request of HTTP. It is counted as its status says.
func (g Gate) Send(r *http.Request, next http.RoundTripper, call string, rates ...string) (*http.Response, error) {
	if err := g.take(r.Context(), rates); err != nil {
		if r.Body != nil {
			r.Body.Close() // as whoever is given a request has to, also if it is not sent
		}
		return nil, err
	}
	answer, err := next.RoundTrip(r)
	g.count(call, Answered(answer, err))
	return answer, err
}

func (g Gate) take(ctx context.Context, rates []string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return g.Limiter.TakeAll(rates, time.Now())
}

func (g Gate) count(call string, err error) {
	if g.Metric != nil {
		g.Metric(call, err)
	}
}
