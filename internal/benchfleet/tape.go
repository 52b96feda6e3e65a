package benchfleet

import (
	"context"
	"errors"

	"drover/internal/engine"
	"drover/internal/loop"
	"drover/internal/record"
)

// tape keeps the recording, as a daemon does.
type tape struct {
	folder  record.Folder
	segment *record.Segment
	stop    context.CancelFunc // of the segment's Run
	done    chan error         // its end
	lost    error              // why the recording is not whole
}

// begin ends the segment there is and begins one. A controller goes on without a recording; that there was none, Close tells.
func (t *tape) begin(s engine.State) loop.Recorder {
	t.end()
	header := record.Header{Format: record.Format, State: engine.StateVersion, Program: fleetName, Settings: fleetName}
	segment, err := t.folder.Begin(header, s)
	if err != nil {
		t.lost = errors.Join(t.lost, err)
		return nil
	}
	ctx, stop := context.WithCancel(context.Background())
	t.segment, t.stop, t.done = segment, stop, make(chan error, 1)
	go func() { t.done <- segment.Run(ctx) }()
	return segment
}

func (t *tape) end() {
	if t.segment == nil {
		return
	}
	t.stop()
	if err := <-t.done; !errors.Is(err, context.Canceled) {
		t.lost = errors.Join(t.lost, err)
	}
	t.lost = errors.Join(t.lost, t.segment.Close())
	t.segment = nil
}

// Close ends the recording, and says what was lost of it.
func (t *tape) Close() error {
	t.end()
	return t.lost
}
