package runner

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestAStartCalledOff(t *testing.T) {
	calledOff, cancel := context.WithCancel(context.Background())
	cancel()
	t.Run("succeeds if the first process reports a moment later that the command runs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := &contained{reports: make(chan report, 2), clientEnded: make(chan struct{})}
			go func() {
				time.Sleep(lastReportPatience / 2)
				c.reports <- report{Started: true}
			}()
			if r := c.firstReport(calledOff); !r.Started {
				t.Errorf("got %+v", r)
			}
		})
	})
	t.Run("fails if no report comes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := &contained{reports: make(chan report, 2), clientEnded: make(chan struct{})}
			if r := c.firstReport(calledOff); r != (report{}) {
				t.Errorf("got %+v", r)
			}
		})
	})
}
