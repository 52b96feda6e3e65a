package kit_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"drover/driver/kit"
)

func TestCache(t *testing.T) {
	t.Run("concurrent callers share one search", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var known kit.Cache[int]
			found := 0
			var all sync.WaitGroup
			for range 10 {
				all.Go(func() {
					got, err := known.Get(t.Context(), "a", func() (int, error) {
						found++
						time.Sleep(time.Second)
						return found, nil
					})
					if got != 1 || err != nil {
						t.Errorf("%d, %v", got, err)
					}
				})
			}
			all.Wait()
		})
	})
	t.Run("a failure is not cached", func(t *testing.T) {
		var known kit.Cache[int]
		no := errors.New("no")
		if _, err := known.Get(t.Context(), "a", func() (int, error) { return 7, no }); err != no {
			t.Error(err)
		}
		if got, err := known.Get(t.Context(), "a", func() (int, error) { return 8, nil }); got != 8 || err != nil {
			t.Errorf("%d, %v", got, err)
		}
	})
	t.Run("a learnt value needs no search until it is forgotten", func(t *testing.T) {
		var known kit.Cache[int]
		find := func() (int, error) { return 2, nil }
		for _, step := range []struct {
			do   func()
			want int
		}{{func() { known.Learn("a", 1) }, 1}, {func() { known.Forget("b") }, 1}, {func() { known.Forget("a") }, 2},
			{func() { known.Learn("a", 1) }, 1}, {func() { known.Forget() }, 2}} {
			step.do()
			if got, err := known.Get(t.Context(), "a", find); got != step.want || err != nil {
				t.Errorf("%d, %v, want %d", got, err, step.want)
			}
		}
	})
	t.Run("a cancelled caller does not wait", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var known kit.Cache[int]
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			go known.Get(t.Context(), "a", func() (int, error) { time.Sleep(time.Minute); return 1, nil })
			defer time.Sleep(time.Hour)
			synctest.Wait()
			if _, err := known.Get(ctx, "a", func() (int, error) { return 2, nil }); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
	})
}

func TestRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r kit.Remembered
		if r.Has("a") {
			t.Error("an id that was never added is remembered")
		}
		r.Add("a")
		for range 3 {
			time.Sleep(2*time.Hour - time.Second)
			if !r.Has("a") || r.Has("b") {
				t.Error("a queried id is forgotten, or every id is remembered")
			}
		}
		time.Sleep(2 * time.Hour)
		if r.Has("a") {
			t.Error("an id that nobody queries is not forgotten")
		}
	})
}
