package container

import (
	"context"
	"errors"
	"io"
	"log"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// store is a Runtime with nothing but images. Its pulls take a minute.
type store struct {
	mu    sync.Mutex
	have  map[string]bool
	pulls int
	ended error // why a pull was cancelled
	fail  error
}

func (s *store) Image(_ context.Context, ref string) (Image, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Image{Cmd: []string{ref}}, s.have[ref], nil
}

func (s *store) Pull(ctx context.Context, ref string) error {
	s.mu.Lock()
	s.pulls++
	s.mu.Unlock()
	select {
	case <-time.After(time.Minute):
	case <-ctx.Done():
		s.ended = context.Cause(ctx)
		return s.ended
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.have[ref] = s.fail == nil
	return s.fail
}

func (s *store) Name() string                                              { return "store" }
func (s *store) Probe(context.Context) (string, error)                     { return RootUser, nil }
func (s *store) Create(context.Context, Spec) error                        { return nil }
func (s *store) Start(string) (string, []string)                           { return "", nil }
func (s *store) Signal(context.Context, string, unix.Signal) error         { return nil }
func (s *store) State(context.Context, string) (State, error)              { return State{}, nil }
func (s *store) Remove(context.Context, string) error                      { return nil }
func (s *store) List(context.Context, map[string]string) ([]string, error) { return nil, nil }

// images returns an Images over an empty store.
func images() (*Images, *store) {
	s := &store{have: make(map[string]bool)}
	return NewImages(s, log.New(io.Discard, "", 0)), s
}

func TestImages(t *testing.T) {
	errStopped := errors.New("stopped")
	t.Run("concurrent callers share one pull, and later callers need none", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			i, s := images()
			var all sync.WaitGroup
			for range 10 {
				all.Go(func() {
					if image, err := i.Get(t.Context(), "a"); err != nil || image.Command()[0] != "a" {
						t.Errorf("got %v, %v", image, err)
					}
				})
			}
			all.Wait()
			if _, err := i.Get(t.Context(), "a"); err != nil || s.pulls != 1 {
				t.Errorf("%d pulls, %v", s.pulls, err)
			}
		})
	})
	t.Run("a failure is returned, and the next caller tries again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			i, s := images()
			s.fail = errors.New("no")
			var known *ImageError
			if _, err := i.Get(t.Context(), "a"); !errors.As(err, &known) || known.Why != Unreachable {
				t.Errorf("got %v", err)
			}
			s.fail = nil
			if _, err := i.Get(t.Context(), "a"); err != nil || s.pulls != 2 {
				t.Errorf("%d pulls, %v", s.pulls, err)
			}
		})
	})
	t.Run("a caller whose context ends returns at once, and the pull continues for the others", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			i, s := images()
			other := make(chan error)
			go func() { _, err := i.Get(t.Context(), "a"); other <- err }()
			ctx, stop := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { stop(errStopped) })
			began := time.Now()
			if _, err := i.Get(ctx, "a"); err != errStopped || time.Since(began) != time.Second {
				t.Errorf("got %v after %v", err, time.Since(began))
			}
			if err := <-other; err != nil || s.pulls != 1 {
				t.Errorf("%d pulls, %v", s.pulls, err)
			}
		})
	})
	t.Run("a pull that nobody waits for is cancelled, and does not spoil the next", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			i, s := images()
			ctx, stop := context.WithCancelCause(t.Context())
			stop(errStopped)
			if _, err := i.Get(ctx, "a"); err != errStopped {
				t.Errorf("got %v", err)
			}
			if _, err := i.Get(t.Context(), "a"); err != nil || s.pulls != 2 || s.ended != errStopped {
				t.Errorf("%d pulls; the first ended with %v; error: %v", s.pulls, s.ended, err)
			}
		})
	})
	t.Run("a pull that does not end is given up", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			i, s := images()
			i.runtime = &hanging{s}
			began := time.Now()
			var known *ImageError
			if _, err := i.Get(t.Context(), "a"); !errors.As(err, &known) || known.Final() || time.Since(began) != pullPatience {
				t.Errorf("got %v after %v", err, time.Since(began))
			}
		})
	})
}

// hanging is a store whose pulls never end.
type hanging struct{ *store }

func (h *hanging) Pull(ctx context.Context, _ string) error {
	<-ctx.Done()
	return context.Cause(ctx)
}
