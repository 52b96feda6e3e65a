package main

import (
	"drover/driver/local"
	"drover/internal/daemon"
)

// withLocal adds the driver that makes this host a cloud.
func withLocal(drivers map[string]daemon.Kind) map[string]daemon.Kind {
	drivers["local"] = daemon.Kind{Open: local.Open, Keys: local.Config{}, Here: true}
	return drivers
}
