package main

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"

	"drover/internal/engine"
	"drover/internal/loop"
	"drover/internal/record"
)

// recording keeps the flight recorder's files of a fleet. A controller that cannot record runs all the same.
type recording struct {
	folder   record.Folder
	log      *slog.Logger
	settings atomic.Pointer[string] // hash of the configuration
	segment  *record.Segment
	stop     context.CancelFunc // of the segment's Run
	done     chan error         // its end
}

func openRecording(folder, settings string, log *slog.Logger) *recording {
	r := &recording{folder: record.NewFolder(folder, record.DefaultLimit), log: log}
	r.configured(settings)
	return r
}

// configured says which configuration the segments that begin from now on are recorded under.
func (r *recording) configured(hash string) { r.settings.Store(&hash) }

// begin ends the segment there is, if any, and begins one with the State that the controller goes on from.
func (r *recording) begin(s engine.State) loop.Recorder {
	r.Close()
	segment, err := r.folder.Begin(record.Header{
		Format: record.Format, State: engine.StateVersion, Program: thisVersion().Version, Settings: *r.settings.Load(),
	}, s)
	if err != nil {
		r.log.Warn("nothing is recorded", "error", err)
		return nil
	}
	r.segment = segment
	r.done = make(chan error, 1)
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	go func() { r.done <- segment.Run(ctx) }()
	return segment
}

// Close ends the recording.
func (r *recording) Close() {
	if r.segment == nil {
		return
	}
	r.stop()
	err := errors.Join(<-r.done, r.segment.Close())
	r.segment = nil
	if err != nil && !errors.Is(err, context.Canceled) {
		r.log.Warn("the recording is not whole", "error", err)
	}
}
