package benchfleet

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"time"

	"drover"
	"drover/internal/blob"
	"drover/internal/control"
	"drover/internal/engine"
	"drover/internal/remote"
	"drover/internal/store"
)

const (
	fleetName = "bench"
	cloudName = "here"
	zone      = "a"
)

// fleet is a controller and everything that it works with.
type fleet struct {
	tally      *tally
	cloud      *cloud
	controller *control.Controller
	store      *store.Store
	closers    []io.Closer // in the order of opening
	stop       context.CancelFunc
	ended      chan error
}

// open creates a controller like that of `drover serve`.
func (f *fleet) open(ctx context.Context, folder string) (err error) {
	cfg := control.Config{
		Fleet: fleetName, Setup: f.setup(), Shared: true, Spool: folder, Log: slog.New(slog.DiscardHandler),
	}
	runner, err := standIn()
	if err != nil {
		return err
	}
	cfg.Runners = func(drover.Arch) (remote.Runner, error) { return runner, nil }
	if cfg.Key, err = remote.LoadOrCreateFleetKey(filepath.Join(folder, "fleet.key")); err != nil {
		return err
	}
	if f.store, err = store.Open(ctx, filepath.Join(folder, "drover.db")); err != nil {
		return err
	}
	f.closers = append(f.closers, f.store)
	if cfg.Inputs, err = blob.OpenDir(filepath.Join(folder, "inputs")); err != nil {
		return err
	}
	f.closers = append(f.closers, cfg.Inputs)
	if cfg.Results, err = blob.OpenResults(filepath.Join(folder, "results"), blob.DefaultLimits()); err != nil {
		return err
	}
	f.closers = append(f.closers, cfg.Results)
	tape := startTape(filepath.Join(folder, "recording"))
	f.closers = append(f.closers, tape)
	cfg.Store, cfg.Record = f.store, tape
	if f.controller, err = control.New(ctx, cfg); err != nil {
		return err
	}
	f.begin(ctx)
	return nil
}

// begin runs the controller until close.
func (f *fleet) begin(ctx context.Context) {
	ctx, f.stop = context.WithCancel(ctx)
	f.ended = make(chan error, 1)
	go func() { f.ended <- f.controller.Run(ctx) }()
}

func (f *fleet) close() (err error) {
	if f.stop != nil {
		f.stop()
		err = <-f.ended
	}
	for len(f.closers) > 0 {
		last := len(f.closers) - 1
		err = errors.Join(err, f.closers[last].Close())
		f.closers = f.closers[:last]
	}
	return errors.Join(err, f.cloud.end())
}

// setup uses a cloud that does not report its quota: the controller learns it from refusals.
func (f *fleet) setup() control.Setup {
	return control.Setup{
		Clouds: []control.Cloud{{Name: cloudName, Driver: f.cloud}},
		Probe:  "true",
		Settings: engine.Settings{
			Clouds: []engine.CloudSettings{{Name: cloudName, MaxCreating: 10, ListInterval: time.Minute}},
			Lifecycle: engine.Lifecycle{
				BootTimeout: 5 * time.Minute, ProbeInterval: 10 * time.Second, ProbeTimeout: time.Minute, IdleTimeout: time.Minute,
				TermTimeout: 10 * time.Second, ShutdownTimeout: 10 * time.Second,
			},
		},
	}
}

// standIn is deployed instead of a runner: instances check that it arrives intact, and then play the runner.
func standIn() (remote.Runner, error) {
	content := bytes.Repeat([]byte("runner\n"), 1000)
	return remote.NewRunner(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil })
}
