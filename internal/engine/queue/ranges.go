package queue

import (
	"slices"
	"sort"

	"drover"
)

// Range is a run of element indexes, both ends included.
type Range struct {
	First int `json:"f"`
	Last  int `json:"l"`
}

// Ranges is a set of element indexes as sorted, disjoint runs that do not touch: a million waiting elements cost one
// Range.
type Ranges []Range

// RangesOf returns the indexes of an array, or the single index of a job without one.
func RangesOf(a drover.Array) (all Ranges) {
	if !a.Set {
		return Ranges{{First: -1, Last: -1}}
	}
	for first, last := range a.Runs() {
		all = append(all, Range{First: first, Last: last})
	}
	return all
}

// Count returns the number of indexes in the set.
func (r Ranges) Count() (n int) {
	for _, run := range r {
		n += run.Last - run.First + 1
	}
	return n
}

// Rank returns how many indexes in the set are below i.
func (r Ranges) Rank(i int) (n int) {
	for _, run := range r {
		if run.First >= i {
			break
		}
		n += min(run.Last, i-1) - run.First + 1
	}
	return n
}

// Has reports whether i is in the set.
func (r Ranges) Has(i int) bool {
	at := r.at(i)
	return at < len(r) && r[at].First <= i
}

// Any reports whether the set has an index from first to last.
func (r Ranges) Any(first, last int) bool {
	at := r.at(first)
	return at < len(r) && r[at].First <= last
}

// Add adds i.
func (r *Ranges) Add(i int) {
	if r.Has(i) {
		return
	}
	at := r.at(i)
	left := at > 0 && (*r)[at-1].Last == i-1
	right := at < len(*r) && (*r)[at].First == i+1
	switch {
	case left && right:
		(*r)[at-1].Last = (*r)[at].Last
		*r = slices.Delete(*r, at, at+1)
	case left:
		(*r)[at-1].Last = i
	case right:
		(*r)[at].First = i
	default:
		*r = slices.Insert(*r, at, Range{i, i})
	}
}

// Remove removes i and reports whether it was in the set.
func (r *Ranges) Remove(i int) bool {
	if !r.Has(i) {
		return false
	}
	at := r.at(i)
	switch run := &(*r)[at]; {
	case run.First == run.Last:
		*r = slices.Delete(*r, at, at+1)
	case run.First == i:
		run.First++
	case run.Last == i:
		run.Last--
	default:
		before := Range{run.First, i - 1}
		run.First = i + 1
		*r = slices.Insert(*r, at, before)
	}
	return true
}

// Without returns the set minus o.
func (r Ranges) Without(o Ranges) Ranges {
	var left Ranges
	for _, run := range r {
		for at := o.at(run.First); at < len(o) && o[at].First <= run.Last; at++ {
			if run.First < o[at].First {
				left = append(left, Range{run.First, o[at].First - 1})
			}
			run.First = o[at].Last + 1
		}
		if run.First <= run.Last {
			left = append(left, run)
		}
	}
	return left
}

// Lowest returns the n lowest indexes, or all if there are fewer.
func (r Ranges) Lowest(n int) (lowest Ranges) {
	for _, run := range r {
		if n <= 0 {
			break
		}
		run.Last = min(run.Last, run.First+n-1)
		lowest = append(lowest, run)
		n -= run.Last - run.First + 1
	}
	return lowest
}

// at returns the position of the first run that ends at or after i.
func (r Ranges) at(i int) int {
	return sort.Search(len(r), func(k int) bool { return r[k].Last >= i })
}
