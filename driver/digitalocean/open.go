// Package digitalocean is a cloud on DigitalOcean.
//
// An instance is a Droplet, and a zone is a region. DigitalOcean's tags are single words that belong to the account
// and outlive what they tag: each of Drover's tags is encoded as one word, and unused words are leftovers. Only
// Droplets cost money, even while they are off.
package digitalocean

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/digitalocean/godo"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// longestFleet is the maximum number of characters that a fleet's escaped name may take in a tag.
const longestFleet = 60

// listLag is the assumed lag of lists. DigitalOcean documents nothing about it; others reported lists, and a get by id,
// that lacked a new Droplet for a few seconds: see docs/drivers.md.
const listLag = time.Minute

// cloud is DigitalOcean as used by one fleet.
type cloud struct {
	kit.Planted

	o      driver.Options
	config Config
	api    *godo.Client
	gate   kit.Gate

	names kit.Names

	lastPage atomic.Int32 // of the last list of instances; 0: one page
}

// Open opens DigitalOcean. It makes no call.
func Open(_ context.Context, o driver.Options) (driver.Cloud, error) {
	return open(o, http.DefaultTransport)
}

// open is Open with a replaceable network.
func open(o driver.Options, network http.RoundTripper) (driver.Cloud, error) {
	var c Config
	if err := kit.Begin(&o, longestFleet, &c); err != nil {
		return nil, err
	}
	if len(words.Escape(o.Fleet)) > longestFleet {
		return nil, drover.Errorf(drover.KindInvalid, "the fleet's name %q is too long for DigitalOcean's tags", o.Fleet).WithHint("use at most %d lower-case letters, digits and dashes", longestFleet)
	}
	token, err := c.token()
	if err != nil {
		return nil, err
	}
	api, gate, err := connect(c, token, network, o.Metric)
	if err != nil {
		return nil, err
	}
	return &cloud{o: o, config: c, api: api, gate: gate}, nil
}

// Capabilities returns what this driver can do.
func (*cloud) Capabilities() driver.Capabilities {
	runs, most := Config{}.FirstBoot()
	return driver.Capabilities{
		HostKeys:  driver.HostKeysPlanted,
		PowerOff:  driver.PowerOffStops,
		Init:      runs,
		MaxInit:   most,
		Template:  true,
		StopStart: true,
		Describe:  true,
		NodeID:    "digitalocean://{id}",
		ListLag:   listLag,
		Billing:   drover.Billing{Least: time.Minute},
	}
}

// Close does nothing.
func (*cloud) Close() error { return nil }
