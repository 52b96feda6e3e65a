// Package openstack is a cloud on OpenStack: servers of Nova, images of Glance, volumes of Cinder.
//
// An instance is a server, created by one call with its name, its metadata (the tags) and its user data with the
// planted host key. Nova has no idempotency token, so the driver looks for the name before it creates a server, one
// call per name at a time. Nova immediately refuses a server over a quota, but it accepts servers that it then cannot
// create: such a server is listed in the state ERROR with the reason, counts against the quota, and must be destroyed.
//
// List requests all servers, without a filter or a limit, and filters them itself: only then does Nova show that a part
// of the cloud does not answer. With a filter it omits that part, and live instances would seem to be gone.
//
// OpenStack has no prices and no spot market. Prices come from the configuration, from the flavors' extra specs, or
// from sizes. Instances share nothing, and their volumes are deleted with them, so nothing is left behind.
//
// The driver repeats only one kind of call: one that was refused because the token had expired.
package openstack

import (
	"cmp"
	"context"
	"fmt"
	"net/http"

	"drover/driver"
	"drover/driver/kit"
	"drover/internal/diskcache"
)

// longestFleet leaves room for a prefix in a server's tag, which has at most 60 characters.
const longestFleet = 32

// listLag is the assumed lag of lists: Nova makes each list from its databases, and the lag of their replicas is not
// documented.
const listLag = driver.DefaultListLag

type cloud struct {
	kit.Planted

	o      driver.Options
	config Config
	api    *api

	flavors *diskcache.Value[map[string]flavor] // by name
	zones   *diskcache.Value[[]string]
	names   kit.Names
	images  kit.Cache[int] // sizes, by id: see volumeFor
}

// Open opens a project of a cloud, with the credentials that the OpenStack tools would use. It makes no call.
func Open(ctx context.Context, o driver.Options) (driver.Cloud, error) { return open(o, nil) }

// open is Open with an HTTP transport, if one is given.
func open(o driver.Options, network http.RoundTripper) (driver.Cloud, error) {
	var config Config
	if err := kit.Begin(&o, longestFleet, &config); err != nil {
		return nil, err
	}
	who, err := findCredentials(config)
	if err != nil {
		return nil, fmt.Errorf("open cloud %s: %w", o.Name, err)
	}
	c := &cloud{o: o, config: config, api: connect(who, network, kit.Gate{Metric: o.Metric})}
	keep := kit.Keep(o, who.auth.IdentityEndpoint, who.project(), who.endpoints.Region, config.PriceSpec, config.GPUAliases)
	c.flavors = diskcache.New(keep("flavors", flavorsAge), c.fetchFlavors)
	c.zones = diskcache.New(keep("zones", zonesAge), c.fetchZones)
	return c, nil
}

func (c *cloud) Capabilities() driver.Capabilities {
	runs, most := c.config.FirstBoot()
	return driver.Capabilities{
		HostKeys: driver.HostKeysPlanted, PowerOff: driver.PowerOffStops, Init: runs, MaxInit: most,
		Template: true, Project: c.api.who.project(), StopStart: true, StopSaves: !c.config.BillsStopped, GrowDisk: c.config.grows(),
		Describe: true, ListLag: listLag, NodeID: "openstack:///{id}",
	}
}

// Close closes idle connections.
func (c *cloud) Close() error {
	c.api.http.CloseIdleConnections()
	return nil
}

// project returns the project's name, if the credentials contain it: an application credential does not.
func (c credentials) project() string {
	name := cmp.Or(c.auth.TenantName, c.auth.TenantID)
	if s := c.auth.Scope; s != nil {
		name = cmp.Or(name, s.ProjectName, s.ProjectID)
	}
	return name
}
