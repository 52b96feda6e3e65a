package drover_test

import (
	"slices"
	"strings"
	"testing"

	"drover"
)

// states reads a table of docs/states.md: the cells of each state's row, by the state.
func states(t *testing.T, heading string) (order []string, rows map[string][]string) {
	t.Helper()
	rows = map[string][]string{}
	for _, row := range table(t, "docs/states.md", heading) {
		name := strings.Trim(row[0], "`")
		order = append(order, name)
		rows[name] = row[1:]
	}
	return order, rows
}

// complete checks that the document has the code's states in the same order, and that no cell is empty.
func complete(t *testing.T, typeName string, order []string, rows map[string][]string) {
	t.Helper()
	if want := constants(t, typeName); !slices.Equal(order, want) {
		t.Errorf("the table has %v, the code %v, in this order", order, want)
	}
	for name, cells := range rows {
		if slices.Contains(cells, "") {
			t.Errorf("%s has an empty cell", name)
		}
	}
}

// covers D2
func TestInstanceStates(t *testing.T) {
	order, rows := states(t, "Instances")
	t.Run("docs/states.md has every state", func(t *testing.T) { complete(t, "InstanceState", order, rows) })
	t.Run("docs/states.md has every transition and no other", func(t *testing.T) {
		for _, from := range order {
			next := strings.Split(rows[from][0], ", ")
			for _, to := range order {
				if can := drover.InstanceState(from).CanBecome(drover.InstanceState(to)); can != slices.Contains(next, to) {
					t.Errorf("%s can become %s: the code says %v", from, to, can)
				}
			}
		}
	})
	t.Run("every state but gone can become gone", func(t *testing.T) {
		for _, from := range order {
			if can := drover.InstanceState(from).CanBecome(drover.InstanceGone); can != (from != "gone") {
				t.Errorf("%s: %v", from, can)
			}
		}
	})
	t.Run("a stopping instance can only become gone", func(t *testing.T) {
		for _, to := range order {
			if drover.InstanceStopping.CanBecome(drover.InstanceState(to)) && to != "gone" {
				t.Errorf("it becomes %s", to)
			}
		}
	})
	t.Run("only idle and running are ready, and all but gone are billed", func(t *testing.T) {
		for _, s := range order {
			state := drover.InstanceState(s)
			if state.Ready() != (s == "idle" || s == "running") || state.Billed() != (s != "gone") {
				t.Errorf("%s is ready: %v, billed: %v", s, state.Ready(), state.Billed())
			}
		}
	})
}

func TestJobStates(t *testing.T) {
	order, rows := states(t, "Jobs")
	t.Run("docs/states.md has every state", func(t *testing.T) { complete(t, "JobState", order, rows) })
	t.Run("docs/states.md marks the final ones", func(t *testing.T) {
		for s, cells := range rows {
			if drover.JobState(s).Final() != (cells[0] == "yes") {
				t.Errorf("%s: the code says %v", s, drover.JobState(s).Final())
			}
		}
	})
}

func TestAttemptStates(t *testing.T) {
	order, rows := states(t, "Attempts")
	t.Run("docs/states.md has every state", func(t *testing.T) { complete(t, "AttemptState", order, rows) })
	t.Run("docs/states.md marks the live ones", func(t *testing.T) {
		for s, cells := range rows {
			if drover.AttemptState(s).Live() != (cells[0] == "yes") {
				t.Errorf("%s: the code says %v", s, drover.AttemptState(s).Live())
			}
		}
	})
}
