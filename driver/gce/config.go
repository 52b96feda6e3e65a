package gce

import (
	"cmp"
	"regexp"
	"strings"
	"time"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// maxUserData limits one value of an instance's metadata: see "Metadata limitations" in Google's guide to Compute
// Engine.
const maxUserData = 256 << 10

// Config is the driver's part of the configuration.
type Config struct {
	Project  string   `yaml:"project" doc:"its id; default: GOOGLE_CLOUD_PROJECT, or the credentials' project"`
	Region   string   `yaml:"region" doc:"such as us-central1"`
	Zones    []string `yaml:"zones" doc:"of the region; default: all"`
	CallRate int      `yaml:"call_rate" min:"1" max:"100" doc:"the project's API rate limit, as a multiple of the default one"`

	Network        string   `yaml:"network" doc:"its name, or its path in another project; default: default"`
	Subnetwork     string   `yaml:"subnetwork" doc:"its name, or its path in another project; default: the network's subnetwork in the region"`
	PublicAddress  bool     `yaml:"public_address" doc:"whether instances get a public address"`
	NetworkTags    []string `yaml:"network_tags" doc:"for firewall rules"`
	ServiceAccount string   `yaml:"service_account" doc:"the email of the account whose credentials jobs can use; default: none"`

	User   string            `yaml:"user" doc:"the user to create and log in as"`
	Init   initBy            `yaml:"init" doc:"startup-script or cloud-init, whichever the image runs at its first boot"`
	Labels map[string]string `yaml:"labels" doc:"for everything Drover creates, in addition to its own labels"`

	DiskType  string        `yaml:"disk_type" doc:"the boot disk's type, such as pd-ssd; default: hyperdisk-balanced for fourth-generation series, otherwise pd-balanced"`
	DiskPrice *drover.Money `yaml:"disk_price" doc:"the price per GiB per month; default: Google's list price"`
	MaxRun    time.Duration `yaml:"max_run" doc:"Google deletes an instance that has run this long; default: never"`

	kit.TypeKeys
	kit.MarketKeys
}

// initBy is what runs at an image's first boot.
type initBy string

const (
	initScript initBy = "startup-script"
	initCloud  initBy = "cloud-init"
)

// UnmarshalText reads the name.
func (i *initBy) UnmarshalText(b []byte) error { return kit.OneOf(i, b, initScript, initCloud) }

// Default sets the defaults.
func (c *Config) Default() {
	*c = Config{
		CallRate: 1, Network: "default", PublicAddress: true, User: "drover", Init: initScript,
		TypeKeys: kit.DefaultTypes(), MarketKeys: kit.DefaultMarkets(),
	}
}

var (
	userName = regexp.MustCompile(`^[a-z_][a-z0-9_-]{0,31}$`)
	region   = regexp.MustCompile(`^[a-z]+-[a-z]+[0-9]+$`)
)

// labelRules are Google's rules for labels.
var labelRules = kit.TagRules{
	Key:   regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`),
	Value: regexp.MustCompile(`^[a-z0-9_-]{0,63}$`),
	Hint:  "keys and values may have up to 63 lower-case letters, digits, dashes and underscores, and a key must begin with a letter",
}

// The shortest and longest run time that Google accepts as an instance's limit: see "Limit the run time of a VM" in its
// guide.
const (
	shortestRun = 30 * time.Second
	longestRun  = 120 * 24 * time.Hour
)

// FirstBoot returns what an instance accepts for its first boot, and its maximum size in bytes.
func (c Config) FirstBoot() (runs driver.Init, most int) {
	if c.Init == initScript {
		return driver.InitBoots, maxUserData
	}
	return driver.InitCloud, maxUserData
}

// Check finds errors that the types of the fields cannot.
func (c *Config) Check() error {
	for _, z := range c.Zones {
		if !strings.HasPrefix(z, c.Region+"-") {
			return drover.Errorf(drover.KindInvalid, "zones: %s is not in region %s", z, c.Region).WithHint("a cloud covers one region; configure another cloud for another region")
		}
	}
	switch run := c.MaxRun; {
	case !region.MatchString(c.Region):
		return drover.Errorf(drover.KindInvalid, "region: %.40q is not a region", c.Region).WithHint("write, for example, region: us-central1")
	case !userName.MatchString(c.User):
		return drover.Errorf(drover.KindInvalid, "user: %.40q is not a user name", c.User).WithHint("use lower-case letters, digits, dashes and underscores")
	case run != 0 && (run < shortestRun || run > longestRun):
		return drover.Errorf(drover.KindInvalid, "max_run must be between %v and %v", shortestRun, longestRun)
	}
	return cmp.Or(c.CheckTypes(), c.CheckMarkets(), labelRules.Check("labels", c.Labels))
}
