// Package local is a cloud on this host: every instance is a process tree with its own SSH server.
//
// It makes everything that Drover does usable, and testable, without a cloud account. In every way that matters it is a
// real cloud: instances outlive the controller, are found again by listing, are reached only by SSH, can die at any
// moment, and cost something.
//
// An instance is the folder <Options.Folder>/<fleet>/<name> and two processes that hold a lock on it: the outer one,
// whose id is in the file pid, and inside it the guest, which serves SSH. Both are Drover's own binary, started from
// a copy in the folder .bin.
//
//	record.json      type, zone, market, public host key, and the address, which changes with each start
//	tags.json        the tags, replaced whole
//	pid              the outer process; killing it simulates a VM that dies
//	log              the log of the two processes
//	home, tmp, bin   the instance's own: $HOME, $TMPDIR, and a poweroff that ends this instance instead of this host
//	switch           the instance's dead-man switch
//	notices          the cloud's interruption notice to the instance
//	up               it has booted far enough to be stopped
//	stopped          it is being stopped; once the file contains how to start it again, it is stopped
//
// A locked folder is a live instance. An unlocked one is a dead instance: the next list ends its remaining processes and
// removes the folder. If the instance was taken back or stopped, it stays listed until it is destroyed. So an instance
// is never gone while one of its processes lives, with two exceptions: without privileges, a process that outlives the
// two above is known only by the marker in its environment; and an instance whose folder somebody else removes ends
// itself a moment later. Folders are created and removed, and tags change, only under the lock of the fleet's folder.
//
// Nothing is isolated: instances run as the user who runs Drover, see the whole host, and each offers all its
// processors. The host keys, like the client key that may log in, are planted; they are on disk only while an
// instance is stopped.
package local

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"drover"
	"drover/driver"
	"drover/driver/kit"
	"drover/driver/middleware"
)

// longestFleet is the longest fleet id that fits into the name of a folder, and half of an id.
const longestFleet = longestName

type cloud struct {
	o       driver.Options
	config  Config
	catalog catalog
	opened  time.Time

	program kit.Cache[string] // the copy that instances run from

	mu       sync.Mutex
	children []int // outer processes that this process started and must reap; guarded by mu
}

// Open opens the cloud on this host. Its configuration is optional throughout.
func Open(_ context.Context, o driver.Options) (driver.Cloud, error) {
	var c Config
	if err := kit.Begin(&o, longestFleet, &c); err != nil {
		return nil, err
	}
	folder, err := filepath.Abs(o.Folder)
	if err == nil {
		err = os.MkdirAll(folder, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("open cloud %s: %w", o.Name, err)
	}
	o.Folder = folder
	if c.Attributes != "" && !filepath.IsAbs(c.Attributes) {
		c.Attributes = filepath.Join(o.Dir, c.Attributes)
	}
	catalog, err := c.catalog(o)
	if err != nil {
		return nil, drover.Errorf(drover.KindInvalid, "open cloud %s: %v", o.Name, err)
	}
	all := &cloud{o: o, config: c, catalog: catalog, opened: time.Now()}
	return middleware.Inject(middleware.Intercept(all, all.call), c.Faults.ofCalls()), nil
}

func (c *cloud) Capabilities() driver.Capabilities {
	return driver.Capabilities{
		HostKeys: driver.HostKeysPlanted, PowerOff: cmp.Or(c.config.Faults.PowerOff, driver.PowerOffEnds), Notices: driver.NoticesFile, ManyCandidates: true,
		NodeID: "drover://" + c.o.Fleet + "/{name}", Describe: true, StopStart: true, StopSaves: true, Exposes: !c.config.Trusted, ListLag: -1, // lists read the folders
	}
}

// Close leaves the instances alone. It removes the fleet's folder if that is empty; otherwise os.IsExist reports the
// error.
func (c *cloud) Close() error {
	c.reap()
	if err := os.Remove(c.fleetFolder(c.o.Fleet)); err != nil && !os.IsNotExist(err) && !os.IsExist(err) {
		return fmt.Errorf("close cloud %s: %w", c.o.Name, err)
	}
	return nil
}

func (c *cloud) fleetFolder(fleet string) string { return filepath.Join(c.o.Folder, fleet) }

// call makes one call, unless its context has ended, and counts it.
func (c *cloud) call(ctx context.Context, call middleware.Call, do func(context.Context) error) error {
	gate := kit.Gate{Metric: c.o.Metric}
	return gate.Pass(ctx, string(call.Method), func() error { return do(ctx) })
}
