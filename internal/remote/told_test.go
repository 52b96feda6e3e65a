package remote

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/internal/wire"
)

func TestWhatARunnerReports(t *testing.T) {
	connect := func(t *testing.T, f *fakeRunner) (*Conn, events) {
		_, target := fake(t, f)
		c, err := Connect(testContext(t), target)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		told := newEvents()
		go c.Run(testContext(t), told)
		return c, told
	}
	deadline := drover.Time(1_000_000_007)

	t.Run("the Hello's notice and ailment are safe to show", func(t *testing.T) {
		c, _ := connect(t, &fakeRunner{hello: func(h wire.Hello) *wire.Hello {
			h.Notice = &wire.Notice{Notice: drover.Notice{Cause: "spot\x1b[2J", Deadline: deadline}}
			h.Ailing = &wire.Ailing{Text: "no\ndisk"}
			return &h
		}})
		if diff := cmp.Diff(&drover.Notice{Cause: "spot [2J", Deadline: deadline}, c.Notice()); diff != "" || c.Ailing() != "no disk" {
			t.Errorf("ailing %q, notice (-want +got)\n%s", c.Ailing(), diff)
		}
	})
	t.Run("a Hello without them has neither", func(t *testing.T) {
		c, _ := connect(t, &fakeRunner{})
		if c.Notice() != nil || c.Ailing() != "" {
			t.Errorf("%v, %q", c.Notice(), c.Ailing())
		}
	})
	t.Run("they are also passed on as they happen", func(t *testing.T) {
		f := &fakeRunner{}
		_, told := connect(t, f)
		for _, m := range []wire.Message{
			{Notice: &wire.Notice{Notice: drover.Notice{Cause: strings.Repeat("x", 1000), Deadline: -5}}},
			{Ailing: &wire.Ailing{Text: "no disk"}},
			{Ailing: &wire.Ailing{}},
		} {
			if err := f.control().Write(m); err != nil {
				t.Fatal(err)
			}
		}
		if n := <-told.notices; len(n.Cause) > 600 || n.Deadline != 0 {
			t.Errorf("%v", n)
		}
		if first, second := <-told.ails, <-told.ails; first != "no disk" || second != "" {
			t.Errorf("%q, then %q", first, second)
		}
	})
	t.Run("exits are bounded and safe to show, in the Hello and afterwards", func(t *testing.T) {
		foul := drover.Exit{Code: 1, Signal: "kill\x1b[2J", Cause: "lost\n", Text: "no\x1b]0;\a" + strings.Repeat("x", 5000), Stdout: strings.Repeat("o", 9000)}
		clean := drover.Exit{Code: 1, Signal: "kill [2J", Cause: "lost", Text: "no ]0;" + " " + strings.Repeat("x", 1017), Stdout: strings.Repeat("o", drover.TailBytes)}
		f := &fakeRunner{hello: func(h wire.Hello) *wire.Hello {
			h.Attempts = []wire.Attempt{{ID: attempt(1), Exit: &foul}, {ID: attempt(2)}}
			return &h
		}}
		c, told := connect(t, f)
		if diff := cmp.Diff([]wire.Attempt{{ID: attempt(1), Exit: &clean}, {ID: attempt(2)}}, c.Hello().Attempts); diff != "" {
			t.Errorf("in the Hello (-want +got)\n%s", diff)
		}
		if err := f.control().Write(wire.Message{Exited: &wire.Exited{ID: attempt(2), Exit: foul}}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(wire.Exited{ID: attempt(2), Exit: clean}, <-told.exits); diff != "" {
			t.Errorf("afterwards (-want +got)\n%s", diff)
		}
	})
	t.Run("impossible figures are cut to plausible ones", func(t *testing.T) {
		const day = 24 * time.Hour
		for name, c := range map[string]struct{ says, want drover.Exit }{
			"plausible":    {drover.Exit{Started: 1, Ended: 1 + drover.Time(day), CPU: 8 * day, MaxRSS: drover.GiB}, drover.Exit{Started: 1, Ended: 1 + drover.Time(day), CPU: 8 * day, MaxRSS: drover.GiB}},
			"negative":     {drover.Exit{Started: -5, Ended: -7, CPU: -1, MaxRSS: -1, StdoutLen: -1, StderrLen: -1}, drover.Exit{}},
			"too much":     {drover.Exit{Ended: math.MaxInt64, CPU: math.MaxInt64, MaxRSS: math.MaxInt64}, drover.Exit{Ended: math.MaxInt64, CPU: mostCPU, MaxRSS: mostMemory}},
			"in no time":   {drover.Exit{Started: 5, Ended: 5, CPU: time.Hour}, drover.Exit{Started: 5, Ended: 5}},
			"on many CPUs": {drover.Exit{Started: 5, Ended: 6, CPU: time.Hour}, drover.Exit{Started: 5, Ended: 6, CPU: mostCPUs}},
			"backwards":    {drover.Exit{Started: 7, Ended: 5, CPU: 1}, drover.Exit{Started: 7, Ended: 7}},
		} {
			if diff := cmp.Diff(c.want, harmlessExit(c.says)); diff != "" {
				t.Errorf("%s (-want +got)\n%s", name, diff)
			}
		}
	})
	t.Run("orders reach the runner", func(t *testing.T) {
		got := make(chan wire.Orders, 1)
		c, _ := connect(t, &fakeRunner{message: func(m wire.Message, _ *wire.Conn) {
			if m.Orders != nil {
				got <- *m.Orders
			}
		}})
		want := wire.Orders{Orphan: 3, Notices: "ec2", Health: "true"}
		if err := c.Order(want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, <-got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}
