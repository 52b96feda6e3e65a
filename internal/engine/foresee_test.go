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

// TestForesee says what other settings would do to a pool of 30 in three zones, and what they do.
// covers P6 P10
func TestForesee(t *testing.T) {
	e, settings := adoptPool(t, 30, 0)
	for _, test := range []struct {
		name   string
		change func(*engine.Settings)
		want   string
	}{
		{"the same settings do nothing", func(*engine.Settings) {}, ""},
		{"fewer destroys, from the fullest zones", func(s *engine.Settings) { s.Pools[0].Count = 28 }, "destroy 1 web c/b: pool web needs only 28 instances; destroy 1 web c/c: pool web needs only 28 instances"},
		{"more creates, in the emptiest zones", func(s *engine.Settings) { s.Pools[0].Count = 32 }, "create 1 web c/a; create 1 web c/b"},
		{"another template replaces all, one at a time", func(s *engine.Settings) { s.Pools[0].Template = "new" },
			"destroy 1 web c/c: pool web has a new template; replace 10 web c/a: pool web has a new template; replace 10 web c/b: pool web has a new template; " +
				"replace 9 web c/c: pool web has a new template; create 1 web c/a; create 1 web c/c"},
		{"a zone that is taken out drains, in steps", func(s *engine.Settings) { s.Pools[0].Zones = []string{"a", "b"} },
			"destroy 1 web c/c: its zone no longer belongs to pool web; replace 9 web c/c: its zone no longer belongs to pool web; create 5 web c/a; create 5 web c/b"},
		{"so does a pool, at once", func(s *engine.Settings) { s.Pools = nil },
			"destroy 10 web c/a: pool web is no longer configured; destroy 10 web c/b: pool web is no longer configured; destroy 10 web c/c: pool web is no longer configured"},
		{"more than the cloud may have wait", func(s *engine.Settings) { s.Pools[0].Count, s.Clouds[0].MaxInstances = 40, 31 },
			"create 1 web c/a; wait 9 web /: 9 instances missing; c/a: cloud c is at its max_instances of 31; " +
				"c/b: cloud c is at its max_instances of 31; c/c: cloud c is at its max_instances of 31"},
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
		{"one more has a stopped one started, and another created to be stopped", func(s *engine.Settings) { s.Pools[0].Count = 3 },
			"start 1 web c/c: pool web has too few instances; create 1 web c/a"},
		{"one fewer, and one more stopped, has one stopped", func(s *engine.Settings) { s.Pools[0].Count, s.Pools[0].Stopped = 1, 3 },
			"stop 1 web c/b: pool web keeps it stopped"},
		{"fewer stopped destroys", func(s *engine.Settings) { s.Pools[0].Stopped = 0 },
			"destroy 1 web c/a: pool web keeps 0 instances stopped; destroy 1 web c/c: pool web keeps 0 instances stopped"},
	} {
		t.Run(test.name, func(t *testing.T) { foresees(t, e, settings, test.change, test.want) })
	}
}

// foresees checks what is foreseen of changed settings, and that the engine stays as it is.
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
