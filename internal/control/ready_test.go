package control

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"drover/internal/engine"
)

func TestReady(t *testing.T) {
	t.Parallel()
	ready := func(c *Controller) error {
		c.ready.asked = time.Time{} // no earlier answer
		return c.Ready(t.Context())
	}
	f := newFixture(t)
	c, stop := f.begin()
	t.Run("ready while it runs", func(t *testing.T) {
		if err := ready(c); err != nil {
			t.Error(err)
		}
	})
	t.Run("not ready if its loop does not answer", func(t *testing.T) {
		hold, held := make(chan struct{}), make(chan struct{})
		go func() { _ = c.Query(t.Context(), func(*engine.Engine) { close(held); <-hold }) }()
		<-held
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := c.tryReady(ctx); err == nil {
			t.Error("it reports that it is ready")
		}
		close(hold)
	})
	t.Run("not ready if its records cannot be written", func(t *testing.T) {
		f.store.Close()
		if err := ready(c); err == nil {
			t.Error("it reports that it is ready")
		}
	})
	_ = stop()
	t.Run("not ready once it has ended", func(t *testing.T) {
		if err := ready(c); err == nil {
			t.Error("it reports that it is ready")
		}
	})
}

func TestReadinessIsReusedForASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Controller{queries: make(chan query), ended: make(chan struct{})}
		c.ready.asked = time.Now()
		if err := c.Ready(t.Context()); err != nil {
			t.Errorf("asked again within the second: %v", err)
		}
		time.Sleep(readyFor + 1)
		began := time.Now()
		if err := c.Ready(t.Context()); err == nil || time.Since(began) != readyTime {
			t.Errorf("without a loop: %v after %v", err, time.Since(began))
		}
	})
}
