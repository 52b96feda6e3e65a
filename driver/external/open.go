// Package external is a cloud driven by a user's program, in any language.
//
// The program exchanges JSON, one object per line: it is either started for each call, or stays and answers many.
// docs/clouds/external.md specifies the protocol; protocol.go has its types. The program is not trusted: its replies
// are limited in size and time, a reply with any mistake is an error as a whole, and its standard error is logged up to
// a limit.
//
// The program itself must ensure that repeating a create with one name never makes a second instance, and that an
// instance has its tags from the start.
package external

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// Config is the driver's part of the configuration.
type Config struct {
	Command      []string          `yaml:"command,required" doc:"the program and its first arguments; a path with a slash is relative to this file"`
	Protocol     Protocol          `yaml:"protocol" doc:"call: start the program for each call; stream: start it once, for many calls"`
	Timeout      time.Duration     `yaml:"timeout" doc:"how long one call may take"`
	Options      map[string]string `yaml:"options" doc:"passed to the program unchanged"`
	Types        []kit.Type        `yaml:"types" doc:"the types to offer; default: those that the program lists"`
	Zones        []string          `yaml:"zones"`
	Markets      []drover.Market   `yaml:"markets"`
	SpotDiscount kit.Percent       `yaml:"spot_discount"`
}

// Protocol is how Drover communicates with a program.
type Protocol string

// The two protocols.
const (
	ByCall   Protocol = "call"
	ByStream Protocol = "stream"
)

// Default is a program started for each call, in one zone and market.
func (c *Config) Default() {
	*c = Config{Protocol: ByCall, Timeout: 2 * time.Minute, Zones: []string{"default"}, Markets: []drover.Market{drover.OnDemand}, SpotDiscount: 60}
}

// Check finds what the types of the fields cannot.
func (c *Config) Check() error {
	switch {
	case len(c.Command) == 0 || c.Command[0] == "":
		return drover.Errorf(drover.KindInvalid, "command must specify a program").WithHint("write command: [./driver.sh]")
	case c.Protocol != ByCall && c.Protocol != ByStream:
		return drover.Errorf(drover.KindInvalid, "protocol: %q is neither %s nor %s", c.Protocol, ByCall, ByStream)
	case c.Timeout <= 0:
		return drover.Errorf(drover.KindInvalid, "timeout must be greater than 0")
	}
	return nil
}

// speaker sends one request to the program and returns its reply, of which it has checked only the size.
type speaker interface {
	speak(ctx context.Context, call string, id int64, request []byte) (reply []byte, err error)
	Close() error
}

type cloud struct {
	o       driver.Options
	config  Config
	program speaker
	ids     atomic.Int64 // of requests
	can     driver.Capabilities
	calls   []string // the program's optional calls
}

// Open prepares or starts the program and queries its capabilities.
func Open(ctx context.Context, o driver.Options) (driver.Cloud, error) {
	c := &cloud{}
	if err := kit.Begin(&o, longest, &c.config); err != nil {
		return nil, err
	}
	c.o = o
	command, err := c.command()
	if err != nil {
		return nil, err
	}
	if c.config.Protocol == ByStream {
		c.program = newStream(command, c.logOutput())
	} else {
		c.program = newCaller(command, c.logOutput())
	}
	if err := c.hello(ctx); err != nil {
		c.program.Close()
		return nil, err
	}
	return c, nil
}

// command finds the program, and creates the folder in which it may keep files.
func (c *cloud) command() ([]string, error) {
	args := slices.Clone(c.config.Command)
	if strings.Contains(args[0], "/") && !filepath.IsAbs(args[0]) {
		args[0] = filepath.Join(c.o.Dir, args[0])
	}
	path, err := exec.LookPath(args[0])
	if err == nil {
		args[0], err = filepath.Abs(path)
	}
	if err == nil {
		c.o.Folder, err = filepath.Abs(c.o.Folder)
	}
	if err == nil {
		err = os.MkdirAll(c.o.Folder, 0o700)
	}
	if err != nil {
		return nil, drover.Errorf(drover.KindInvalid, "open cloud %s: %v", c.o.Name, err).WithHint("command must specify a program, for example [./driver.sh]")
	}
	return args, nil
}

// hello queries the program's capabilities, and refuses unknown values.
func (c *cloud) hello(ctx context.Context) error {
	var said opened
	if err := c.call(ctx, "open", nil, &said); err != nil {
		return fmt.Errorf("cloud %s: %w", c.o.Name, err)
	}
	can, err := said.check()
	if err != nil {
		return drover.Errorf(drover.KindInvalid, "open cloud %s: the driver program says: %v", c.o.Name, err)
	}
	c.can, c.calls = can, said.Calls
	return nil
}

// Capabilities returns what the program reported when it was opened.
func (c *cloud) Capabilities() driver.Capabilities { return c.can }

// Close ends the program. Instances stay.
func (c *cloud) Close() error { return c.program.Close() }
