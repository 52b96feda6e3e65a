package engine_test

import (
	"encoding/json"
	"regexp"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"drover/internal/engine"
)

// decide applies an event to the engine, and to one that is made anew of its State just then: they must decide alike, byte for byte, and come to
// the same State. So whatever influences a later decision is in the State, and a controller that begins anew goes on as if it had not.
func (p *player) decide(ev engine.Event) engine.Decision {
	p.t.Helper()
	before := p.e.State()
	rebuilt, err := engine.New(decoded(p, encoded(p, before)))
	if err != nil {
		p.t.Fatal(err)
	}
	d, again := p.e.Apply(ev), rebuilt.Apply(ev)
	if diff := gocmp.Diff(encoded(p, d), encoded(p, again)); diff != "" {
		p.t.Fatalf("%s\nan engine that is made anew before %s decides something else (-kept +anew):\n%s", p.out.String(), encoded(p, ev), diff)
	}
	if diff := gocmp.Diff(p.e.State(), rebuilt.State(), cmpopts.EquateEmpty()); diff != "" {
		p.t.Fatalf("%s\nan engine that is made anew before %s comes to another state (-kept +anew):\n%s", p.out.String(), encoded(p, ev), diff)
	}
	p.reworded(before, ev, d)
	return d
}

var words = regexp.MustCompile(`"text":"(?:[^"\\]|\\.)*"`)

// reworded wants the same decision of an engine that is made of the State before with every reason in other words: none depends on the words.
func (p *player) reworded(before engine.State, ev engine.Event, d engine.Decision) {
	p.t.Helper()
	reword := func(v any) string { return words.ReplaceAllString(encoded(p, v), `"text":"in other words"`) }
	other, err := engine.New(decoded(p, reword(before)))
	if err != nil {
		p.t.Fatal(err)
	}
	again := other.Apply(ev)
	if diff := gocmp.Diff(reword(d), reword(again)); diff != "" {
		p.t.Fatalf("%s\nan engine whose reasons are in other words decides something else before %s (-kept +reworded):\n%s", p.out.String(), encoded(p, ev), diff)
	}
}

func encoded(p *player, v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}

func decoded(p *player, text string) (s engine.State) {
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		p.t.Fatal(err)
	}
	return s
}
