package replay

import (
	"testing"

	"drover"
	"drover/internal/engine"
)

func TestSubject(t *testing.T) {
	e, err := engine.New(engine.State{
		Version: engine.StateVersion, Fleet: "f", Nonce: "n",
		Instances: []engine.Instance{{ID: 5, Name: "f-n-5", ProviderID: "i-5", State: drover.InstanceBooting}},
	})
	if err != nil {
		t.Fatal(err)
	}
	attempt := drover.AttemptID{Job: drover.JobID{Number: 17, Index: 3}, Number: 1}
	for _, c := range []struct {
		name     string
		event    engine.Body
		decision engine.Decision
		in, out  []string
	}{
		{
			name: "an attempt's end concerns its job, its element and itself", event: engine.Exited{Attempt: attempt},
			in: []string{"17", "17.3", "17.3/1"}, out: []string{"1", "18", "17.4", "17.3/2", "f-n-5"},
		},
		{
			name: "a wish for an array concerns all its elements but none of their attempts", event: engine.CancelAsked{Job: drover.JobID{Number: 17, Index: -1}},
			in: []string{"17", "17.3"}, out: []string{"18", "17.3/1"},
		},
		{
			name: "an array's row written for one element does not concern another", event: engine.Ticked{},
			decision: engine.Decision{Writes: []engine.Write{{Job: &engine.Job{Number: 17}}}}, in: []string{"17"}, out: []string{"17.3", "17.3/1"},
		},
		{
			name: "an event with an instance's number concerns it by its name and its cloud's id", event: engine.Disconnected{Instance: 5},
			in: []string{"f-n-5", "i-5"}, out: []string{"5", "f-n-6"},
		},
		{
			name: "an effect that names an instance concerns it", event: engine.Ticked{},
			decision: engine.Decision{Effects: []engine.Effect{{ID: 1, Create: &engine.Create{Instance: 6, Name: "f-n-6"}}}}, in: []string{"f-n-6"}, out: []string{"f-n-5"},
		},
		{
			name: "a changed priority concerns the job", event: engine.PriorityAsked{Job: 17}, in: []string{"17", "17.3"}, out: []string{"18", "f-n-5"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			for want, texts := range map[bool][]string{true: c.in, false: c.out} {
				for _, text := range texts {
					s, err := ParseSubject(text)
					if err != nil {
						t.Fatal(err)
					}
					if got := s.In(e, engine.Event{Body: c.event}, c.decision); got != want {
						t.Errorf("%s: %v", text, got)
					}
				}
			}
		})
	}
	t.Run("refuses text that cannot name anything", func(t *testing.T) {
		for _, text := range []string{"", "a b", "17/x", "here/z/small"} {
			if _, err := ParseSubject(text); drover.AsError(err, "").Kind != drover.KindInvalid {
				t.Errorf("%q: error %v", text, err)
			}
		}
	})
}
