package daemon

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drover/driver/digitalocean"
	"drover/driver/external"
	"drover/driver/hetzner"
	"drover/driver/local"
	"drover/internal/config"
)

// covers D2
func TestStoppedInstancesAreRefusedWhereTheySaveNothing(t *testing.T) {
	t.Setenv("HCLOUD_TOKEN", "x")
	t.Setenv("DIGITALOCEAN_ACCESS_TOKEN", "x")
	drivers := map[string]Kind{
		"digitalocean": {Open: digitalocean.Open, Keys: digitalocean.Config{}},
		"external":     {Open: external.Open, Keys: external.Config{}},
		"hetzner":      {Open: hetzner.Open, Keys: hetzner.Config{}},
		"local":        {Open: local.Open, Keys: local.Config{}, Here: true},
	}
	says := func(can string) string {
		path := filepath.Join(t.TempDir(), "driver")
		if err := os.WriteFile(path, []byte("#!/bin/sh\ncat >/dev/null\necho '{\"result\": {"+can+"}}'\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		return "driver: external, command: [" + path + "]"
	}
	for name, test := range map[string]struct{ cloud, fault string }{
		"hetzner":                               {"driver: hetzner", "costs as much as a running one"},
		"digitalocean":                          {"driver: digitalocean", "costs as much as a running one"},
		"an external driver that cannot stop":   {says(""), "cannot stop instances"},
		"an external driver that saves nothing": {says(`"stop_start": true`), "costs as much as a running one"},
		"an external driver that saves":         {says(`"stop_start": true, "stop_saves": true`), ""},
		"local":                                 {"driver: local", ""},
	} {
		t.Run(name, func(t *testing.T) {
			text := "version: 1\nclouds: {there: {" + test.cloud + "}}\npools: {web: {size: 1, stopped: %d}}\n"
			for stopped := range 2 {
				c, err := config.Parse("drover.yaml", fmt.Appendf(nil, text, stopped), t.TempDir())
				if err != nil {
					t.Fatal(err)
				}
				clouds, err := OpenClouds(t.Context(), c.Clouds, Opening{Drivers: drivers, Fleet: "lab", Folder: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
				if err != nil {
					t.Fatal(err)
				}
				defer CloseClouds(clouds)
				refused := stopped > 0 && test.fault != ""
				if err := checkDrivers(c, clouds); (err != nil) != refused || refused && (!strings.Contains(err.Error(), test.fault) || !strings.Contains(err.Error(), "drover.yaml:3:")) {
					t.Errorf("with stopped: %d: %v, want %q", stopped, err, test.fault)
				}
			}
		})
	}
}
