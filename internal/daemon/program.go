// Package daemon is a running controller: it opens the clouds of a configuration with the drivers that are compiled
// in, keeps the folder of a daemon or a run, makes a controller from both, and, for a daemon, serves its API and
// reloads its configuration.
package daemon

import (
	"io/fs"
	"reflect"
	"runtime"
	"runtime/debug"

	"drover/driver"
	"drover/internal/config"
)

// Program is what a main package provides.
type Program struct {
	Version string
	Drivers map[string]Kind
	Runners fs.FS // the programs for instances: runners/linux-ARCH.gz, if there are any
}

// Kind is a kind of cloud.
type Kind struct {
	Open driver.Opener
	Keys any  // of the type into which it decodes its own keys of the configuration; a [booted] if that is known before a cloud is open
	Here bool // it is on this host, so that calls to it need no network
}

// CheckKeys refuses a cloud whose own keys its driver cannot read.
func (k Kind) CheckKeys(c config.Cloud) error {
	return c.Decode(reflect.New(reflect.TypeOf(k.Keys)).Interface())
}

// CheckKeys refuses a configuration that names an unknown driver, or whose drivers cannot read their own keys.
func (p Program) CheckKeys(c *config.Config) error {
	if err := p.Check(c); err != nil {
		return err
	}
	for _, cloud := range c.Clouds {
		if err := p.Drivers[cloud.Driver].CheckKeys(cloud); err != nil {
			return err
		}
	}
	return nil
}

// Build describes the build of a program.
type Build struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

// Build describes this program.
func (p Program) Build() Build {
	v := Build{Version: p.Version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				v.Commit = s.Value
			}
		}
	}
	return v
}
