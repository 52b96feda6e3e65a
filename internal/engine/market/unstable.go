package market

import (
	"fmt"
	"slices"
	"time"

	"drover"
)

// Spot is cheap as long as it lasts. An offering whose instances are taken back again and again costs what is begun anew, so it is left alone
// until it is calm: not for one interruption, nor for a few of many instances, but for a rate. What wants spot and accepts on demand is then
// rented on demand, or as another spot offering, whichever is cheaper; the block ends as others do, in a probe of one, which has to live for a
// while.

const (
	unstableWindow = time.Hour        // interruptions of longer ago say nothing of now
	unstableCount  = 3                // fewer in the window may be chance
	unstablePart   = 2                // and so may fewer than one for so many instances that there still are
	unstableTime   = 15 * time.Minute // how long an unstable offering is left alone at first
	unstableMost   = 2 * time.Hour    // and at most
	calmTime       = 15 * time.Minute // how long the probe has to live
)

// Interruption is that a cloud took an instance back.
type Interruption struct {
	Instance string      `json:"instance"` // its name: one that is adopted afterwards does not count again
	Cloud    string      `json:"cloud"`
	Zone     string      `json:"zone"`
	Type     string      `json:"type"`
	At       drover.Time `json:"at"`
}

// Interrupted counts that a spot instance is taken back, and begins a block if that is too often, or befell the block's probe. others is how many of the
// offering there are that are not taken back.
func (m *Market) Interrupted(id int64, name string, o drover.Offering, others int) (began bool) {
	m.interruptions = append(slices.DeleteFunc(slices.Clone(m.interruptions), func(i Interruption) bool {
		return i.At.Add(unstableWindow) <= m.now || i.Instance == name
	}), Interruption{name, o.Cloud, o.Zone, o.Type.Name, m.now})

	b := Block{Cloud: o.Cloud, Zone: o.Zone, Type: o.Type.Name, Market: drover.Spot}
	n := 0
	for _, i := range m.interruptions {
		if i.Cloud == b.Cloud && i.Zone == b.Zone && i.Type == b.Type {
			n++
		}
	}
	probe := slices.ContainsFunc(m.blocks, func(o Block) bool { return o.same(b) && o.ForInterruptions() && o.Over && o.Probe == id })
	if !probe && (n < unstableCount || n*unstablePart < others) {
		return false
	}
	b.Reason = drover.Reason{Code: drover.ReasonInterrupted}
	b.Reason.Text = fmt.Sprintf("its cloud took back %d of it within an hour", n)
	began, _ = m.Add(b, id)
	return began
}

// calmAt is when the probe of a block for interruptions has lived long enough; 0 if it has none, or that is not there yet.
func calmAt(b Block, created Created) drover.Time {
	if at, there := created(b.Probe); b.ForInterruptions() && there && at != 0 {
		return at.Add(calmTime)
	}
	return 0
}
