package azure

import (
	"context"
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
		c.mu.Lock()
		c.ended[id] = true
		c.mu.Unlock()
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

// Leftovers are the fleet's disks, interfaces and addresses that no instance owns. Disks have the tags that their instance was created with.
// Interfaces come before the addresses that they hold.
func (c *cloud) Leftovers(ctx context.Context, fleet string) (all []driver.Leftover, err error) {
	add := func(kind, name string, tags map[string]*string, made drover.Time) {
		if kit.Value(tags[driver.TagFleet]) == fleet {
			all = append(all, driver.Leftover{Kind: kind, ID: name, Tags: values(tags), Created: made})
		}
	}
	disks, err := list[armcompute.Disk](ctx, c.api, "ListDisks")
	if err != nil {
		return nil, errs.Classify("list disks", err)
	}
	for _, d := range disks {
		if d.ManagedBy == nil && kit.Value(kit.Value(d.Properties).DiskState) == armcompute.DiskStateUnattached {
			add(leftoverDisk, kit.Value(d.Name), d.Tags, drover.TimeOf(kit.Value(d.Properties.TimeCreated)))
		}
	}
	interfaces, err := list[networkInterface](ctx, c.api, "ListInterfaces")
	if err != nil {
		return nil, errs.Classify("list network interfaces", err)
	}
	for _, i := range interfaces {
		if i.Properties != nil && i.Properties.VirtualMachine == nil {
			add(leftoverInterface, kit.Value(i.Name), i.Tags, madeAt(i.Tags))
		}
	}
	addresses, err := list[publicAddress](ctx, c.api, "ListAddresses")
	if err != nil {
		return nil, errs.Classify("list public addresses", err)
	}
	for _, a := range addresses {
		if a.Properties != nil && a.Properties.IPConfiguration == nil {
			add(leftoverAddress, kit.Value(a.Name), a.Tags, madeAt(a.Tags))
		}
	}
	return all, nil
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
	remove, known := map[string]string{leftoverDisk: "DeleteDisk", leftoverInterface: "DeleteInterface", leftoverAddress: "DeleteAddress"}[s.Kind]
	if !known {
		return drover.Errorf(drover.KindInvalid, "a %s is nothing that this cloud takes away", s.Kind)
	}
	err := c.api.do(ctx, remove, s.ID, nil, nil)
	if kind := errs.KindOf(err); kind == drover.KindConflict || kind == drover.KindNotFound {
		return nil
	}
	return errs.Classify("take away "+s.Kind+" "+s.ID, err)
}
