package runner_test

import (
	"testing"

	"drover"
	"drover/internal/wire"
)

func TestAttempt(t *testing.T) {
	c := newInstance(t).connect()
	for n, test := range []struct {
		name, script string
		want         drover.Exit
	}{
		{"a command that succeeds", "echo out; echo err >&2", drover.Exit{Stdout: "out\n", Stderr: "err\n", StdoutLen: 4, StderrLen: 4}},
		{"an exit code is passed on", "exit 3", drover.Exit{Code: 3}},
		{"a signal is passed on as shells do", "kill -9 $$", drover.Exit{Code: 137, Signal: "killed"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			id := attempt(int64(n+1), 1)
			c.start(sh(id, test.script))
			c.started(id)
			e := c.exited(id)
			if e.Started == 0 || e.Ended < e.Started || e.CPU <= 0 || e.MaxRSS < drover.MiB/4 {
				t.Errorf("times or usage are missing from %+v", e)
			}
			e.Started, e.Ended, e.CPU, e.MaxRSS = 0, 0, 0, 0
			if e != test.want {
				t.Errorf("got %+v, want %+v", e, test.want)
			}
		})
	}
}

// BenchmarkAttempt runs one empty job after another. It measures each from its Start to its Exited, and the CPU time of
// everything on the instance, including the job's own.
func BenchmarkAttempt(b *testing.B) {
	i := newInstance(b)
	c := i.connect()
	n, before := int64(0), i.cpu()
	for b.Loop() {
		n++
		id := attempt(n, 1)
		c.start(start{ID: id, Command: []string{"true"}})
		c.exited(id)
		c.send(wire.Message{Forget: &wire.Forget{ID: id}})
	}
	b.ReportMetric(float64((i.cpu()-before).Microseconds())/1000/float64(n), "cpu-ms/op")
}
