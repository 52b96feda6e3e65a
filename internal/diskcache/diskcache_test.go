package diskcache

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// source answers with the number of times that it was asked.
type source struct {
	asked int
	err   error
	met   func() // called during each fetch; may be nil
}

func (s *source) fetch(context.Context) (int, error) {
	s.asked++
	if s.met != nil {
		s.met()
	}
	return s.asked, s.err
}

func want(t *testing.T, v *Value[int], want int) {
	t.Helper()
	if got, err := v.Get(t.Context()); got != want || err != nil {
		t.Errorf("got %d, %v; want %d", got, err, want)
	}
}

func TestValue(t *testing.T) {
	options := func(folder string) Options {
		return Options{Folder: folder, Name: "types", Key: "here", Age: time.Hour, Log: slog.New(slog.DiscardHandler)}
	}
	t.Run("is fetched once, until it is too old", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			v := New(options(t.TempDir()), new(source).fetch)
			want(t, v, 1)
			time.Sleep(time.Hour - time.Second)
			want(t, v, 1)
			time.Sleep(time.Second)
			want(t, v, 2)
		})
	})
	t.Run("stays in use if it cannot be fetched again, and is an error if it never was fetched", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &source{}
			v := New(options(t.TempDir()), s.fetch)
			want(t, v, 1)
			time.Sleep(2 * time.Hour)
			s.err = errors.New("not now")
			want(t, v, 1)
			if _, err := New(options(t.TempDir()), s.fetch).Get(t.Context()); !errors.Is(err, s.err) {
				t.Error(err)
			}
		})
	})
	t.Run("is not fetched again during the pause after a failure", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, o := &source{err: errors.New("not now")}, options(t.TempDir())
			o.Pause = time.Minute
			v := New(o, s.fetch)
			ctx, cancel := context.WithCancel(t.Context())
			s.met = cancel
			for _, ctx := range []context.Context{ctx, t.Context(), t.Context()} { // the first ends during the fetch
				if _, err := v.Get(ctx); err == nil {
					t.Error("got a value")
				}
			}
			if s.asked != 2 {
				t.Errorf("it was fetched %d times", s.asked)
			}
			s.err = nil
			time.Sleep(time.Minute)
			want(t, v, 3)
		})
	})
	t.Run("is read from the disk after a restart, without waiting for a fetch", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			o := options(t.TempDir())
			want(t, New(o, new(source).fetch), 1)
			time.Sleep(5 * time.Hour)
			s := &source{asked: 10}
			v := New(o, s.fetch)
			want(t, v, 1)
			want(t, v, 11)
		})
	})
	t.Run("is not read from a file that has another key or is damaged", func(t *testing.T) {
		o := options(t.TempDir())
		want(t, New(o, new(source).fetch), 1)
		other := o
		other.Key = "elsewhere"
		want(t, New(other, (&source{asked: 10}).fetch), 11)
		if err := os.WriteFile(o.Folder+"/types.json", []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		want(t, New(other, (&source{asked: 20}).fetch), 21)
	})
	t.Run("obeys the context while another call fetches", func(t *testing.T) {
		v := New(options(t.TempDir()), new(source).fetch)
		v.turn <- struct{}{}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := v.Get(ctx); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
