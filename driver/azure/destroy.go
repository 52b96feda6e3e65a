package azure

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v8"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// Destroy ends an instance; its disks, its interface and its address go with it. Azure is told not to wait until it has shut down.
func (c *cloud) Destroy(ctx context.Context, id string) error {
	err := c.api.do(ctx, "DeleteVM", id, nil, nil)
	if err == nil {
		c.destroyed.Add(id)
	}
	return errs.Gone("destroy instance "+id, err)
}

// Stop stops an instance and gives its processors back; its disks and its address are still paid.
func (c *cloud) Stop(ctx context.Context, id string) error {
	return errs.Classify("stop instance "+id, c.api.do(ctx, "DeallocateVM", id, nil, nil))
}

// Start starts an instance that was stopped. Azure may have no room for it any more, which is then listed.
func (c *cloud) Start(ctx context.Context, id string) error {
	return errs.Classify("start instance "+id, c.api.do(ctx, "StartVM", id, nil, nil))
}

// What can be left over.
const (
	leftoverDisk      = "disk"
	leftoverInterface = "network interface"
	leftoverAddress   = "public address"
)

// parts are what can be left over, and the calls for it. Interfaces come before the addresses that they hold.
var parts = []struct{ kind, list, remove string }{
	{leftoverDisk, "ListDisks", "DeleteDisk"},
	{leftoverInterface, "ListInterfaces", "DeleteInterface"},
	{leftoverAddress, "ListAddresses", "DeleteAddress"},
}

// Leftovers are the fleet's disks, interfaces and addresses that no instance owns. Disks have the tags that their instance was created with.
func (c *cloud) Leftovers(ctx context.Context, fleet string) (all []driver.Leftover, err error) {
	for _, of := range parts {
		found, err := list[attachment](ctx, c.api, of.list)
		if err != nil {
			return nil, errs.Classify("list what can be left over: "+of.kind, err)
		}
		for _, p := range found {
			if p.loose(of.kind) && kit.Value(p.Tags[driver.TagFleet]) == fleet {
				created := cmp.Or(drover.TimeOf(p.Properties.TimeCreated), madeAt(p.Tags))
				all = append(all, driver.Leftover{Kind: of.kind, ID: kit.Value(p.Name), Tags: values(p.Tags), Created: created})
			}
		}
	}
	return all, nil
}

// loose reports whether no instance owns it, as far as Azure says.
func (p *attachment) loose(kind string) bool {
	if p.Properties == nil || kind == leftoverDisk {
		return p.Properties != nil && p.ManagedBy == nil && p.Properties.DiskState == string(armcompute.DiskStateUnattached)
	}
	return p.Properties.VirtualMachine == nil && p.Properties.IPConfiguration == nil
}

// madeAt is when something was asked for, by its tag; 0 if that does not say.
func madeAt(tags map[string]*string) drover.Time {
	s, err := strconv.ParseInt(kit.Value(tags[tagMade]), 10, 64)
	if err != nil || s <= 0 {
		return 0
	}
	return drover.TimeOf(time.Unix(s, 0))
}

func seconds(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }

// Remove takes a leftover away. Azure refuses to take away what an instance owns.
func (c *cloud) Remove(ctx context.Context, s driver.Leftover) error {
	at := slices.IndexFunc(parts, func(p struct{ kind, list, remove string }) bool { return p.kind == s.Kind })
	if at < 0 {
		return drover.Errorf(drover.KindInvalid, "this cloud removes no leftovers of kind %s", s.Kind)
	}
	err := c.api.do(ctx, parts[at].remove, s.ID, nil, nil)
	if kind := errs.KindOf(err); kind == drover.KindConflict || kind == drover.KindNotFound {
		return nil
	}
	return errs.Classify("take away "+s.Kind+" "+s.ID, err)
}
