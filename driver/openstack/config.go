package openstack

import (
	"cmp"
	"errors"
	"regexp"
	"slices"
	"strings"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// maxUserData limits Nova's user data: 65,535 bytes in base64.
const maxUserData = 65535 / 4 * 3

// Config is the driver's part of the configuration.
type Config struct {
	Cloud  string `yaml:"cloud" doc:"an entry in clouds.yaml; default: OS_CLOUD, or OS_AUTH_URL and the variables that go with it"`
	Region string `yaml:"region" doc:"default: the credentials' region, or the cloud's only one"`

	Zones          []string          `yaml:"zones" doc:"availability zones; default: all that are available"`
	Networks       networks          `yaml:"networks" doc:"auto (the project's only network), none, or ids separated by commas"`
	SecurityGroups []string          `yaml:"security_groups" doc:"names or ids; default: the project's default"`
	KeyPair        string            `yaml:"key_pair" doc:"the name of an existing key pair, whose owner can then log in too; default: none"`
	ConfigDrive    bool              `yaml:"config_drive" doc:"whether to pass user data on a drive, for clouds without a metadata service"`
	Tags           map[string]string `yaml:"tags" doc:"metadata for all instances, in addition to Drover's own"`

	BootFrom   bootFrom `yaml:"boot_from" doc:"image: the root disk has the flavor's size; volume: the root disk is a volume of the size that jobs need"`
	VolumeType string   `yaml:"volume_type" doc:"the type of the boot volume; default: the cloud's default"`
	Grow       bool     `yaml:"grow_volumes" doc:"whether to grow the boot volume for an idle instance's next job; not every storage backend can do this while the volume is in use"`

	BillsStopped bool                    `yaml:"bills_stopped" doc:"whether the cloud bills stopped instances like running ones; if so, Drover keeps none stopped"`
	FlavorPrices map[string]drover.Money `yaml:"flavor_prices" doc:"the price per hour of each flavor, by its name"`
	PriceSpec    string                  `yaml:"price_spec" doc:"the extra spec that contains a flavor's price per hour"`
	Rates        flavorRates             `yaml:"rates" doc:"the rates from which other flavors' prices are computed"`
	GPUAliases   []string                `yaml:"gpu_aliases" doc:"the aliases with which flavors request GPUs as PCI devices"`
	Arch         drover.Arch             `yaml:"arch" doc:"the architecture of the cloud's own flavors: amd64 or arm64"`

	kit.TypeKeys
}

// flavorRates are hourly prices, by size.
type flavorRates struct {
	VCPU   drover.Money `yaml:"vcpu" doc:"per vCPU per hour"`
	Memory drover.Money `yaml:"memory" doc:"per GiB per hour"`
	GPU    drover.Money `yaml:"gpu" doc:"per GPU per hour"`
	Disk   drover.Money `yaml:"disk" doc:"per GiB of the boot volume per hour; default: 0"`
}

// networks is autoNetwork, noNetwork, or ids of networks.
type networks []string

// Nova's words for networks, in place of ids.
const (
	autoNetwork = "auto"
	noNetwork   = "none"
)

var uuid = regexp.MustCompile(`^[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}$`)

// UnmarshalText reads one of the words, or ids separated by commas.
func (n *networks) UnmarshalText(b []byte) error {
	*n = nil
	for id := range strings.SplitSeq(string(b), ",") {
		*n = append(*n, strings.TrimSpace(id))
	}
	if len(*n) == 1 && ((*n)[0] == autoNetwork || (*n)[0] == noNetwork) {
		return nil
	}
	if slices.ContainsFunc(*n, func(id string) bool { return !uuid.MatchString(id) }) {
		return errors.New("networks must be auto, none, or ids separated by commas; openstack network list shows the ids")
	}
	return nil
}

// bootFrom is the kind of root disk.
type bootFrom string

const (
	fromImage  bootFrom = "image"
	fromVolume bootFrom = "volume"
)

// UnmarshalText reads one of the words.
func (f *bootFrom) UnmarshalText(b []byte) error { return kit.OneOf(f, b, fromImage, fromVolume) }

// Default sets the defaults. The rates are invented; they make larger flavors cost more.
func (c *Config) Default() {
	*c = Config{
		Networks: networks{autoNetwork}, BootFrom: fromImage, Grow: true, Arch: "amd64", TypeKeys: kit.DefaultTypes(),
		Rates: flavorRates{VCPU: drover.Dollar / 100, Memory: drover.Dollar / 400, GPU: drover.Dollar},
	}
}

// tagRules are Nova's rules for metadata.
var tagRules = kit.TagRules{
	Key:   regexp.MustCompile(`^[A-Za-z0-9_:. -]{1,255}$`),
	Value: regexp.MustCompile(`^.{0,255}$`),
	Hint:  "keys and values have up to 255 characters; keys contain only letters, digits, spaces and -_:.",
}

// FirstBoot returns what an instance accepts for its first boot, and its maximum size in bytes.
func (Config) FirstBoot() (runs driver.Init, most int) { return driver.InitCloud, maxUserData }

// Check finds errors that the types of the fields cannot.
func (c *Config) Check() error {
	if c.VolumeType != "" && c.BootFrom != fromVolume {
		return drover.Errorf(drover.KindInvalid, "volume_type: instances that boot from an image have no volume").WithHint("write boot_from: volume")
	}
	if c.Rates.Disk != 0 && c.BootFrom != fromVolume {
		return drover.Errorf(drover.KindInvalid, "rates: disk: instances that boot from an image have no volume").WithHint("write boot_from: volume, or leave out rates: disk")
	}
	return cmp.Or(c.CheckTypes(), tagRules.Check("tags", c.Tags))
}
