// Package gce is a cloud on Google Compute Engine.
//
// The model. A cloud is a region of a project. An instance is made by instances.insert under a name that follows from ours, and a zone has a
// name once: asked for again, it is the instance there is. So one call tries one candidate, the first: a name in two zones would be two
// instances. The answer to the call is an operation, which is awaited for a few seconds, since that is how long Google takes to say that a
// zone or a quota is used up.
//
// Tags are labels, of the instance and of its disks, which go with it; what a label cannot hold is written in those characters that it can.
// Nothing is shared by a fleet's instances, so all that can be left over are disks.
//
// Host keys are asked for: an instance tells its own to Google as it boots, by guest attributes. Where cloud-init runs, they are planted.
//
// A spot instance that is taken back stays, stopped, so that it can be told from one that powered itself off: the engine destroys it, and its
// jobs lose no attempt. Types and prices are kept on disk. Nothing is tried twice here, and no call waits for a rate.
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

// longestFleet is what a fleet may be called.
const longestFleet = 64

// listLag is how far lists are taken to lag: Google documents nothing of it but that an operation is to be waited for, which Create does for a few
// seconds only.
const listLag = time.Minute

type cloud struct {
	o      driver.Options
	config Config
	api    *api

	zones  *diskcache.Value[[]string]
	types  *diskcache.Value[map[string]typeInfo]
	prices *diskcache.Value[priceList]
	months kit.Cache[[]dated]      // what prices were, by month
	images kit.Cache[drover.Bytes] // their sizes, by id
}

// Open opens a region of a project, with the credentials that Google's tools would use.
func Open(ctx context.Context, o driver.Options) (driver.Cloud, error) { return open(ctx, o, nil) }

// open does, over a client that stands for the network and its credentials if there is one.
func open(ctx context.Context, o driver.Options, client *http.Client) (driver.Cloud, error) {
	var config Config
	if err := kit.Begin(&o, longestFleet, &config); err != nil {
		return nil, err
	}
	api, err := connect(ctx, config, client, o.Metric)
	if err != nil {
		return nil, fmt.Errorf("open cloud %s: %w", o.Name, err)
	}
	c := &cloud{o: o, config: config, api: api}
	c.zones = diskcache.New(c.keep("zones", typesAge), c.fetchZones)
	c.types = diskcache.New(c.keep("types", typesAge), c.fetchTypes)
	c.prices = diskcache.New(c.keep("prices", pricesAge), c.fetchPrices)
	return c, nil
}

// keep says how something is kept. Its key is what the cloud is as far as catalogue and prices go.
func (c *cloud) keep(name string, age time.Duration) diskcache.Options {
	key := fmt.Sprint(c.api.project, " ", c.config.Region, " ", c.config.Zones)
	return diskcache.Options{Folder: c.o.Folder, Name: name, Key: key, Age: age, Log: c.o.Log}
}

func (c *cloud) Capabilities() driver.Capabilities {
	runs, most := c.config.FirstBoot()
	can := driver.Capabilities{
		HostKeys: driver.HostKeysVerified, PowerOff: driver.PowerOffStops, Notices: driver.NoticesGCE,
		Init: runs, MaxInit: most, Template: true, Project: c.api.project, StopStart: true, StopSaves: true, GrowDisk: true,
		Describe: true, ListLag: listLag, NodeID: "gce://" + c.api.project + "/{id}", // an id is ZONE/NAME
		Billing: drover.Billing{Least: time.Minute},
	}
	if c.config.Init == initCloud {
		can.HostKeys = driver.HostKeysPlanted
	}
	return can
}

// Close has nothing to end.
func (c *cloud) Close() error { return nil }
