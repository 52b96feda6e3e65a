package engine_test

import (
	"encoding/json"
	"flag"
	"reflect"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"drover"
	"drover/internal/engine"
)

// closely is how many events of a scenario are all decided by three engines. After them it is one event in ten, unless
// the tests may take minutes; in short mode it is one in ten throughout.
const closely = 10

// checked reports whether three engines decide the next event.
func (p *player) checked() bool {
	p.events++
	return takesMinutes() || p.events <= closely && !testing.Short() || p.events%10 == 0
}

func takesMinutes() bool { return flag.Lookup("long").Value.String() == "true" }

// decide applies an event to the engine and to one just rebuilt from its State: their decisions must be equal, byte for
// byte, and so must their States. So everything that influences a later decision is in the State, and a restarted
// controller continues as if it had not been restarted.
func (p *player) decide(ev engine.Event) engine.Decision {
	p.t.Helper()
	if !p.checked() {
		return p.e.Apply(ev)
	}
	before := encoded(p, p.e.State())
	rebuilt, err := engine.New(decoded(p, before))
	if err != nil {
		p.t.Fatal(err)
	}
	d, again := p.e.Apply(ev), rebuilt.Apply(ev)
	if kept, anew := encoded(p, d), encoded(p, again); kept != anew {
		p.t.Fatalf("%s\nan engine rebuilt before %s decides differently (-kept +rebuilt):\n%s", p.out.String(), encoded(p, ev), gocmp.Diff(kept, anew))
	}
	if encoded(p, p.e.State()) != encoded(p, rebuilt.State()) {
		if diff := gocmp.Diff(p.e.State(), rebuilt.State(), cmpopts.EquateEmpty()); diff != "" {
			p.t.Fatalf("%s\nan engine rebuilt before %s reaches another state (-kept +rebuilt):\n%s", p.out.String(), encoded(p, ev), diff)
		}
	}
	p.reworded(before, ev, d)
	return d
}

// reworded expects the same decision from an engine rebuilt from the previous State with other words in every verdict,
// and other words, codes and times in every reason: no decision depends on them.
func (p *player) reworded(before string, ev engine.Event, d engine.Decision) {
	p.t.Helper()
	state := decoded(p, before)
	rewordAll(reflect.ValueOf(&state).Elem())
	other, err := engine.New(state)
	if err != nil {
		p.t.Fatal(err)
	}
	again := other.Apply(ev)
	was, is := reword(p.t, d), reword(p.t, again)
	if encoded(p, was) == encoded(p, is) {
		return // faster than computing a diff
	}
	if diff := gocmp.Diff(was, is, cmpopts.EquateEmpty()); diff != "" {
		p.t.Fatalf("%s\nan engine with reworded reasons decides differently on %s (-kept +reworded):\n%s", p.out.String(), encoded(p, ev), diff)
	}
}

// reword returns a copy of a value with all text for people replaced.
func reword[T any](t *testing.T, v T) (other T) {
	t.Helper()
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &other)
	}
	if err != nil {
		t.Fatal(err)
	}
	rewordAll(reflect.ValueOf(&other).Elem())
	return other
}

func rewordAll(v reflect.Value) {
	switch known := v.Addr().Interface().(type) {
	case *drover.Reason:
		if known.Code != "" {
			*known = drover.Reason{Code: "other", Text: "in other words", Since: known.Since}
		}
		return
	case *engine.Verdict:
		if known.Cause != "" {
			known.Text = "in other words"
		}
		return
	case *engine.Note:
		known.Text = "in other words"
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			rewordAll(v.Elem())
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			rewordAll(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				rewordAll(v.Field(i))
			}
		}
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
