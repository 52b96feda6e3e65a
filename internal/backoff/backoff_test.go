package backoff

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestFor(t *testing.T) {
	t.Run("waits for the given time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			if err := For(t.Context(), time.Hour); err != nil || time.Since(began) != time.Hour {
				t.Errorf("waited %v: %v", time.Since(began), err)
			}
		})
	})
	t.Run("ends with its context", func(t *testing.T) {
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

func TestEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond)
		defer cancel()
		began, calls := time.Now(), []time.Duration{}
		Every(ctx, time.Second, func() { calls = append(calls, time.Since(began)) })
		if want := []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}; !slices.Equal(calls, want) {
			t.Errorf("called after %v, want %v", calls, want)
		}
	})
}

func TestTries(t *testing.T) {
	t.Run("begin at once, and then become ever slower", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			for try := range Tries(t.Context(), time.Second, 4*time.Second) {
				if want := []time.Duration{0, 1, 3, 7, 11, 15}[try-1] * time.Second; time.Since(began) != want {
					t.Errorf("try %d came after %v, want %v", try, time.Since(began), want)
				}
				if try == 6 {
					break
				}
			}
		})
	})
	t.Run("end with their context, after at least one", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			tries := 0
			for range Tries(ctx, time.Second, time.Second*4) {
				tries++
			}
			if cancel(); tries != 2 {
				t.Errorf("%d tries in two seconds", tries)
			}
			for range Tries(ctx, time.Second, time.Second) {
				tries++
			}
			if tries != 3 {
				t.Errorf("%d tries after the context's end", tries-2)
			}
		})
	})
}
