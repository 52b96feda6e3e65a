package benchfleet

import (
	"context"
	"log/slog"

	"drover/internal/record"
)

// tape keeps the recording like a daemon.
type tape struct {
	*record.Recorder
	stop context.CancelFunc
	done chan struct{}
}

func startTape(folder string) *tape {
	ctx, stop := context.WithCancel(context.Background())
	header := record.Header{Program: fleetName, Settings: fleetName}
	t := &tape{record.NewRecorder(record.NewFolder(folder, record.DefaultLimit), header, slog.New(slog.DiscardHandler)), stop, make(chan struct{})}
	go func() {
		defer close(t.done)
		t.Run(ctx)
	}()
	return t
}

// Close ends the recording.
func (t *tape) Close() error {
	t.stop()
	<-t.done
	return nil
}
