package middleware_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/driver"
	"drover/driver/middleware"
)

func TestInject(t *testing.T) {
	only := func(call middleware.Method, of middleware.Trouble) middleware.Faults {
		return middleware.Faults{Calls: map[middleware.Method]middleware.Trouble{call: of}}
	}
	t.Run("a call fails with each configured error in turn and has no effect", func(t *testing.T) {
		a := &able{}
		one, two := errors.New("one"), drover.Errorf(drover.KindCapacity, "two")
		c := middleware.Inject(a, only(middleware.MethodDestroy, middleware.Trouble{Fail: 1, Errors: []error{one, two}}))
		for _, want := range []error{one, two, one} {
			if err := c.Destroy(t.Context(), "i"); err != want {
				t.Errorf("got %v, want %v", err, want)
			}
		}
		if len(a.met) > 0 {
			t.Errorf("reached %q", a.met)
		}
	})
	t.Run("a call takes effect although its answer is lost", func(t *testing.T) {
		a := &able{}
		c := middleware.Inject(a, only(middleware.MethodCreate, middleware.Trouble{Lose: 1}))
		if _, _, err := c.Create(t.Context(), driver.CreateRequest{Name: "x"}); drover.KindOf(err) != drover.KindTransient || !slices.Equal(a.met, []string{"create x"}) {
			t.Errorf("got %v, reached %q", err, a.met)
		}
	})
	t.Run("a create makes two instances", func(t *testing.T) {
		a := &able{}
		c := middleware.Inject(a, only(middleware.MethodCreate, middleware.Trouble{Double: 1}))
		if in, _, err := c.Create(t.Context(), driver.CreateRequest{Name: "x"}); err != nil || in.ID != "x" || !slices.Equal(a.met, []string{"create x", "create x-twin"}) {
			t.Errorf("got %v, %v, reached %q", in, err, a.met)
		}
	})
	t.Run("the same seed gives the same faults", func(t *testing.T) {
		lots := func(seed uint64) (fates []bool) {
			f := only(middleware.MethodList, middleware.Trouble{Fail: 0.5})
			f.Seed = seed
			c := middleware.Inject(&able{}, f)
			for range 64 {
				_, err := c.List(t.Context(), nil)
				fates = append(fates, err != nil)
			}
			return fates
		}
		if first, again, other := lots(1), lots(1), lots(2); !cmp.Equal(first, again) || cmp.Equal(first, other) {
			t.Error("the same seed gave other faults, or another seed the same")
		}
	})
	t.Run("the capabilities include the injected list lag", func(t *testing.T) {
		for want, f := range map[time.Duration]middleware.Faults{
			driver.DefaultListLag: {Unlisted: time.Second}, time.Minute: {Unlisted: time.Minute}, time.Hour: {Unlisted: time.Minute, Lingers: time.Hour},
		} {
			if lag := middleware.Inject(&able{}, f).Capabilities().Lag(); lag != want {
				t.Errorf("%+v: got %v, want %v", f, lag, want)
			}
		}
	})
	t.Run("an instance is listed late, and for a while after its end", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &sloppy{}
			c := middleware.Inject(s, middleware.Faults{Unlisted: time.Minute, Lingers: time.Hour})
			want := func(when string, n int) {
				t.Helper()
				all, err := c.List(t.Context(), nil)
				if met := slices.CompactFunc(all, func(a, b driver.Instance) bool { return a.ID == b.ID }); err != nil || len(met) != n {
					t.Errorf("%s %d are listed, want %d: %v", when, len(met), n, err)
				}
			}
			c.Create(t.Context(), driver.CreateRequest{Name: "x"})
			s.instances = []driver.Instance{of("new", "ours", "p")}
			want("at once", 0)
			time.Sleep(time.Minute)
			want("a minute later", 1)
			c.Destroy(t.Context(), "new")
			s.instances = nil
			time.Sleep(time.Hour)
			want("an hour after its end", 1)
			time.Sleep(time.Nanosecond)
			want("and then", 0)
		})
	})
}
