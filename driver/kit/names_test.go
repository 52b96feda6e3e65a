package kit_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"drover/driver/drivertest"
	"drover/driver/kit"
)

func TestNames(t *testing.T) {
	hold := func(t *testing.T, names *kit.Names, name string) (release func()) {
		t.Helper()
		release, err := names.Hold(t.Context(), name)
		drivertest.Must(t, err)
		return release
	}
	t.Run("a name has one holder at a time, and other names are free", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var names kit.Names
			var done atomic.Int32
			release := hold(t, &names, "a")
			for range 9 {
				go func() {
					release := hold(t, &names, "a")
					time.Sleep(time.Second)
					done.Add(1)
					release()
				}()
			}
			hold(t, &names, "b")()
			for _, want := range []int32{0, 4, 9} {
				if synctest.Wait(); done.Load() != want {
					t.Errorf("%d callers held it in turn, want %d", done.Load(), want)
				}
				if want == 0 {
					release()
				}
				time.Sleep(4*time.Second + 500*time.Millisecond)
			}
		})
	})
	t.Run("a cancelled caller gets no name", func(t *testing.T) {
		var names kit.Names
		release := hold(t, &names, "a")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := names.Hold(ctx, "a"); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		release()
		hold(t, &names, "a")()
	})
}
