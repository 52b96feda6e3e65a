package middleware

import (
	"context"
	"time"

	"drover"
	"drover/driver"
)

// How often WithRetry makes a call in all, and how long it waits before the second time, twice as long before each
// further one. A cloud that says when it wants to be asked again is heeded up to a minute.
const (
	mostTries  = 5
	firstPause = 500 * time.Millisecond
	mostPause  = time.Minute
)

// WithRetry wraps a cloud for a command that asks once and ends, where no engine plans the next try. A call that
// failed for a passing reason (a transient error, a rate limit, an unreachable cloud) is repeated, five times in all,
// with growing pauses of seven and a half seconds together unless the cloud names a time. A create is not repeated,
// since the first call may have taken effect.
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

// untilSaid is how long the cloud asks to wait, 0 if it does not say.
func untilSaid(err error) time.Duration {
	at := drover.AsError(err, drover.KindInternal).RetryAt
	if at == 0 {
		return 0
	}
	return time.Until(at.Std())
}
