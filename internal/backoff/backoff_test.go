package backoff

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestFor(t *testing.T) {
	t.Run("waits for as long as it is told", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			if err := For(t.Context(), time.Hour); err != nil || time.Since(began) != time.Hour {
				t.Errorf("waited %v: %v", time.Since(began), err)
			}
		})
	})
	t.Run("waits no longer than is wanted", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			began := time.Now()
			if err := For(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
				t.Errorf("waited %v: %v", time.Since(began), err)
			}
		})
	})
}
