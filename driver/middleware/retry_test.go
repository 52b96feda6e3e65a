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
	says  bool // it reports when to call again
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
		"what passes is waited for":                        {drover.KindTransient, 3 * time.Second, false, 4, true},
		"what does not pass within seconds is an error":    {drover.KindUnreachable, time.Minute, false, 5, false},
		"a cloud that says when is asked then":             {drover.KindRateLimit, 50 * time.Second, true, 2, true},
		"a cloud that says much later is not waited for":   {drover.KindRateLimit, time.Hour, true, 1, false},
		"what will be no better later is asked for once":   {drover.KindForbidden, time.Second, false, 1, false},
		"a call that succeeds is made once":                {drover.KindTransient, 0, false, 1, true},
		"a time that has passed is as good as none at all": {drover.KindTransient, -time.Second, true, 1, true},
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
	t.Run("a create is made once, since it may have happened", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := &moody{until: time.Now().Add(time.Second), kind: drover.KindTransient}
			if _, _, err := middleware.WithRetry(m).Create(t.Context(), driver.CreateRequest{}); err == nil || len(m.met) != 1 {
				t.Errorf("got %v after %d tries", err, len(m.met))
			}
		})
	})
	t.Run("nothing is waited for by a command that is to end", func(t *testing.T) {
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
