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

// closely is how many events of a scenario are decided by three engines each. Of the rest it is one in ten, unless the
// tests may take minutes; in short mode it is one in ten of all.
const closely = 10

// checked reports whether the event that comes is decided by three engines.
func (p *player) checked() bool {
	p.events++
	return takesMinutes() || p.events <= closely && !testing.Short() || p.events%10 == 0
}

func takesMinutes() bool { return flag.Lookup("long").Value.String() == "true" }

// decide applies an event to the engine, and to one that is made anew of its State just then: they must decide alike,
// byte for byte, and come to the same State. So whatever influences a later decision is in the State, and a controller
// that begins anew goes on as if it had not.
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
		p.t.Fatalf("%s\nan engine that is made anew before %s decides something else (-kept +anew):\n%s", p.out.String(), encoded(p, ev), gocmp.Diff(kept, anew))
	}
	if encoded(p, p.e.State()) != encoded(p, rebuilt.State()) {
		if diff := gocmp.Diff(p.e.State(), rebuilt.State(), cmpopts.EquateEmpty()); diff != "" {
			p.t.Fatalf("%s\nan engine that is made anew before %s comes to another state (-kept +anew):\n%s", p.out.String(), encoded(p, ev), diff)
		}
	}
	p.reworded(before, ev, d)
	return d
}

// reworded wants the same decision of an engine that is made of the State before with other words in every verdict, and
// with other words, codes and times in every reason: none depends on them.
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
		return // which is told sooner than a difference
	}
	if diff := gocmp.Diff(was, is, cmpopts.EquateEmpty()); diff != "" {
		p.t.Fatalf("%s\nan engine whose reasons are in other words decides something else before %s (-kept +reworded):\n%s", p.out.String(), encoded(p, ev), diff)
	}
}

// reword is a copy of a value with all that people are told in other words.
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
