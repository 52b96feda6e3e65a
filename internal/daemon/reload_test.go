package daemon

import (
	"errors"
	"fmt"
	"strings"
	"testing"

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
	d := &daemon{config: config.Default("lab")}
	for hint, change := range map[string]func(*config.Config){
		"write fleet: lab again": func(c *config.Config) { c.Fleet, c.State = "other", "elsewhere.db" },
		"move its records":       func(c *config.Config) { c.State = "elsewhere.db" },
		"restart it":             func(c *config.Config) { c.Auth.Shared = !c.Auth.Shared },
	} {
		c := config.Default("lab")
		change(c)
		if e := drover.AsError(d.needsStart(c), ""); !strings.Contains(e.Hint, hint) {
			t.Errorf("%v (%s), want the hint %q", e, e.Hint, hint)
		}
	}
}
