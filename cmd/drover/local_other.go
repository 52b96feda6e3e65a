//go:build !linux

package main

import "drover/internal/cli"

// withLocal adds nothing: instances run Linux, so this host can be none.
func withLocal(drivers map[string]cli.Kind) map[string]cli.Kind { return drivers }
