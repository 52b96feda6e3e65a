package middleware

import (
	"context"
	"time"

	"drover"
	"drover/driver"
)

// How many times WithRetry makes a call in total, and its first pause, which doubles each time. It honours a retry time
// that the cloud names, up to a minute ahead.
const (
	mostTries  = 5
	firstPause = 500 * time.Millisecond
	mostPause  = time.Minute
)

// WithRetry wraps a cloud for a command that runs once, where no engine plans retries. It repeats a call that failed
// for a passing reason (a transient error, a rate limit, an unreachable cloud). It makes at most five attempts, with
// growing pauses of seven and a half seconds in total unless the cloud names a time. It does not repeat a create, since
// the first call may have taken effect.
func WithRetry(c driver.Cloud) driver.Cloud {
	return Intercept(c, func(ctx context.Context, a Call, do func(context.Context) error) error {
		pause := firstPause
		for try := 1; ; try++ {
			err := do(ctx)
			if err == nil || a.Method == MethodCreate || try == mostTries || !passes(err) {
				return err
			}
			select {
			case <-ctx.Done():
				return err
			case <-time.After(max(pause, untilSaid(err))):
			}
			pause *= 2
		}
	})
}

// passes reports whether the same call may succeed a little later.
func passes(err error) bool {
	switch drover.KindOf(err) {
	case drover.KindTransient, drover.KindRateLimit, drover.KindUnreachable:
		return untilSaid(err) <= mostPause
	}
	return false
}

// untilSaid returns the wait that the cloud requests, 0 if it requests none.
func untilSaid(err error) time.Duration {
	at := drover.AsError(err, drover.KindInternal).RetryAt
	if at == 0 {
		return 0
	}
	return time.Until(at.Std())
}
