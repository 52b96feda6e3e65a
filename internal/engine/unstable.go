package engine

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
	restlessWindow = time.Hour        // interruptions of longer ago say nothing of now
	restlessCount  = 3                // fewer in the window may be chance
	restlessPart   = 2                // and so may fewer than one for so many instances that there still are
	restlessTime   = 15 * time.Minute // how long a restless offering is left alone at first
	restlessMost   = 2 * time.Hour    // and at most
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

// interrupted counts that an instance is taken back, and leaves its offering alone if that is too often or befell its probe.
func (e *Engine) interrupted(in *instance) {
	if in.Market != drover.Spot {
		return
	}
	e.s.Interruptions = append(slices.DeleteFunc(slices.Clone(e.s.Interruptions), func(i Interruption) bool {
		return i.At.Add(restlessWindow) <= e.s.Now || i.Instance == in.Name
	}), Interruption{in.Name, in.Cloud, in.Zone, in.Type.Name, e.s.Now})

	b := Block{Cloud: in.Cloud, Zone: in.Zone, Type: in.Type.Name, Market: drover.Spot}
	n := 0
	for _, i := range e.s.Interruptions {
		if i.Cloud == b.Cloud && i.Zone == b.Zone && i.Type == b.Type {
			n++
		}
	}
	probe := slices.ContainsFunc(e.s.Blocks, func(o Block) bool { return o.same(b) && o.unstable() && o.Over && o.Probe == in.ID })
	if !probe && (n < restlessCount || n*restlessPart < e.stillThere(in)) {
		return
	}
	b.Reason = drover.Reason{Code: drover.ReasonInterrupted}
	b.Reason.Text = fmt.Sprintf("its cloud took back %d of it within an hour", n)
	if e.addBlock(b, in.ID) {
		e.dropBlocked(in.Cloud)
	}
}

// stillThere is how many instances of the same offering there are that are not taken back.
func (e *Engine) stillThere(as *instance) (n int) {
	for _, in := range e.instances {
		if in.Cloud == as.Cloud && in.Zone == as.Zone && in.Type.Name == as.Type.Name && in.Market == drover.Spot &&
			in.Created != 0 && in.Reclaimed == nil && in.State != drover.InstanceStopping {
			n++
		}
	}
	return n
}

// unstable reports whether the block is for interruptions.
func (b Block) unstable() bool { return b.Reason.Code == drover.ReasonInterrupted }

// pause is how long such a block lasts at first, and at most.
func (b Block) pause() (first, most time.Duration) {
	if b.unstable() {
		return restlessTime, restlessMost
	}
	return blockTime, blockMost
}

// calmAt is when the probe of a block for interruptions has lived long enough; 0 if it has none, or that is not there yet.
func (e *Engine) calmAt(b Block) drover.Time {
	if in := e.instance(b.Probe); b.unstable() && in != nil && in.Created != 0 {
		return in.Created.Add(calmTime)
	}
	return 0
}
