package eventqueue

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"drover"
)

func TestEventsHappenInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type thing struct {
			at  drover.Time
			seq int
		}
		var a Queue
		var due, happened []thing
		now := drover.Time(0)
		for range rapid.IntRange(0, 50).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "add") {
				next := thing{now + drover.Time(rapid.IntRange(0, 5).Draw(t, "in")), len(due)}
				due = append(due, next)
				a.Add(next.at, func() { happened = append(happened, next) })
				continue
			}
			now += drover.Time(rapid.IntRange(0, 3).Draw(t, "pass"))
			a.Until(now)
		}
		slices.SortStableFunc(due, func(x, y thing) int { return cmp.Compare(x.at, y.at) })
		past := slices.IndexFunc(due, func(x thing) bool { return x.at > now })
		if past < 0 {
			past = len(due)
		}
		a.Until(now)
		if !slices.Equal(happened, due[:past]) {
			t.Fatalf("by %d, %v happened, of %v", now, happened, due)
		}
		if at, more := a.Next(); more != (past < len(due)) || more && at != due[past].at {
			t.Fatalf("next is %v, %t, of %v", at, more, due[past:])
		}
	})
}
