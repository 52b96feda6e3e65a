// Package gce is a cloud on Google Compute Engine.
//
// A cloud is a region of a project. An instance is created by instances.insert under a name derived from Drover's. A
// name is unique only within a zone, so one call tries only the first candidate: the same name in two zones would be
// two instances. The call returns an operation, for which the driver waits a few seconds, since Google takes that long
// to report that a zone or a quota is exhausted.
//
// Tags are labels of the instance and its disks, which are deleted with it, encoded where labels are too strict.
// Instances share nothing, so only disks can be left over.
//
// An instance publishes its host key through guest attributes while booting, and the driver reads it from Google. With
// cloud-init, host keys are planted.
//
// An interrupted spot instance is stopped, not deleted; Google's operations distinguish it from one that powered itself
// off. Types and prices are cached on disk.
package gce

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"drover"
	"drover/driver"
	"drover/driver/kit"
	"drover/internal/diskcache"
)

// longestFleet limits a fleet's name.
const longestFleet = 64

// listLag is the assumed lag of lists: Google documents only that a client should wait for an operation, which Create
// does for just a few seconds.
const listLag = time.Minute

type cloud struct {
	o      driver.Options
	config Config
	api    *api

	zones  *diskcache.Value[[]string]
	types  *diskcache.Value[map[string]typeInfo]
	prices *diskcache.Value[priceList]
	months kit.Cache[[]dated]      // past prices, by month
	images kit.Cache[drover.Bytes] // their sizes, by id
	spent  kit.Remembered          // request ids of calls that created nothing and are worth repeating
}

// Open opens a region of a project, with the credentials that Google's tools would use.
func Open(ctx context.Context, o driver.Options) (driver.Cloud, error) { return open(ctx, o, nil) }

// open is Open with a network that needs no credentials, if one is given.
func open(ctx context.Context, o driver.Options, network http.RoundTripper) (driver.Cloud, error) {
	var config Config
	if err := kit.Begin(&o, longestFleet, &config); err != nil {
		return nil, err
	}
	api, err := connect(ctx, config, network, o.Metric)
	if err != nil {
		return nil, fmt.Errorf("open cloud %s: %w", o.Name, err)
	}
	c := &cloud{o: o, config: config, api: api}
	keep := kit.Keep(o, api.project, config.Region, config.Zones)
	c.zones = diskcache.New(keep("zones", typesAge), c.fetchZones)
	c.types = diskcache.New(keep("types", typesAge), c.fetchTypes)
	c.prices = diskcache.New(keep("prices", pricesAge), c.fetchPrices)
	return c, nil
}

// initID is ZONE/NAME, like every id here. cloud-init has a number instead.
const initID = `$(m=http://metadata.google.internal/computeMetadata/v1/instance; get() { curl -sf -H Metadata-Flavor:Google "$m/$1"; }; z=$(get zone); echo "${z##*/}/$(get name)")`

func (c *cloud) Capabilities() driver.Capabilities {
	runs, most := c.config.FirstBoot()
	can := driver.Capabilities{
		HostKeys: driver.HostKeysVerified, PowerOff: driver.PowerOffStops, Notices: driver.NoticesGCE,
		Init: runs, MaxInit: most, Template: true, Project: c.api.project, StopStart: true, StopSaves: true, GrowDisk: true,
		Describe: true, ListLag: listLag, NodeID: "gce://" + c.api.project + "/{id}", InitID: initID,
		Billing: drover.Billing{Least: time.Minute},
	}
	if c.config.Init == initCloud {
		can.HostKeys = driver.HostKeysPlanted
	}
	return can
}

// Close does nothing.
func (c *cloud) Close() error { return nil }
