package simtest

import (
	"slices"
	"time"

	"drover/internal/engine"
)

// Shorten reduces a failing world to a smaller one that still fails: less bad luck, fewer jobs, an earlier end of
// faults. It is greedy and never restores what it left out. Fails runs a recipe and reports whether it fails.
func Shorten(r Recipe, fails func(Recipe) bool) Recipe {
	try := func(smaller Recipe) bool {
		if !fails(smaller) {
			return false
		}
		r = smaller
		return true
	}
	for f := range faults {
		if r.Luck.Odds[f] > 0 {
			less := r
			less.Luck = r.Luck.Without(f)
			try(less)
		}
	}
	for i := len(r.Jobs) - 1; i >= 0; i-- {
		try(r.withoutJob(i))
	}
	for i := range r.Jobs {
		for r.Jobs[i].Array.Size() > 1 && try(r.withLessOf(i)) {
		}
	}
	for r.Luck.Until > time.Minute {
		less := r
		if less.Luck.Until /= 2; !try(less) {
			break
		}
	}
	return r
}

// withoutJob returns the recipe without one of its jobs, and without dependencies on it.
func (r Recipe) withoutJob(i int) Recipe {
	gone := r.Jobs[i].Number
	r.Jobs = slices.Delete(slices.Clone(r.Jobs), i, i+1)
	for k, j := range r.Jobs {
		r.Jobs[k].After = slices.DeleteFunc(slices.Clone(j.After), func(n int64) bool { return n == gone })
	}
	return r
}

// withLessOf returns the recipe with half of an array.
func (r Recipe) withLessOf(i int) Recipe {
	r.Jobs = slices.Clone(r.Jobs)
	j := &r.Jobs[i]
	j.Array.Last = j.Array.First + (j.Array.Size()+1)/2 - 1
	j.Queued = engine.Ranges{{First: j.Array.First, Last: j.Array.Last}}
	return r
}
