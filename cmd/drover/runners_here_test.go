//go:build !e2e && !chaos && !qemu

package main

import "runtime"

// runners are those that are built into the binary under test, by architecture, each with what its build's environment has besides. This host's
// alone is as the tests are, so that little is compiled for it.
var runners = map[string][]string{runtime.GOARCH: nil}
