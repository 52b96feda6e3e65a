package control

import (
	"bytes"
	"testing"
	"time"

	"drover"
	"drover/driver"
	"drover/internal/engine"
	"drover/internal/record"
)

// FuzzTags lists an instance with arbitrary tags: the engine adopts or ignores it, its bill stays plausible, and a
// replay decides the same.
func FuzzTags(f *testing.F) {
	f.Add("lab-n-1", "small", "SHA256:abc", "hold", "360000000")
	f.Add("lab-other-7", "gone", "", "drain", "-1")
	f.Add("", "", "", "", "")
	f.Add("lab-n-99999999999999999999", "\xff", "\x00", "run\n", "9223372036854775807")
	f.Add("lab-n-2", "small", "", "kill", "1e9")
	f.Fuzz(func(t *testing.T, name, kind, key, idle, price string) {
		in := driver.Instance{ID: "i-1", ProviderType: kind, Zone: "z", Market: drover.OnDemand, State: driver.Running, Tags: map[string]string{
			driver.TagName: name, driver.TagType: kind, driver.TagHostKey: key, driver.TagIdle: idle, driver.TagPrice: price,
		}}
		state := engine.State{Version: engine.StateVersion, Fleet: "lab", Nonce: "n"}
		var file bytes.Buffer
		w, err := record.NewWriter(&file, record.Header{}, state)
		if err != nil {
			t.Fatal(err)
		}
		e, err := engine.New(state)
		if err != nil {
			t.Fatal(err)
		}
		again := in
		again.ID = "i-2"
		for i, body := range []engine.Body{
			engine.Configured{Settings: engine.Settings{Clouds: []engine.CloudSettings{{Name: "c", MaxInstances: 2, MaxCreating: 1, ListInterval: time.Minute}}}},
			engine.Listed{Effect: 2, Cloud: "c", Began: 1, Added: []engine.Sighting{sighting(in), sighting(again)}},
			engine.Ticked{}, engine.Ticked{},
			engine.Listed{Effect: 2, Cloud: "c", Began: 1, Removed: []string{"i-1"}},
			engine.Ticked{},
		} {
			ev := engine.Event{At: drover.Time(1e18).Add(time.Duration(i) * time.Hour), Body: body}
			w.Append(ev, e.Apply(ev))
		}
		if s := e.Status(); s.Spent < 0 || s.Hourly < 0 {
			t.Errorf("the bill is %v, and %v an hour", s.Spent, s.Hourly)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		result, err := record.Replay(&file, func(s engine.State) (record.Decider, error) { return engine.New(s) })
		if err != nil || result.Differs != nil {
			t.Errorf("a replay sees %+v (%v)", result.Differs, err)
		}
	})
}
