package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drover/internal/engine"
	"drover/internal/engine/pool"
)

// TestForesee predicts what changed settings do to a pool of 30 in three zones.
// covers P6 P10
func TestForesee(t *testing.T) {
	e, settings := adoptPool(t, 30, 0)
	for _, test := range []struct {
		name   string
		change func(*engine.Settings)
		want   string
	}{
		{"the same settings do nothing", func(*engine.Settings) {}, ""},
		{"a smaller count destroys in the fullest zones", func(s *engine.Settings) { s.Pools[0].Count = 28 }, "destroy 1 web c/b: pool web needs only 28 instances; destroy 1 web c/c: pool web needs only 28 instances"},
		{"a larger count creates in the emptiest zones", func(s *engine.Settings) { s.Pools[0].Count = 32 }, "create 1 web c/a; create 1 web c/b"},
		{"a new template replaces all, one at a time", func(s *engine.Settings) { s.Pools[0].Template = "new" },
			"destroy 1 web c/c: pool web has a new template; replace 10 web c/a: pool web has a new template; replace 10 web c/b: pool web has a new template; " +
				"replace 9 web c/c: pool web has a new template; create 1 web c/a; create 1 web c/c"},
		{"a removed zone drains in steps", func(s *engine.Settings) { s.Pools[0].Zones = []string{"a", "b"} },
			"destroy 1 web c/c: its zone no longer belongs to pool web; replace 9 web c/c: its zone no longer belongs to pool web; create 5 web c/a; create 5 web c/b"},
		{"a removed pool goes at once", func(s *engine.Settings) { s.Pools = nil },
			"destroy 10 web c/a: pool web is no longer configured; destroy 10 web c/b: pool web is no longer configured; destroy 10 web c/c: pool web is no longer configured"},
		{"instances beyond the cloud's limit wait", func(s *engine.Settings) { s.Pools[0].Count, s.Clouds[0].MaxInstances = 40, 31 },
			"create 1 web c/a; wait 9 web /: 9 instances missing; c/a, c/b, c/c: cloud c is at its max_instances of 31"},
	} {
		t.Run(test.name, func(t *testing.T) {
			foresees(t, e, settings, test.change, test.want)
		})
	}
}

// covers D2 P6
func TestForeseeStopped(t *testing.T) {
	e, settings := adoptPool(t, 2, 2)
	for _, test := range []struct {
		name   string
		change func(*engine.Settings)
		want   string
	}{
		{"the same settings do nothing", func(*engine.Settings) {}, ""},
		{"a larger count starts a stopped instance and creates another to be stopped", func(s *engine.Settings) { s.Pools[0].Count = 3 },
			"start 1 web c/c: pool web has too few instances; create 1 web c/a"},
		{"a smaller count and a larger reserve stop one", func(s *engine.Settings) { s.Pools[0].Count, s.Pools[0].Stopped = 1, 3 },
			"stop 1 web c/b: pool web keeps it stopped"},
		{"a smaller reserve destroys stopped instances", func(s *engine.Settings) { s.Pools[0].Stopped = 0 },
			"destroy 1 web c/a: pool web keeps 0 instances stopped; destroy 1 web c/c: pool web keeps 0 instances stopped"},
	} {
		t.Run(test.name, func(t *testing.T) { foresees(t, e, settings, test.change, test.want) })
	}
}

// foresees checks what Foresee predicts for changed settings, and that the engine does not change.
func foresees(t *testing.T, e *engine.Engine, settings engine.Settings, change func(*engine.Settings), want string) {
	t.Helper()
	before := e.State()
	next := settings
	next.Pools, next.Clouds = []pool.Spec{settings.Pools[0]}, slices.Clone(settings.Clouds)
	change(&next)
	fates, err := engine.Foresee(e.State(), engine.Configured{Settings: next})
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, f := range fates {
		text := fmt.Sprintf("%s %d %s %s/%s", f.Kind, f.Count, f.Pool, f.Cloud, f.Zone)
		if f.Reason != nil {
			text += ": " + f.Reason.Text
		}
		said = append(said, text)
	}
	if diff := cmp.Diff(want, strings.Join(said, "; ")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(before, e.State()); diff != "" {
		t.Errorf("the engine has changed: %s", diff)
	}
}
