//go:build runners

package main

import "embed"

// embedded has the runners, which make build builds before this program.
//
//go:embed runners/linux-*.gz
var embedded embed.FS
