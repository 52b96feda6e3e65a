//go:build runners

package main

import "embed"

// embedded has the runners, which make build makes before it builds this program.
//
//go:embed runners/linux-*.gz
var embedded embed.FS
