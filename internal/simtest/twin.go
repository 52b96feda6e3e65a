package simtest

import (
	"encoding/json"
	"reflect"

	"drover/internal/engine"
)

// Every so often an engine is made anew of the State just before a step and takes it as well: it must come to the same State. So whatever influences a
// later decision is in the State.

// twinEvery is in one of how many steps that is done.
const twinEvery = 10

// twin is an engine that is made of the present State; nil mostly.
func (c *controller) twin() *engine.Engine {
	if c.steps%twinEvery != 0 {
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

// seldom is how many instances a fleet has of which the engine checks itself only in one of so many steps, since that costs as much as there is.
const seldom = 20

// addsUp has the engine compare what it keeps with what follows from its state.
func (c *controller) addsUp() {
	if len(c.w.Disk.instances) > seldom && c.steps%seldom != 0 {
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
