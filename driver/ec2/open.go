// Package ec2 is a cloud on Amazon EC2.
//
// An instance is created by an instant fleet, so that one call tries several types and zones; only the instance
// remains. A launch template contains what instances have in common; instances that differ in it get another template.
// The create call has the rest: user data with the planted host key, the image and the volumes. The same call tags the
// instance and its volumes. Its client token is derived from the instance's name, so a name makes one instance.
//
// Only instances and their volumes cost money. Launch templates and a key pair are tagged with the fleet and removed
// with it. Types and prices are cached on disk, so that a start does not wait for them.
//
// The driver remembers one thing about instances: which ones it destroyed. EC2 lists an instance that it interrupted or
// could not launch for another hour after it ends, and the driver must not list it once it has been destroyed.
package ec2

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"drover"
	"drover/driver"
	"drover/driver/kit"
	"drover/internal/diskcache"
)

// longestFleet leaves room in the names of key pairs and launch templates, which have at most 128 characters.
const longestFleet = 64

// listLag is the longest wait between two reads that "Eventual consistency in the Amazon EC2 API" recommends.
const listLag = 5 * time.Minute

// mostEndings is how many instances one TerminateInstances accepts.
const mostEndings = 1000

type cloud struct {
	kit.Planted

	o      driver.Options
	config Config
	api    *api

	types      *diskcache.Value[map[string]typeInfo]
	listPrices *diskcache.Value[map[string]drover.Money]
	spotPrices *diskcache.Value[map[string]map[string]drover.Money]
	subnets    *diskcache.Value[[]subnet]
	endings    kit.Bulk
	destroyed  kit.Remembered      // whether or not EC2 ended them before
	spent      kit.Remembered      // client tokens of calls that created nothing and are worth repeating
	made       kit.Cache[struct{}] // existing shared resources, by name
	images     kit.Cache[image]    // by id
}

// Open opens a region of an account, with the credentials that the AWS tools would use.
func Open(ctx context.Context, o driver.Options) (driver.Cloud, error) { return open(ctx, o, nil) }

// open is Open with an HTTP client, if one is given.
func open(ctx context.Context, o driver.Options, client aws.HTTPClient) (driver.Cloud, error) {
	var config Config
	if err := kit.Begin(&o, longestFleet, &config); err != nil {
		return nil, err
	}
	api, err := connect(ctx, config, client, kit.Gate{Limiter: kit.NewRateLimiter(rates, config.CallRate), Metric: o.Metric})
	if err != nil {
		return nil, fmt.Errorf("open cloud %s: %w", o.Name, err)
	}
	c := &cloud{o: o, config: config, api: api}
	keep := kit.Keep(o, api.config.Region, config.Profile, config.Endpoint, config.Zones, config.Subnets)
	c.types = diskcache.New(keep("types", typesAge), c.fetchTypes)
	c.listPrices = diskcache.New(keep("prices", pricesAge), c.fetchPrices)
	c.spotPrices = diskcache.New(keep("spot", spotAge), c.fetchSpotPrices)
	c.subnets = diskcache.New(keep("subnets", subnetsAge), c.fetchSubnets)
	c.endings = kit.Bulk{Most: mostEndings, Call: c.terminate, Alone: ofOne}
	return c, nil
}

func (c *cloud) Capabilities() driver.Capabilities {
	runs, most := c.config.FirstBoot()
	return driver.Capabilities{
		HostKeys: driver.HostKeysPlanted, PowerOff: driver.PowerOffEnds, Notices: driver.NoticesEC2,
		Init: runs, MaxInit: most, Template: true, ManyCandidates: true, StopStart: true, StopSaves: true, GrowDisk: true,
		Describe: true, ListLag: listLag, NodeID: "aws:///{zone}/{id}",
		Billing: drover.Billing{Least: time.Minute},
	}
}

// Close does nothing.
func (c *cloud) Close() error { return nil }
