//go:build e2e || chaos || qemu

package main

// runners are those that are built into the binary under test, by architecture, each with what its build's environment has besides: as in a
// release, both, and static.
var runners = map[string][]string{
	"amd64": {"CGO_ENABLED=0", "GOARCH=amd64"},
	"arm64": {"CGO_ENABLED=0", "GOARCH=arm64"},
}
