package daemon

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"drover"
	"drover/internal/config"
)

func TestAnErrorOnOneLineKeepsItsHint(t *testing.T) {
	plain := drover.Errorf(drover.KindInvalid, "the file is empty").WithHint("begin with clouds:")
	for want, err := range map[string]error{
		"the file is empty (begin with clouds:)":             plain,
		"fleet.yaml: the file is empty (begin with clouds:)": fmt.Errorf("fleet.yaml: %w", plain),
		"no such file": errors.New("no such file"),
		"f:1:2: no such key (is it state?); f:3:1: it is listed twice": config.Faults{{File: "f", Line: 1, Column: 2, Message: "no such key", Hint: "is it state?"}, {File: "f", Line: 3, Column: 1, Message: "it is listed twice"}},
	} {
		if got := onOneLine(err); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestAHintFollowsFromTheKeyThatCannotChange(t *testing.T) {
	lab := func() *config.Config {
		c := config.Default("lab")
		c.Kubernetes.Kubeconfig = "kubeconfig"
		return c
	}
	d := &daemon{config: lab()}
	for hint, change := range map[string]func(*config.Config){
		"write fleet: lab again":  func(c *config.Config) { c.Fleet, c.State = "other", "elsewhere.db" },
		"move its records":        func(c *config.Config) { c.State = "elsewhere.db" },
		"restart it":              func(c *config.Config) { c.Auth.Shared = !c.Auth.Shared },
		"keep the kubernetes key": func(c *config.Config) { c.Kubernetes.Kubeconfig = "" },
	} {
		c := lab()
		change(c)
		if e := drover.AsError(d.needsStart(c), ""); !strings.Contains(e.Hint, hint) {
			t.Errorf("%v (%s), want the hint %q", e, e.Hint, hint)
		}
	}
}

func TestSchedulesAreFollowedWhereverTheClockGoes(t *testing.T) {
	text := "version: 1\nclouds: {here: {driver: x}}\npools: {web: {size: 1, schedule: [{cron: 0 8 * * *, time_zone: UTC, to: 4}, {cron: 0 20 * * *, time_zone: UTC, to: 1}]}}\n"
	parsed, err := config.Parse("drover.yaml", []byte(text), "")
	if err != nil {
		t.Fatal(err)
	}
	day := func(day, hour int) time.Time { return time.Date(2026, 11, day, hour, 30, 0, 0, time.UTC) }
	d := &daemon{config: parsed}
	_, d.reschedule = parsed.At(day(10, 9))
	for name, c := range map[string]struct {
		now  time.Time
		want bool
	}{
		"later in the same period":       {day(10, 19), false},
		"in the next period":             {day(10, 20), true},
		"in an earlier one, if set back": {day(9, 9), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := d.rescheduled(c.now); got != c.want {
				t.Errorf("rescheduled: %v, want %v", got, c.want)
			}
		})
	}
}
