// Package record is the flight recorder: all that the engine was told, so that what it decided can be decided again.
//
// A segment is a gzip stream of JSON values, one a line: a Header, the engine.State as the engine began but for its
// jobs, each of those as the fields in which it is not like the one before, then one Record for each event, with the
// mark of the decision that answered it. Because equal states and events give equal decisions, marks are enough to tell
// whether a replay goes the same way, and where it first does not. The encoding knows nothing of which events, writes
// and effects there are.
//
// The invariants:
//   - A segment stands alone: it begins with a whole State and every event since is in it, in order and without a gap.
//     A Writer that cannot keep up, or whose file fails, ends its segment for good rather than leave a gap, and the
//     controller goes on without it; a Recorder begins the next one after a while.
//   - A segment may be cut at any byte. What was flushed before is read, up to the last whole record, and the cut is
//     reported.
//   - Append and Full never wait for a disk.
//   - What the engine is told holds no secret, and so a segment holds none.
//   - A Reader takes a bounded amount of memory, whatever it is given to read.
package record

import "drover/internal/engine"

// Format is raised when a Reader of an older one would misread a segment, or would find another decision since
// decisions are written otherwise.
const Format = 3

// Header says what a segment was written by.
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
