package engine

import (
	"cmp"
	"slices"
	"time"

	"drover"
)

// Gap is how work of one shape came back of late: how long after an instance had none of it left the next was submitted, each as if its instance
// had been kept until then. So what is learned does not depend on what is kept.
type Gap struct {
	Key   string          `json:"key"`
	Shape drover.Shape    `json:"shape"`
	Took  []time.Duration `json:"took,omitempty"`  // the latest last
	Since []drover.Time   `json:"since,omitempty"` // of those that last: since when, the latest last
	Last  drover.Time     `json:"last"`            // when anything of it was last seen
}

const (
	gapsMost  = 16 // of a shape that are remembered
	gapsLeast = 3  // of which fewer say nothing
)

// rested learns that an instance has no work of a shape left, and that none of it waits.
func (e *Engine) rested(s drover.Shape) {
	p := e.gapOf(s)
	p.Since = latest(append(slices.Clip(p.Since), e.s.Now))
}

// arrived learns that so many jobs of a shape were submitted: each ends one of the gaps that last, the latest first. Those that are as long as no
// instance is ever kept stay, and are forgotten for others.
func (e *Engine) arrived(s drover.Shape, n int) {
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

// latest is the last few of many.
func latest[T any](all []T) []T { return slices.Clone(all[max(0, len(all)-gapsMost):]) }

// gapOf is what is known of a shape, to be changed. The slice is a new one, so that a State taken before stays as it is.
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

// seen is how many gaps are known to have lasted for so long or to be over.
func (g *Gap) seen(now drover.Time, long time.Duration) int {
	return len(g.Took) + g.lasting(now, long)
}

// lasting is how many gaps have lasted for so long already.
func (g *Gap) lasting(now drover.Time, long time.Duration) (n int) {
	for _, at := range g.Since {
		if now.Sub(at) >= long {
			n++
		}
	}
	return n
}

// best is for how long it would have been best to keep each instance in these gaps, where another would have cost so long a boot: as long as one
// of them took, and how many were over by then. 0: not at all.
func (g *Gap) best(now drover.Time, boot time.Duration) (hold time.Duration, over int) {
	took := slices.Sorted(slices.Values(g.Took))
	all := len(took) + g.lasting(now, boot)
	least, kept := time.Duration(all)*boot, time.Duration(0)
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
