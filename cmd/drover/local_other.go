//go:build !linux

package main

import "drover/internal/daemon"

// withLocal adds nothing: instances run Linux, so this host can be none.
func withLocal(drivers map[string]daemon.Kind) map[string]daemon.Kind { return drivers }
