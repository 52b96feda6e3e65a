package simtest

import (
	"encoding/json"
	"reflect"

	"drover/internal/engine"
)

// The engine itself is looked at closely now and then, since that costs as much as there is. It checks that what it
// keeps is what follows from its State. And an engine is made anew of the State just before a step and takes it as
// well: it must come to the same State. So whatever influences a later decision is in the State.

// In one of how many steps that is done, by dice of its own, and in how many fewer of a fleet that is a crowd. What is
// wrong once mostly stays wrong, or comes again.
const (
	checkedIn  = 20
	twinnedIn  = 50
	crowdTimes = 5
	crowd      = 20 // instances
)

func (w *World) crowded() bool { return len(w.Disk.instances) > crowd }

// closely reports whether the engine is looked at in this step, which is one of so many.
func (w *World) closely(of uint64) bool {
	if w.crowded() {
		of *= crowdTimes
	}
	return w.recipe.Closely || w.scrutiny.Uint64()%of == 0
}

// twin is an engine that is made of the present State; nil mostly.
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

// sameAs has a twin take what the engine has taken, and compares what they have come to.
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

// addsUp has the engine compare what it keeps with what follows from its state, and in a small fleet also in the step
// after each fault.
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
		panic(err) // it is made of plain values
	}
	return text
}
