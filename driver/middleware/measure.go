package middleware

import (
	"context"
	"time"

	"drover/driver"
)

// Measure wraps a cloud and reports the duration and result of each call that reaches it. The function tell must not
// block.
func Measure(c driver.Cloud, tell func(call Method, took time.Duration, err error)) driver.Cloud {
	return Intercept(c, func(ctx context.Context, a Call, do func(context.Context) error) error {
		began := time.Now()
		err := do(ctx)
		tell(a.Method, time.Since(began), err)
		return err
	})
}
