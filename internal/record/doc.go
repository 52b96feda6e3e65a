// Package record is the flight recorder: all that the engine was told, so that what it decided can be decided again.
//
// A segment is a gzip stream of JSON values, one a line: a Header, the engine.State as the engine began, then one Record for each event,
// with a digest of the decision that answered it. Because equal states and events give equal decisions, the digests are enough to tell
// whether a replay goes the same way, and where it first does not.
//
// The invariants:
//   - A segment stands alone: it begins with a whole State and every event since is in it, in order and without a gap. A Writer that cannot
//     keep up, or whose file fails, ends its segment for good rather than leave a gap, and the controller goes on without it.
//   - A segment may be cut at any byte. What was flushed before is read, up to the last whole record, and the cut is reported.
//   - Append never waits for a disk.
package record

import "drover/internal/engine"

// Format is raised when a Reader of an older one would misread a segment.
const Format = 1

// Header says what a segment was written by.
type Header struct {
	Format   int    `json:"format"`
	State    int    `json:"state"`    // engine.StateVersion
	Program  string `json:"program"`  // the version of drover
	Settings string `json:"settings"` // a hash of the configuration
}

// Record is one event and the digest of its decision.
type Record struct {
	Event  engine.Event `json:"e"`
	Digest string       `json:"d"`
}
