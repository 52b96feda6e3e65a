package middleware

import (
	"context"
	"time"

	"drover/driver"
)

// Measure wraps a cloud and tells of each call that reaches it how long it took and what came of it. Tell must not block.
func Measure(c driver.Cloud, tell func(call Method, took time.Duration, err error)) driver.Cloud {
	return Intercept(c, func(ctx context.Context, a Call, do func(context.Context) error) error {
		began := time.Now()
		err := do(ctx)
		tell(a.Method, time.Since(began), err)
		return err
	})
}
