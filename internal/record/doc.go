// Package record is the flight recorder: everything that the engine received, so that its decisions can be made again.
//
// A segment is a gzip stream of JSON values, one per line: a Header; the engine.State at the beginning, without its
// jobs; each job as the fields in which it differs from the previous one; then one Record for each event, with the mark
// of the decision on it. Because equal states and events give equal decisions, marks are enough to detect whether a
// replay decides the same, and where it first does not. The encoding does not depend on which events, writes and
// effects exist.
//
// The invariants:
//   - A segment stands alone: it begins with a whole State and every event since is in it, in order and without a gap.
//     A Writer that cannot keep up, or whose file fails, ends its segment rather than leave a gap, and the controller
//     continues without it; a Recorder begins the next segment after a while.
//   - A segment may be cut at any byte. What was flushed before is read, up to the last whole record, and the cut is
//     reported.
//   - Append and Full never wait for a disk.
//   - What the engine receives holds no secret, so a segment holds none.
//   - A Reader uses a bounded amount of memory, whatever it reads.
package record

import "drover/internal/engine"

// Format is raised when a Reader of an older one would misread a segment, or would find other decisions because their
// encoding has changed.
const Format = 3

// Header describes what wrote a segment.
type Header struct {
	Format   int    `json:"format"`
	State    int    `json:"state"`          // engine.StateVersion
	Program  string `json:"program"`        // the version of drover
	Settings string `json:"settings"`       // a hash of the configuration
	Jobs     int    `json:"jobs,omitempty"` // jobs of the State, each on its own line
}

// Record is one event and the mark of its decision.
type Record struct {
	Event engine.Event `json:"e"`
	Mark
}
