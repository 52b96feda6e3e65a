package azure

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// Destroy deletes an instance with its disks, interface and address, without waiting for it to shut down.
func (c *cloud) Destroy(ctx context.Context, id string) error {
	err := c.api.do(ctx, "DeleteVM", id, nil, nil)
	if status := errs.StatusOf(err); status < http.StatusBadRequest || status >= http.StatusInternalServerError {
		c.destroyed.Add(id) // without an answer, Azure may have accepted the request, too
	}
	return errs.Gone("destroy instance "+id, err)
}

// Stop deallocates an instance; its disks and address still cost money.
func (c *cloud) Stop(ctx context.Context, id string) error {
	return errs.Classify("stop instance "+id, c.api.do(ctx, "DeallocateVM", id, nil, nil))
}

// Start starts a stopped instance. A lack of capacity shows up later in the list.
func (c *cloud) Start(ctx context.Context, id string) error {
	return errs.Classify("start instance "+id, c.api.do(ctx, "StartVM", id, nil, nil))
}

// The kinds of leftovers.
const (
	leftoverDisk      = "disk"
	leftoverInterface = "network interface"
	leftoverAddress   = "public address"
)

// parts are the kinds of leftovers, with their calls. Interfaces come before the addresses that they hold.
var parts = []struct{ kind, list, remove string }{
	{leftoverDisk, "ListDisks", "DeleteDisk"},
	{leftoverInterface, "ListInterfaces", "DeleteInterface"},
	{leftoverAddress, "ListAddresses", "DeleteAddress"},
}

// Leftovers are the fleet's disks, interfaces and addresses without an instance. A disk has the tags with which its
// instance was created.
func (c *cloud) Leftovers(ctx context.Context, fleet string) (all []driver.Leftover, err error) {
	for _, of := range parts {
		found, failed := list[attachment](ctx, c.api, of.list)
		err = errors.Join(err, errs.Classify("list leftovers: "+of.kind, failed))
		for _, p := range found {
			if p.loose(of.kind) && p.Tags[driver.TagFleet] == fleet {
				created := cmp.Or(drover.TimeOf(time.Time(kit.Value(p.Properties.TimeCreated))), madeAt(p.Tags))
				all = append(all, driver.Leftover{Kind: of.kind, ID: p.Name, Tags: p.Tags, Created: created})
			}
		}
	}
	return all, err
}

// loose reports whether, according to Azure, no instance owns the leftover.
func (p attachment) loose(kind string) bool {
	if p.Properties == nil || kind == leftoverDisk {
		return p.Properties != nil && p.ManagedBy == "" && p.Properties.DiskState == "Unattached"
	}
	return p.Properties.VirtualMachine == nil && p.Properties.IPConfiguration == nil
}

// madeAt returns when something was requested, according to its tag; 0 if it has none.
func madeAt(tags map[string]string) drover.Time {
	s, err := strconv.ParseInt(tags[tagMade], 10, 64)
	if err != nil || s <= 0 {
		return 0
	}
	return drover.TimeOf(time.Unix(s, 0))
}

// Remove removes a leftover. Azure refuses if an instance owns it.
func (c *cloud) Remove(ctx context.Context, l driver.Leftover) error {
	at := slices.IndexFunc(parts, func(p struct{ kind, list, remove string }) bool { return p.kind == l.Kind })
	if at < 0 {
		return drover.Errorf(drover.KindInvalid, "this driver cannot remove leftover resources of type %s", l.Kind)
	}
	err := c.api.do(ctx, parts[at].remove, l.ID, nil, nil)
	if kind := errs.KindOf(err); kind == drover.KindConflict || kind == drover.KindNotFound {
		return nil
	}
	return errs.Classify("remove "+l.Kind+" "+l.ID, err)
}
