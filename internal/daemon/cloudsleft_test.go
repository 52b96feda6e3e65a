package daemon

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drover"
	"drover/driver/local"
	"drover/internal/config"
	"drover/internal/store"
)

func TestARemovedCloud(t *testing.T) {
	f, dir := aFolder(t), t.TempDir()
	file := func(name string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	removed := []string{file("hook", 0o700), file("init", 0o600), file("secret", 0o600)}
	c, err := config.Parse("drover.yaml", []byte(`version: 1
fleet: lab
clouds: {gone: {driver: local, cloud_init: ./init, max_instances: 3}, keyed: {driver: local, ssh: {keys: [./key]}}}
hooks: {ready: ./hook}
notify: {secret: file:secret}
`), dir)
	if err := errors.Join(err, keepClouds(f.Path(), c)); err != nil {
		t.Fatal(err)
	}
	for _, path := range removed {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("needs no files but those with which it is reached", func(t *testing.T) {
		if cloud, err := cloudLeft(f.Path(), "gone"); err != nil || cloud.Name != "gone" || cloud.MaxInstances != 3 {
			t.Errorf("got %+v, %v", cloud.Common, err)
		}
	})
	t.Run("is missed if the earlier configuration does not have it", func(t *testing.T) {
		if err := os.Rename(cloudFile(f.Path(), "gone"), cloudFile(f.Path(), "other")); err != nil {
			t.Fatal(err)
		}
		if _, err := cloudLeft(f.Path(), "other"); drover.KindOf(err) != drover.KindInvalid {
			t.Error(err)
		}
	})
	t.Run("that cannot be reached is named, with what to do", func(t *testing.T) {
		left, err := cloudLeft(f.Path(), "keyed")
		if err != nil {
			t.Fatal(err)
		}
		_, err = OpenFleet(t.Context(), FleetOptions{
			Program: Program{Drivers: map[string]Kind{"local": {Open: local.Open, Keys: local.Config{}}}},
			Fleet:   "lab", Config: config.Default("lab"), DB: f.DB(), File: f.File, Log: slog.New(slog.DiscardHandler),
			Left: func(context.Context, *store.Store, *config.Config) ([]config.Cloud, error) {
				return []config.Cloud{left}, nil
			},
		})
		if err == nil || !strings.Contains(err.Error(), "cloud keyed still has instances") || !strings.Contains(drover.AsError(err, "").Hint, "restore what is missing") {
			t.Error(err)
		}
	})
}
