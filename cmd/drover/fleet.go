package main

import (
	"context"
	"log/slog"
	"os"

	"drover"
	"drover/internal/blob"
	"drover/internal/config"
	"drover/internal/control"
	"drover/internal/engine"
	"drover/internal/remote"
	"drover/internal/store"
)

// fleet is a controller in this process and all that it works with.
type fleet struct {
	controller *control.Controller
	store      *store.Store
	results    *blob.Results
	inputs     *blob.Dir
	clouds     []control.Cloud
	key        remote.FleetKey
	recording  *recording
	closed     bool
}

// openFleet makes a controller for the run in the folder. Nothing is rented before its Run.
func openFleet(ctx context.Context, folder *runFolder, p runPlan, c *config.Config, log *slog.Logger, watch func(engine.Note)) (*fleet, error) {
	f := &fleet{}
	if err := f.open(ctx, folder, p, c, log, watch); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (f *fleet) open(ctx context.Context, folder *runFolder, p runPlan, c *config.Config, log *slog.Logger, watch func(engine.Note)) (err error) {
	if f.key, err = remote.LoadOrCreateFleetKey(folder.file("fleet.key")); err != nil {
		return err
	}
	if f.store, err = store.Open(ctx, folder.file("drover.db")); err != nil {
		return err
	}
	if f.inputs, err = blob.OpenDir(folder.file("inputs")); err != nil {
		return err
	}
	if f.results, err = blob.OpenResults(p.Out, p.limits()); err != nil {
		return err
	}
	if f.clouds, err = openClouds(ctx, c, folder.id, folder.path, log); err != nil {
		return err
	}
	binary, err := findRunner()
	if err != nil {
		return err
	}
	f.recording = openRecording(folder.file("recording"), c.Hash(), log)
	f.controller, err = control.New(ctx, control.Config{
		Fleet:    folder.id,
		Settings: settings(c, p.Limits),
		Clouds:   f.clouds,
		Probe:    c.Instances.BootProbe,
		Deadline: c.Instances.ProbeDeadline,
		Store:    f.store,
		Key:      f.key,
		Inputs:   f.inputs,
		Results:  f.results,
		Runner:   binary,
		Recorder: f.recording.begin,
		Log:      log,
		Watch:    watch,
	})
	return err
}

// Close lets go of everything; instances and jobs stay as they are. Closing again does nothing.
func (f *fleet) Close() {
	if f.closed {
		return
	}
	f.closed = true
	if f.recording != nil {
		f.recording.Close()
	}
	closeClouds(f.clouds)
	if f.results != nil {
		f.results.Close()
	}
	if f.inputs != nil {
		f.inputs.Close()
	}
	if f.store != nil {
		f.store.Close()
	}
}

// settings is what the engine decides by.
func settings(c *config.Config, limits runLimits) engine.Settings {
	s := engine.Settings{
		Lifecycle: engine.Lifecycle{
			BootTimeout:     c.Instances.BootTimeout,
			ProbeInterval:   c.Instances.ProbeInterval,
			ProbeTimeout:    c.Instances.ProbeTimeout,
			IdleTimeout:     c.Instances.IdleTimeout,
			TermTimeout:     c.Instances.TermTimeout,
			ShutdownTimeout: c.Instances.ShutdownTimeout,
		},
		MaxInstances: limits.MaxInstances,
		MaxCost:      limits.MaxCost,
		Keep:         limits.Keep,
	}
	for _, cloud := range c.Clouds {
		s.Clouds = append(s.Clouds, engine.CloudSettings{
			Name: cloud.Name, MaxInstances: cloud.MaxInstances, MaxCreating: cloud.MaxCreating, ListInterval: cloud.ListInterval, Disk: cloud.Disk,
		})
	}
	return s
}

// loadConfig reads the configuration that a command is to go by: the file it names, else this machine.
func loadConfig(file, onlyCloud string) (*config.Config, error) {
	c := config.Default("run")
	if file != "" {
		var err error
		if c, err = config.Load(file); err != nil {
			return nil, err
		}
	}
	if err := checkDrivers(c); err != nil {
		return nil, err
	}
	if onlyCloud == "" {
		return c, nil
	}
	for _, cloud := range c.Clouds {
		if cloud.Name == onlyCloud {
			c.Clouds = []config.Cloud{cloud}
			return c, nil
		}
	}
	return nil, drover.Errorf(drover.KindInvalid, "there is no cloud %s", onlyCloud).WithHint("the configuration has %v", c.CloudNames())
}

// isTerminal reports whether people look at what is written to f.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}
