package timers_test

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"drover"
	"drover/internal/engine/timers"
)

// After any sequence of calls, each ID is due at the time set last, the earliest first, and of equal times the lowest
// ID.
func TestEachIDIsDueAtTheTimeSetLast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all timers.Timers
		set := map[int64]drover.Time{}
		first := func() (id int64, at drover.Time) {
			for _, k := range slices.Sorted(maps.Keys(set)) {
				if at == 0 || set[k] < at {
					id, at = k, set[k]
				}
			}
			return id, at
		}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			id, at := rapid.Int64Range(1, 5).Draw(t, "id"), drover.Time(rapid.Int64Range(0, 9).Draw(t, "at"))
			if rapid.Bool().Draw(t, "set") {
				all.Set(id, at)
				if set[id] = at; at == 0 {
					delete(set, id)
				}
				continue
			}
			next, when := first()
			if when > at {
				next = 0
			}
			if got := all.Due(at); got != next {
				t.Fatalf("%d is due at %d, want %d of %v", got, at, next, set)
			}
			delete(set, next)
			if _, when := first(); all.First() != when || all.At(id) != set[id] {
				t.Fatalf("the first time is %d and that of %d is %d, want %d of %v", all.First(), id, all.At(id), when, set)
			}
		}
	})
}
