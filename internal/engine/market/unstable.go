package market

import (
	"fmt"
	"slices"
	"time"

	"drover"
	"drover/internal/engine/verdict"
)

// An offering whose instances are interrupted again and again costs the work that has to be restarted, so it is
// blocked: not for one interruption, nor for a few among many instances, but for a rate. Jobs that prefer spot then run
// on demand or on another spot offering, whichever is cheaper. The block ends with a probe, which has to live for a
// while.

const (
	unstableWindow = time.Hour        // older interruptions are forgotten
	unstableCount  = 3                // fewer in the window may be chance
	unstablePart   = 2                // so may fewer than one per this many living instances
	unstableTime   = 15 * time.Minute // the first block
	unstableMost   = 2 * time.Hour    // the longest block
	calmTime       = 15 * time.Minute // how long the probe has to live
)

// Interruption records that a cloud interrupted an instance.
type Interruption struct {
	Instance string      `json:"instance"` // name: an instance that is adopted later is not counted again
	Cloud    string      `json:"cloud"`
	Zone     string      `json:"zone"`
	Type     string      `json:"type"`
	At       drover.Time `json:"at"`
}

// Interrupted counts the interruption of a spot instance, and starts a block if there are too many, or if the instance
// was a probe. others is the number of living instances of the offering.
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
	b.Reason = verdict.Verdict{Cause: drover.ReasonInterrupted}
	b.Reason.Text = fmt.Sprintf("its cloud reclaimed %d of its instances within an hour", n)
	began, _ = m.Add(b, id)
	return began
}

// calmAt returns when the probe of a block for interruptions will have lived long enough; 0 if it has no created probe.
func calmAt(b Block, created Created) drover.Time {
	if at, there := created(b.Probe); b.ForInterruptions() && there && at != 0 {
		return at.Add(calmTime)
	}
	return 0
}
