package kit

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

var errWrong = errors.New("one of the ids is unknown")

func bulk(call func(ctx context.Context, ids []string) error) *Bulk {
	return &Bulk{Most: 1000, Call: call, Alone: func(err error) bool { return errors.Is(err, errWrong) }}
}

func TestBulk(t *testing.T) {
	t.Run("requests made during a call share the next call", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var sizes []int
			e := bulk(func(_ context.Context, ids []string) error {
				sizes = append(sizes, len(ids))
				time.Sleep(time.Second)
				return nil
			})
			for range 1500 {
				go func() {
					if err := e.Do(t.Context(), "i"); err != nil {
						t.Error(err)
					}
				}()
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if total := sizes[0] + sizes[1]; len(sizes) > 3 || total > 1500 {
				t.Errorf("calls for %v", sizes)
			}
		})
	})
	t.Run("one bad id does not fail the others' requests", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ended := map[string]bool{}
			e := bulk(func(_ context.Context, ids []string) error {
				time.Sleep(time.Second)
				for _, id := range ids {
					if id == "bad" {
						return errWrong
					}
				}
				for _, id := range ids {
					ended[id] = true
				}
				return nil
			})
			results := map[string]chan error{}
			for _, id := range []string{"first", "bad", "good"} {
				results[id] = make(chan error, 1)
				go func() { results[id] <- e.Do(t.Context(), id) }()
				synctest.Wait()
			}
			began := time.Now()
			for i, id := range []string{"first", "bad", "good"} { // "first" alone, then both others together, then one by one
				if err := <-results[id]; (err != nil) != (id == "bad") {
					t.Errorf("%s: %v", id, err)
				}
				if took := time.Since(began); took != []time.Duration{1, 3, 4}[i]*time.Second {
					t.Errorf("%s was answered after %v", id, took)
				}
			}
			if !ended["first"] || !ended["good"] {
				t.Errorf("ended: %v", ended)
			}
		})
	})
	t.Run("a cancelled request does not fail the others", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := bulk(func(ctx context.Context, _ []string) error {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(time.Second):
					return nil
				}
			})
			ctx, cancel := context.WithCancel(t.Context())
			impatient, patient := make(chan error, 1), make(chan error, 1)
			go func() { _ = e.Do(t.Context(), "busy") }()
			synctest.Wait()
			go func() { impatient <- e.Do(ctx, "a") }()
			synctest.Wait()
			go func() { patient <- e.Do(t.Context(), "b") }()
			time.Sleep(1500 * time.Millisecond)
			cancel()
			if err := <-impatient; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			if err := <-patient; err != nil {
				t.Error(err)
			}
		})
	})
}
