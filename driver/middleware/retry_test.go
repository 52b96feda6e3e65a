package middleware_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"drover"
	"drover/driver"
	"drover/driver/middleware"
)

// moody is a cloud whose calls fail until a time.
type moody struct {
	able
	until time.Time
	kind  drover.ErrorKind
	says  bool // it names a time to call again
}

func (m *moody) fails(call string) error {
	m.note(call)
	if !time.Now().Before(m.until) {
		return nil
	}
	e := drover.Errorf(m.kind, "not now")
	if m.says {
		e.RetryAt = drover.TimeOf(m.until)
	}
	return e
}

func (m *moody) Destroy(context.Context, string) error { return m.fails("destroy") }
func (m *moody) Create(context.Context, driver.CreateRequest) (driver.Instance, driver.Candidate, error) {
	return driver.Instance{}, driver.Candidate{}, m.fails("create")
}

func TestWithRetry(t *testing.T) {
	for name, c := range map[string]struct {
		kind  drover.ErrorKind
		fails time.Duration
		says  bool
		tries int
		ok    bool
	}{
		"retries until a short failure ends":       {drover.KindTransient, 3 * time.Second, false, 4, true},
		"gives up after five attempts":             {drover.KindUnreachable, time.Minute, false, 5, false},
		"waits for the time that the cloud names":  {drover.KindRateLimit, 50 * time.Second, true, 2, true},
		"does not wait for a time an hour ahead":   {drover.KindRateLimit, time.Hour, true, 1, false},
		"makes one attempt at a permanent failure": {drover.KindForbidden, time.Second, false, 1, false},
		"makes a successful call once":             {drover.KindTransient, 0, false, 1, true},
		"ignores a time in the past":               {drover.KindTransient, -time.Second, true, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &moody{until: time.Now().Add(c.fails), kind: c.kind, says: c.says}
				err := middleware.WithRetry(m).Destroy(t.Context(), "i")
				if (err == nil) != c.ok || len(m.met) != c.tries {
					t.Errorf("got %v after %d tries", err, len(m.met))
				}
			})
		})
	}
	t.Run("does not repeat a create, which may have taken effect", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := &moody{until: time.Now().Add(time.Second), kind: drover.KindTransient}
			if _, _, err := middleware.WithRetry(m).Create(t.Context(), driver.CreateRequest{}); err == nil || len(m.met) != 1 {
				t.Errorf("got %v after %d tries", err, len(m.met))
			}
		})
	})
	t.Run("stops waiting when the context ends", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
			defer cancel()
			m := &moody{until: time.Now().Add(time.Hour), kind: drover.KindTransient}
			began := time.Now()
			if err := middleware.WithRetry(m).Destroy(ctx, "i"); drover.KindOf(err) != drover.KindTransient || time.Since(began) != 700*time.Millisecond {
				t.Errorf("got %v after %v", err, time.Since(began))
			}
		})
	})
}
