package openstack

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// List lists all of the project's servers, and keeps those with the tags.
func (c *cloud) List(ctx context.Context, tags map[string]string) (all []driver.Instance, err error) {
	found, version, err := c.api.listServers(ctx, "")
	if err != nil {
		return nil, errs.Classify("list instances", err)
	}
	for _, s := range found {
		if version >= downCells && unreached(s) {
			return nil, drover.Errorf(drover.KindTransient, "list instances: the Nova cell of server %s does not respond", s.ID)
		}
		if !(driver.Instance{Tags: s.Metadata}).Bears(tags) {
			continue
		}
		switch in, err := c.instance(ctx, s); {
		case err == nil:
			all = append(all, in)
		case errs.StatusOf(err) != http.StatusNotFound: // otherwise it has just been deleted
			return nil, errs.Classify("list instances", err)
		}
	}
	return all, nil
}

// unreached reports whether a server's part of the cloud does not answer.
func unreached(s servers.Server) bool { return s.Status == statusUnknown && s.Name == "" }

// Describe reads one server.
func (c *cloud) Describe(ctx context.Context, id string) (driver.Instance, error) {
	var in driver.Instance
	s, err := c.api.getServer(ctx, id)
	switch {
	case err != nil:
	case unreached(*s):
		err = drover.Errorf(drover.KindTransient, "its Nova cell does not respond")
	case s.Status == "DELETED", s.Status == "SOFT_DELETED":
		in.Ended, err = drover.TimeOf(s.TerminatedAt), drover.Errorf(drover.KindNotFound, "it is in state %s", s.Status)
	default:
		in, err = c.instance(ctx, *s)
	}
	return in, errs.Classify("describe instance "+id, err)
}

// The states of a server that matter here, and the task that ends it.
const (
	statusBuild   = "BUILD"
	statusError   = "ERROR"
	statusUnknown = "UNKNOWN"
	statusOff     = "SHUTOFF"
	taskDeleting  = "deleting"
)

// stopped are the states in which a server exists but does not run.
var stopped = []string{statusOff, "PAUSED", "SUSPENDED", "SHELVED", "SHELVED_OFFLOADED"}

// instance translates a server. If the server never had a host, Nova returns the reason only with that single server.
func (c *cloud) instance(ctx context.Context, s servers.Server) (driver.Instance, error) {
	if unlaunched(s) && s.Fault.Message == "" && s.TaskState != taskDeleting {
		whole, err := c.api.getServer(ctx, s.ID)
		if err != nil {
			return driver.Instance{}, err
		}
		s = *whole
	}
	in := driver.Instance{
		ID: s.ID, Tags: s.Metadata, Zone: s.AvailabilityZone, Market: drover.OnDemand, State: stateOf(s), Addresses: addresses(s),
		Created: drover.TimeOf(s.Created),
	}
	if unmade(s) {
		in.Failed = errs.Error("create instance "+s.Name, drover.OnDemand, kit.Answer{Code: statusError, Message: s.Fault.Message})
	}
	var err error
	in.ProviderType, err = c.flavorOf(ctx, s)
	return in, err
}

// faultTime is how long Nova may take to report why a server failed.
const faultTime = time.Minute

// unlaunched reports whether a server failed before it ever ran.
func unlaunched(s servers.Server) bool { return s.Status == statusError && s.LaunchedAt.IsZero() }

// unmade reports whether a server was accepted but could not be created, and Nova has reported the reason or has had
// enough time to.
func unmade(s servers.Server) bool {
	return unlaunched(s) && (s.Fault.Message != "" || time.Since(s.Updated) > faultTime)
}

// flavorOf returns the name of a server's flavor. Older versions of Nova return its id.
func (c *cloud) flavorOf(ctx context.Context, s servers.Server) (string, error) {
	if name, ok := s.Flavor["original_name"].(string); ok {
		return name, nil
	}
	id, _ := s.Flavor["id"].(string)
	known, err := c.flavors.Get(ctx)
	if err != nil && drover.KindOf(err) != drover.KindInvalid { // the project may no longer see any
		return "", errs.Aside(err)
	}
	for name, f := range known {
		if f.ID == id {
			return name, nil
		}
	}
	return id, nil // of a flavor that no longer exists
}

// stateOf translates the state. A server in the state ERROR may be running, if it failed after it was created.
func stateOf(s servers.Server) driver.State {
	switch {
	case s.TaskState == taskDeleting, s.Status == "DELETED", s.Status == "SOFT_DELETED":
		return driver.Stopping
	case s.Status == statusBuild, s.Status == "REBUILD", unlaunched(s) && !unmade(s):
		return driver.Pending
	case slices.Contains(stopped, s.Status), s.Status == statusError && s.PowerState != servers.RUNNING:
		return driver.Stopped
	}
	return driver.Running
}

// addresses returns the first fixed and the first floating address, in the order of the networks' names; it prefers
// IPv4.
func addresses(s servers.Server) (a driver.Addresses) {
	for _, v := range []float64{4, 6} {
		for _, network := range slices.Sorted(maps.Keys(s.Addresses)) {
			ports, _ := s.Addresses[network].([]any)
			for _, port := range ports {
				p, _ := port.(map[string]any)
				address, _ := p["addr"].(string)
				switch {
				case p["version"] != v:
				case p["OS-EXT-IPS:type"] == "floating" && a.Public == "":
					a.Public = address
				case p["OS-EXT-IPS:type"] != "floating" && a.Private == "":
					a.Private = address
				}
			}
		}
	}
	return a
}

// SetTags replaces the metadata, except the configured one.
func (c *cloud) SetTags(ctx context.Context, id string, tags map[string]string) error {
	return errs.Classify("tag instance "+id, c.bring(ctx, id, "", func(s *session) error {
		return servers.ResetMetadata(ctx, s.compute, id, servers.MetadataOpts(kit.MergeTags(c.config.Tags, tags))).Err
	}))
}
