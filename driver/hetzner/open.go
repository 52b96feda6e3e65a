// Package hetzner is a cloud on Hetzner Cloud, in one project.
//
// The model. An instance is a server of the instance's name, which is unique in a project: so the name makes one. Its zone is a location such
// as fsn1, its disk comes with its type, and there is no spot market. Tags are labels, given in the call that creates; since labels take fewer
// characters than tags have, values are written so that they do (see labels.go).
//
// Servers cost money, also while they are off, and so do their public addresses, which come and go with them. Beside servers there is an SSH
// key for each key of the fleet's: a server that is given none has a root password that has to be changed before anything else. It costs
// nothing, bears the fleet's label and goes with the fleet.
//
// Nothing is tried twice here, and no request waits: one that is beyond the project's rate is refused at once.
package hetzner

import (
	"context"
	"net/http"
	"os"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// maxUserData is how much user data the API takes.
const maxUserData = 32 << 10

// longestFleet is what fits a label as it is, and the names of keys.
const longestFleet = 40

// Config is the driver's part of the configuration.
type Config struct {
	Token     drover.Secret     `yaml:"token" doc:"of the project's API, to read and write; left out: the environment's HCLOUD_TOKEN"`
	Endpoint  string            `yaml:"endpoint" doc:"of the API, for what imitates it; left out: Hetzner's"`
	Locations []string          `yaml:"locations" doc:"such as fsn1; left out: all"`
	Networks  []int64           `yaml:"networks" doc:"ids of networks that servers are in; left out: none"`
	Firewalls []int64           `yaml:"firewalls" doc:"ids of firewalls before servers; left out: none"`
	IPv4      bool              `yaml:"ipv4" doc:"whether servers have a public IPv4 address, which costs extra"`
	IPv6      bool              `yaml:"ipv6" doc:"whether servers have a public IPv6 address"`
	Labels    map[string]string `yaml:"labels" doc:"on all that is made, beside Drover's own"`
	Rate      drover.Money      `yaml:"dollars" doc:"what one unit of the price list's currency, mostly the euro, is worth"`
	ListTypes bool              `yaml:"list_types" doc:"whether Hetzner's own types are offered, with its prices"`
	Types     []kit.Type        `yaml:"types" doc:"types by hand, beside or in place of Hetzner's own"`
}

// Default is what holds where nothing is said. The rate is on the safe side: what is reckoned to be dear is rented less.
func (c *Config) Default() {
	*c = Config{IPv4: true, IPv6: true, ListTypes: true, Rate: 12 * drover.Dollar / 10}
}

// FirstBoot says what an instance can be given for its first boot, and how much of it.
func (Config) FirstBoot() (runs driver.Init, most int) { return driver.InitCloud, maxUserData }

// Check finds what the types of the fields cannot.
func (c *Config) Check() error {
	switch {
	case !c.IPv4 && !c.IPv6 && len(c.Networks) == 0:
		return drover.Errorf(drover.KindInvalid, "servers without a public address and without a network cannot be reached").WithHint("name one: networks: [123]")
	case len(c.Types) > 0 && len(c.Locations) == 0:
		return drover.Errorf(drover.KindInvalid, "types by hand need to be told where they are").WithHint("locations: [fsn1]")
	case !c.ListTypes && len(c.Types) == 0:
		return drover.Errorf(drover.KindInvalid, "list_types: false leaves no types").WithHint("give some by hand, in types")
	case c.Rate <= 0 || c.Rate > 1000*drover.Dollar:
		return drover.Errorf(drover.KindInvalid, "dollars: %v is no rate of exchange", c.Rate).WithHint("such as dollars: 1.15")
	}
	return checkLabels(c.Labels)
}

// listLag is how far lists are taken to lag: Hetzner documents nothing of it, and nobody was found who met it.
const listLag = driver.DefaultListLag

type cloud struct {
	kit.Planted

	o      driver.Options
	config Config
	api    *hcloud.Client

	keys kit.Cache[*hcloud.SSHKey] // that log in and were met, by fingerprint
}

// Open opens a project. It calls nobody.
func Open(_ context.Context, o driver.Options) (driver.Cloud, error) {
	return open(o, http.DefaultTransport)
}

// open does, over what stands for the network.
func open(o driver.Options, network http.RoundTripper) (driver.Cloud, error) {
	var c Config
	if err := kit.Begin(&o, longestFleet, &c); err != nil {
		return nil, err
	}
	token := c.Token.Reveal()
	if token == "" {
		token = os.Getenv("HCLOUD_TOKEN")
	}
	if token == "" {
		return nil, drover.Errorf(drover.KindAuthentication, "open cloud %s: there is no token for the project", o.Name).
			WithHint("set HCLOUD_TOKEN, or write token: file:PATH")
	}
	gate := &gate{kit.Gate{Limiter: kit.NewRateLimiter(rates, 1), Metric: o.Metric}, network}
	return &cloud{o: o, config: c, api: connect(c, token, gate)}, nil
}

// connect makes a client that tries nothing twice, and whose requests go out through the gate.
func connect(c Config, token string, gate *gate) *hcloud.Client {
	options := []hcloud.ClientOption{
		hcloud.WithToken(token), hcloud.WithApplication("drover", ""), hcloud.WithRetryOpts(hcloud.RetryOpts{MaxRetries: 0}),
		hcloud.WithHTTPClient(&http.Client{Transport: gate}),
	}
	if c.Endpoint != "" {
		options = append(options, hcloud.WithEndpoint(c.Endpoint))
	}
	return hcloud.NewClient(options...)
}

// Capabilities: what is off is still billed.
func (c *cloud) Capabilities() driver.Capabilities {
	runs, most := c.config.FirstBoot()
	return driver.Capabilities{
		HostKeys: driver.HostKeysPlanted, PowerOff: driver.PowerOffStops, Init: runs, MaxInit: most, StopStart: true, Describe: true, ListLag: listLag,
		Billing: drover.Billing{Period: time.Hour},
	}
}

// Close has nothing to end.
func (c *cloud) Close() error { return nil }
