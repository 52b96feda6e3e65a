package daemon

import (
	"context"
	"log/slog"

	"drover/internal/record"
)

// recording keeps the flight recorder's files of a fleet while a controller runs.
type recording struct {
	*record.Recorder
	stop context.CancelFunc
	done chan struct{}
}

// startRecording records in a folder what a controller does, once the controller begins.
func startRecording(version, folder, settings string, log *slog.Logger) *recording {
	ctx, stop := context.WithCancel(context.Background())
	header := record.Header{Program: version, Settings: settings}
	r := &recording{record.NewRecorder(record.NewFolder(folder, record.DefaultLimit), header, log), stop, make(chan struct{})}
	go func() {
		defer close(r.done)
		r.Run(ctx)
	}()
	return r
}

// Close ends the recording.
func (r *recording) Close() {
	r.stop()
	<-r.done
}
