//go:build !linux

package main

import "drover/internal/daemon"

// withLocal adds nothing: instances run Linux, so this host cannot be a cloud.
func withLocal(drivers map[string]daemon.Kind) map[string]daemon.Kind { return drivers }
