package runner

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"drover"
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

func TestAContainerThatDoesNotStart(t *testing.T) {
	for _, test := range []struct {
		said, cause, text string
	}{
		{"exec /drover-runner: no such file or directory", drover.CauseNoStart, "CGO_ENABLED=0"},                                                // runc
		{"exec container process (missing dynamic library?) `/drover-runner`: No such file or directory", drover.CauseNoStart, "CGO_ENABLED=0"}, // crun
		{"/drover-runner: /lib/libc.so.6: version `GLIBC_2.34' not found (required by /drover-runner)", drover.CauseNoStart, "CGO_ENABLED=0"},
		{"runc: cannot create a cgroup: no such file or directory", drover.CauseLost, "starting the container: runc"},
		{"podman gave no reason", drover.CauseLost, "starting the container: podman"},
	} {
		if e := notStarted(startFailure(errors.New(test.said))); e.Cause != test.cause || !strings.Contains(e.Text, test.text) || !strings.Contains(e.Text, test.said) {
			t.Errorf("after %q: got %+v", test.said, e)
		}
	}
}
