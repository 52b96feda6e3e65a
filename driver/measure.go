package driver

import (
	"context"
	"time"
)

// Measure wraps a cloud and tells of each call that reaches it how long it took and what came of it. Tell must not block.
func Measure(c Cloud, tell func(call Call, took time.Duration, err error)) Cloud {
	return Surround(c, func(ctx context.Context, a Asked, do func(context.Context) error) error {
		began := time.Now()
		err := do(ctx)
		tell(a.Call, time.Since(began), err)
		return err
	})
}
