//go:build !runners

package main

import "embed"

// embedded has no runners: what a plain go build makes goes to instances itself.
var embedded embed.FS
