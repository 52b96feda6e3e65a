package main

import (
	"drover/driver/local"
	"drover/internal/cli"
)

// withLocal adds the cloud that this host can be.
func withLocal(drivers map[string]cli.Kind) map[string]cli.Kind {
	drivers["local"] = cli.Kind{Open: local.Open, Keys: local.Config{}, Here: true}
	return drivers
}
