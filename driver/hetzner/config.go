package hetzner

import (
	"cmp"
	"regexp"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// maxUserData is the API's limit for user data.
const maxUserData = 32 << 10

// Config is the driver's part of the configuration.
type Config struct {
	Token     drover.Secret     `yaml:"token" doc:"an API token of the project with read and write access; default: HCLOUD_TOKEN"`
	Endpoint  string            `yaml:"endpoint" doc:"the URL of a compatible API; default: Hetzner's"`
	Locations []string          `yaml:"locations" doc:"such as fsn1; default: all"`
	Networks  []int64           `yaml:"networks" doc:"ids of the networks that instances join; default: none"`
	Firewalls []int64           `yaml:"firewalls" doc:"ids of the firewalls for instances; default: none"`
	IPv4      bool              `yaml:"ipv4" doc:"whether instances get a public IPv4 address, which costs extra"`
	IPv6      bool              `yaml:"ipv6" doc:"whether instances get a public IPv6 address"`
	Labels    map[string]string `yaml:"labels" doc:"for everything Drover creates, in addition to its own labels"`
	Rate      drover.Money      `yaml:"dollars" doc:"the exchange rate: USD per unit of the price list's currency, usually the euro"`

	kit.TypeKeys
}

// Default sets the defaults. The exchange rate is high on purpose: Drover rents less of a cloud that seems expensive.
func (c *Config) Default() {
	*c = Config{IPv4: true, IPv6: true, TypeKeys: kit.DefaultTypes(), Rate: 12 * drover.Dollar / 10}
}

// labelRules are Hetzner's rules for labels whose keys have no prefix.
var labelRules = kit.TagRules{
	Key:   regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9._-]{0,61}[a-zA-Z0-9])?$`),
	Value: regexp.MustCompile(`^([a-zA-Z0-9]([a-zA-Z0-9._-]{0,61}[a-zA-Z0-9])?)?$`),
	Hint:  "keys and values may have up to 63 letters, digits, dashes, underscores and dots, and must begin and end with a letter or digit",
}

// FirstBoot returns what an instance accepts for its first boot, and its maximum size in bytes.
func (Config) FirstBoot() (runs driver.Init, most int) { return driver.InitCloud, maxUserData }

// Check finds errors that the types of the fields cannot.
func (c *Config) Check() error {
	switch {
	case !c.IPv4 && !c.IPv6 && len(c.Networks) == 0:
		return drover.Errorf(drover.KindInvalid, "instances with neither a public address nor a network cannot be reached").WithHint("write networks: [123]")
	case len(c.Types) > 0 && len(c.Locations) == 0:
		return drover.Errorf(drover.KindInvalid, "types: locations must be set too").WithHint("write locations: [fsn1]")
	case c.Rate <= 0 || c.Rate > 1000*drover.Dollar:
		return drover.Errorf(drover.KindInvalid, "dollars: %v is not an exchange rate", c.Rate).WithHint("write, for example, dollars: 1.15")
	}
	return cmp.Or(c.CheckTypes(), labelRules.Check("labels", c.Labels))
}
