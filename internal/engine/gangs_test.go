package engine_test

import (
	"slices"
	"testing"

	"drover"
	"drover/internal/engine"
)

func TestGangAddresses(t *testing.T) {
	addresses := func(secondCloud string) *engine.Engine {
		s := engine.State{Version: engine.StateVersion}
		j := engine.Job{Number: 1, Name: "ring", Array: drover.Array{Set: true, First: 0, Last: 3}, Gang: 2, Priority: 1, Attempts: 3, Queued: engine.Ranges{{First: 0, Last: 1}}}
		for i, cloud := range []string{secondCloud, "c"} { // element 2 on instance 1, and 3 on instance 2
			id := int64(i + 1)
			name := string(rune('a' + i))
			s.Instances = append(s.Instances, engine.Instance{ID: id, Name: name, Cloud: cloud, State: drover.InstanceRunning, Resources: drover.Resources{CPU: 4000}, Addresses: drover.Addresses{Private: name + ".private", Public: name + ".public"}})
			s.Attempts = append(s.Attempts, engine.Attempt{ID: drover.AttemptID{Job: drover.JobID{Number: 1, Index: 2 + i}, Number: 1}, Instance: id, State: drover.AttemptRunning, Started: 1})
			j.Tried = append(j.Tried, engine.Element{Index: 2 + i, Number: 1})
		}
		s.Jobs = []engine.Job{j}
		e, err := engine.New(s)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	for _, test := range []struct {
		name   string
		second string
		index  int
		want   []string
	}{
		{"are private within a cloud, by index", "c", 3, []string{"a.private", "b.private"}},
		{"are public across clouds", "d", 2, []string{"a.public", "b.public"}},
		{"are empty for elements that do not run", "c", 0, []string{"", ""}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := addresses(test.second).GangAddresses(drover.JobID{Number: 1, Index: test.index}); !slices.Equal(got, test.want) {
				t.Errorf("%q, not %q", got, test.want)
			}
		})
	}
}
