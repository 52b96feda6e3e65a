package daemon

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"drover"
	"drover/driver"
	"drover/driver/local"
	"drover/internal/config"
)

// region is a cloud with fixed instances.
type region struct {
	driver.Cloud
	instances []driver.Instance
}

func (r region) List(context.Context, map[string]string) ([]driver.Instance, error) {
	return r.instances, nil
}

// configure writes a configuration with one cloud.
func configure(t *testing.T, file, driver string) {
	t.Helper()
	text := "version: 1\nfleet: lab\nstate: sqlite:drover.db\nlisten: 127.0.0.1:0\nclouds: {here: {driver: " + driver + "}}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestACloudKeepsItsInstances(t *testing.T) {
	one := driver.Instance{
		ID: "i-1", Tags: map[string]string{driver.TagFleet: "lab", driver.TagName: "lab-1"},
		ProviderType: "local", Zone: "local", Market: drover.OnDemand, State: driver.Running, Created: 1,
	}
	opener := func(instances ...driver.Instance) Kind {
		return Kind{Keys: local.Config{}, Open: func(ctx context.Context, o driver.Options) (driver.Cloud, error) {
			cloud, err := local.Open(ctx, o)
			return region{cloud, instances}, err
		}}
	}
	file := filepath.Join(t.TempDir(), "drover.yaml")
	log := &logged{}
	serve := func() error {
		return Serve(t.Context(), Options{
			Program: Program{Drivers: map[string]Kind{"north": opener(one), "south": opener()}},
			File:    file, Load: func() (*config.Config, error) { return config.Load(file) }, Log: slog.New(slog.NewTextHandler(log, nil)),
		})
	}
	configure(t, file, "north")
	c, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	f, err := NewFolder(c)
	if err := errors.Join(err, f.Make(), os.WriteFile(f.File("fleet.key"), make([]byte, 32), 0o600)); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- serve() }()
	log.await(t, "adopted instance lab-1", 1)

	const missing = "the cloud lists instance i-1 with its earlier configuration, but not with this one"
	configure(t, file, "south")
	log.await(t, missing, 1)
	if err := errors.Join(syscall.Kill(os.Getpid(), syscall.SIGTERM), <-ended); err != nil {
		t.Fatal(err)
	}
	if err := serve(); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("the controller was started in another region: %v", err)
	}
}
