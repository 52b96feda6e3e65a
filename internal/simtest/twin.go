package simtest

import (
	"encoding/json"
	"reflect"

	"drover/internal/engine"
)

// The engine itself is checked closely only now and then, since that is expensive. One check compares what it keeps
// with what follows from its State. The other makes a second engine from the State just before a step: the same events
// must lead it to the same State. So everything that influences a later decision is in the State.

// These are the odds of each check in a step, from dice of their own, and by what factor they are lower in a crowded
// fleet. A fault mostly stays visible, or occurs again.
const (
	checkedIn  = 20
	twinnedIn  = 50
	crowdTimes = 5
	crowd      = 20 // instances
)

func (w *World) crowded() bool { return len(w.Disk.instances) > crowd }

// closely reports whether the engine is checked in this step, with odds of one in of.
func (w *World) closely(of uint64) bool {
	if w.crowded() {
		of *= crowdTimes
	}
	return w.recipe.Closely || w.scrutiny.Uint64()%of == 0
}

// twin returns an engine that is made from the present State; mostly nil.
func (c *controller) twin() *engine.Engine {
	if !c.w.closely(twinnedIn) {
		return nil
	}
	twin, err := engine.New(c.loop.Engine.State())
	if err != nil {
		c.w.fail("no engine can be made of its state: %v", err)
	}
	return twin
}

// sameAs applies the engine's events to its twin, and compares their States.
func (c *controller) sameAs(twin *engine.Engine, events []engine.Event) {
	if twin == nil {
		return
	}
	for _, ev := range events {
		twin.Apply(ev)
	}
	before, after := c.loop.Engine.State(), twin.State()
	if reflect.DeepEqual(before, after) {
		return
	}
	kept, anew := encodeState(before), encodeState(after)
	if string(kept) == string(anew) {
		return
	}
	at := 0
	for at < min(len(kept), len(anew)) && kept[at] == anew[at] {
		at++
	}
	around := func(text []byte) []byte { return text[max(0, at-300):min(len(text), at+200)] }
	c.w.fail("an engine that is made anew before %T comes to another state:\nkept: %s\nanew: %s", events[0].Body, around(kept), around(anew))
}

// addsUp makes the engine compare what it keeps with what follows from its State. In a small fleet it also does so in
// the step after each fault.
func (c *controller) addsUp() {
	fault := c.w.Faults > c.faults && !c.w.crowded()
	if c.faults = c.w.Faults; !c.w.closely(checkedIn) && !fault {
		return
	}
	if err := c.loop.Engine.Check(); err != nil {
		c.w.fail("what the engine keeps is not what follows from its state: %v", err)
	}
}

func encodeState(s engine.State) []byte {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // a State has only plain values
	}
	return text
}
