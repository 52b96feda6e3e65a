package main

import (
	"drover/driver/local"
	"drover/internal/daemon"
)

// withLocal adds the cloud that this host can be.
func withLocal(drivers map[string]daemon.Kind) map[string]daemon.Kind {
	drivers["local"] = daemon.Kind{Open: local.Open, Keys: local.Config{}, Here: true}
	return drivers
}
