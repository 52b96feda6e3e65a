package drivertest

import (
	"log/slog"
	"testing"

	"drover/driver"
	"drover/internal/config"
)

// Options are those of a cloud of this name, whose own keys are as a configuration has them on one line: "zones: [a], markets: [spot]".
func Options(t testing.TB, cloud, kind, fleet, keys, folder string) driver.Options {
	t.Helper()
	c, err := config.Parse("drover.yaml", []byte("version: 1\nclouds: {"+cloud+": {driver: "+kind+", "+keys+"}}\n"), folder)
	if err != nil {
		t.Fatal(err)
	}
	return driver.Options{Name: cloud, Fleet: fleet, Folder: folder, Log: slog.New(slog.DiscardHandler), Decode: c.Clouds[0].Decode}
}
