package engine

import (
	"cmp"
	"slices"
	"time"

	"drover"
)

// Gap is how soon work of one shape has returned recently: the time from when an instance had none of it left until the
// next was submitted, as if each instance had been kept until then. So what is learned does not depend on what is kept.
type Gap struct {
	Key   string          `json:"key"`
	Shape drover.Shape    `json:"shape"`
	Took  []time.Duration `json:"took,omitempty"`  // ended gaps, latest last
	Since []drover.Time   `json:"since,omitempty"` // beginnings of current gaps, latest last
	Last  drover.Time     `json:"last"`            // last update
}

const (
	gapsMost  = 16 // remembered per shape
	gapsLeast = 3  // fewer say nothing
)

// startGap starts a gap: an instance has no work of a shape left, and none waits.
func (e *Engine) startGap(s drover.Shape) {
	p := e.gapOf(s)
	p.Since = latest(append(slices.Clip(p.Since), e.s.Now))
}

// endGaps records the submission of n jobs of a shape: each ends a current gap, the latest first. Gaps longer than any
// instance is kept remain until they are displaced.
func (e *Engine) endGaps(s drover.Shape, n int) {
	p := e.gapOf(s)
	n = min(n, len(p.Since))
	ended := p.Since[len(p.Since)-n:]
	p.Since = slices.Clone(p.Since[:len(p.Since)-n])
	p.Took = slices.Clip(p.Took)
	for _, at := range slices.Backward(ended) {
		p.Took = append(p.Took, e.s.Now.Sub(at))
	}
	p.Took = latest(p.Took)
}

// latest returns the last gapsMost elements.
func latest[T any](all []T) []T { return slices.Clone(all[max(0, len(all)-gapsMost):]) }

// gapOf returns the gap of a shape for changing. It copies the slice, so that a State taken earlier is unchanged.
func (e *Engine) gapOf(s drover.Shape) *Gap {
	all, key := slices.Clone(e.s.Stats.Gaps), shapeKey(s)
	place, known := slices.BinarySearchFunc(all, key, compareGap)
	if !known {
		if len(all) >= statsMost {
			oldest := slices.MinFunc(all, func(a, b Gap) int { return cmp.Compare(a.Last, b.Last) })
			all = slices.DeleteFunc(all, func(p Gap) bool { return p.Key == oldest.Key })
			place, _ = slices.BinarySearchFunc(all, key, compareGap)
		}
		all = slices.Insert(all, place, Gap{Key: key, Shape: s})
	}
	e.s.Stats.Gaps = all
	all[place].Last = e.s.Now
	return &all[place]
}

func compareGap(p Gap, key string) int { return cmp.Compare(p.Key, key) }

// seen returns how many gaps have ended or have lasted this long.
func (g *Gap) seen(now drover.Time, long time.Duration) int {
	return len(g.Took) + g.lasting(now, long)
}

// lasting returns how many current gaps have lasted this long.
func (g *Gap) lasting(now drover.Time, long time.Duration) (n int) {
	for _, at := range g.Since {
		if now.Sub(at) >= long {
			n++
		}
	}
	return n
}

// best returns for how long keeping each instance in these gaps would have cost least, where another costs this long a
// boot, and how many gaps had ended by then. 0: not at all, or it would have saved little: what was best for few gaps
// is rarely as good for the next ones.
func (g *Gap) best(now drover.Time, boot time.Duration) (hold time.Duration, over int) {
	took := slices.Sorted(slices.Values(g.Took))
	all := len(took) + g.lasting(now, boot)
	least, kept := time.Duration(all)*boot*3/4, time.Duration(0)
	for i, t := range took {
		if t > boot {
			break
		}
		kept += t
		if cost := kept + time.Duration(all-i-1)*(t+boot); cost < least {
			least, hold, over = cost, t, i+1
		}
	}
	return hold, over
}
