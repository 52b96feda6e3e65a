// Package hetzner is a cloud on Hetzner Cloud, in one project.
//
// An instance is a server with the instance's name. Names are unique in a project, so a name makes one instance. Its
// zone is a location such as fsn1, its disk is part of its type, and there is no spot market. Tags are labels, set in
// the create call and encoded, since labels accept fewer characters.
//
// Servers cost money even while they are off, and so do their public addresses, which are deleted with them. There is
// also an SSH key for each login key, because a server without one gets a root password that must be changed first. It
// is free, has the fleet's label, and is removed with the fleet.
package hetzner

import (
	"cmp"
	"context"
	"net/http"
	"os"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// longestFleet is the longest fleet id that fits unchanged into a label and into the names of keys.
const longestFleet = 40

// listLag is the assumed lag of lists: Hetzner documents nothing about it, and no report of one was found.
const listLag = driver.DefaultListLag

type cloud struct {
	kit.Planted

	o      driver.Options
	config Config
	api    *hcloud.Client

	keys kit.Cache[*hcloud.SSHKey] // known login keys, by fingerprint
}

// Open opens a project. It makes no call.
func Open(_ context.Context, o driver.Options) (driver.Cloud, error) {
	return open(o, http.DefaultTransport)
}

// open is Open with a replaceable network.
func open(o driver.Options, network http.RoundTripper) (driver.Cloud, error) {
	var c Config
	if err := kit.Begin(&o, longestFleet, &c); err != nil {
		return nil, err
	}
	token := cmp.Or(c.Token.Reveal(), os.Getenv("HCLOUD_TOKEN"))
	if token == "" {
		return nil, drover.Errorf(drover.KindAuthentication, "open cloud %s: no Hetzner token is configured", o.Name).
			WithHint("set HCLOUD_TOKEN, or write token: file:PATH in the cloud's configuration")
	}
	return &cloud{o: o, config: c, api: connect(c, token, network, o.Metric)}, nil
}

// Capabilities does not set StopSaves: a server that is off is still billed.
func (c *cloud) Capabilities() driver.Capabilities {
	runs, most := c.config.FirstBoot()
	return driver.Capabilities{
		HostKeys: driver.HostKeysPlanted, PowerOff: driver.PowerOffStops, Init: runs, MaxInit: most, StopStart: true, Describe: true, ListLag: listLag,
		NodeID:  "hcloud://{id}",
		Billing: drover.Billing{Period: time.Hour},
	}
}

// Close does nothing.
func (c *cloud) Close() error { return nil }
