package engine

import (
	"cmp"
	"slices"

	"drover"
)

// sortGroups sorts the groups in order of service: higher priority first, then, with shares, whoever uses least of
// theirs, then the most constrained (K2 in docs/behaviour.md), then the lowest job number. It drops empty groups. The
// order is total, so it survives a restart.
func (e *Engine) sortGroups() {
	e.groups = slices.DeleteFunc(e.groups, func(g *group) bool {
		empty := len(g.Jobs) == 0 && g.reserved == 0 && g.Coming == 0
		if empty {
			delete(e.byKey, g.Key)
			g.dropped = true
		}
		return empty
	})
	for i := 1; i < len(e.groups); i++ { // usually only one or two are out of place
		g := e.groups[i]
		if e.compareGroups(e.groups[i-1], g) <= 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(e.groups[:i], g, func(o, g *group) int { return cmp.Or(e.compareGroups(o, g), -1) })
		copy(e.groups[at+1:i+1], e.groups[at:i])
		e.groups[at] = g
	}
}

func (e *Engine) compareGroups(a, b *group) int {
	if a.Key.Priority != b.Key.Priority {
		return cmp.Compare(b.Key.Priority, a.Key.Priority)
	}
	if order := e.byShare(a, b); order != 0 {
		return order
	}
	if a.constraints != b.constraints {
		return cmp.Compare(b.constraints, a.constraints)
	}
	return cmp.Compare(a.First(), b.First())
}

// countConstraints counts what a shape requires of an instance besides its size.
func countConstraints(s drover.Shape) (n int) {
	asks := []bool{s.Placement.Cloud != "", s.Placement.Zone != "", s.Placement.Type != "", s.Placement.MaxPrice != 0, s.Need.Arch != "", s.Need.GPUs > 0, s.Spot == drover.SpotRequire, s.Spot == drover.SpotNever}
	for _, so := range asks {
		if so {
			n++
		}
	}
	return n
}
