// Package azure is a cloud on Microsoft Azure.
//
// An instance is a virtual machine in one resource group, created by one call together with its disks, its network
// interface and, if configured, its public address, which are all deleted with it. It has the instance's name, and the
// call requires that the name is not in use, so a name makes one instance. The same call tags everything it creates.
//
// Azure answers a create request once it has accepted it; a lack of capacity shows up later. The driver does not wait
// for that: an instance that could not be created is listed as failed, with the reason. Azure's information is spread
// over several lists (model and tags, power states, addresses); List merges them all or fails.
//
// Instances share nothing. What a failed create request leaves behind (disks, interfaces, addresses) has the fleet's
// tag and the time of the request. Types, prices and quotas are cached on disk.
//
// The driver remembers one thing about instances: which ones it destroyed. Any other spot instance that ended was
// interrupted by Azure.
package azure

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"drover"
	"drover/driver"
	"drover/driver/kit"
	"drover/internal/diskcache"
)

// longestFleet leaves room for a number in the name of a virtual machine, which has at most 64 characters.
const longestFleet = 40

// listLag is an estimate. Microsoft documents nothing about lists of virtual machines, and others reported a list that
// lacked a new one: see docs/drivers.md.
const listLag = 2 * time.Minute

type cloud struct {
	kit.Planted

	o      driver.Options
	config Config
	api    *api

	types  *diskcache.Value[map[string]typeInfo]
	prices *diskcache.Value[priceList]
	disks  *diskcache.Value[map[string]drover.Money]
	limits *diskcache.Value[map[string]int64]
	spots  *diskcache.Value[map[string]spotInfo]

	noSpots   sync.Once // to log once that spot data is not available
	destroyed kit.Remembered
}

// outside replaces the network and the credentials in tests.
type outside struct {
	transport  policy.Transporter
	credential azcore.TokenCredential
}

// Open opens a resource group in a region, with the credentials that the Azure tools would use.
func Open(ctx context.Context, o driver.Options) (driver.Cloud, error) {
	return open(ctx, o, outside{})
}

func open(ctx context.Context, o driver.Options, world outside) (driver.Cloud, error) {
	var config Config
	if err := kit.Begin(&o, longestFleet, &config); err != nil {
		return nil, err
	}
	if config.Subscription = config.subscription(); config.Subscription == "" {
		return nil, drover.Errorf(drover.KindInvalid, "open cloud %s: no subscription is configured", o.Name).
			WithHint("write subscription: ID, set AZURE_SUBSCRIPTION_ID, or run az account set")
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	api, err := connect(config, world, o.Metric)
	if err != nil {
		return nil, fmt.Errorf("open cloud %s: %w", o.Name, err)
	}
	c := &cloud{o: o, config: config, api: api}
	keep := kit.Keep(o, config.Subscription, config.Location, config.Environment)
	c.types = diskcache.New(keep("types", typesAge), c.fetchTypes)
	c.prices = diskcache.New(keep("prices", pricesAge), c.fetchPrices)
	c.disks = diskcache.New(keep("disks", pricesAge), c.fetchDiskPrices)
	c.limits = diskcache.New(keep("quotas", limitsAge), c.fetchLimits)
	spots := keep("spots", spotsAge)
	spots.Pause = spotsPause
	c.spots = diskcache.New(spots, c.fetchSpots)
	return c, nil
}

// initID is the virtual machine's name. cloud-init has a UUID instead.
const initID = `$(curl -sf -H Metadata:true 'http://169.254.169.254/metadata/instance/compute/name?api-version=2021-02-01&format=text')`

func (c *cloud) Capabilities() driver.Capabilities {
	runs, most := c.config.FirstBoot()
	return driver.Capabilities{
		HostKeys: driver.HostKeysPlanted, PowerOff: driver.PowerOffStops, Notices: driver.NoticesAzure,
		Init: runs, MaxInit: most, Template: true, Project: c.config.Subscription, StopStart: true, StopSaves: true,
		Describe: true, ListLag: listLag, NodeID: "azure://" + c.config.nodes(), InitID: initID,
		Billing: drover.Billing{Least: time.Minute},
	}
}

// Close does nothing.
func (c *cloud) Close() error { return nil }
