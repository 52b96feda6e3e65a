//go:build !runners

package main

import "embed"

// embedded has no runners: a program from a plain go build deploys itself to instances.
var embedded embed.FS
