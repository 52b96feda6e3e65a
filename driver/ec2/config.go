package ec2

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// maxUserData is EC2's limit for user data before it is encoded.
const maxUserData = 16 << 10

// Config is the driver's part of the configuration.
type Config struct {
	Region   string `yaml:"region" doc:"default: the region that the AWS tools use, or this host's"`
	Profile  string `yaml:"profile" doc:"a profile in the AWS tools' configuration; default: the one that they use"`
	Endpoint string `yaml:"endpoint" doc:"the URL of an API compatible with EC2; default: Amazon's"`
	CallRate int    `yaml:"call_rate" min:"1" max:"100" doc:"the account's API rate limit, as a multiple of the published one"`

	Zones           []string          `yaml:"zones" doc:"default: all zones with a subnet"`
	Subnets         []string          `yaml:"subnets" doc:"ids; default: the default subnet of each zone"`
	SecurityGroups  []string          `yaml:"security_groups" doc:"ids; default: the network's default"`
	PublicAddress   *bool             `yaml:"public_address" doc:"whether instances get a public address; default: the subnet's setting"`
	InstanceProfile string            `yaml:"instance_profile" doc:"name or ARN of the instances' IAM profile; default: none"`
	KeyPair         string            `yaml:"key_pair" doc:"the name of an existing key pair; default: the fleet's own, which Drover imports"`
	Tags            map[string]string `yaml:"tags" doc:"for everything Drover creates, in addition to its own tags"`

	Volume       volume    `yaml:"volume" doc:"the root volume; the cloud's disk key sets its size"`
	Volumes      []volume  `yaml:"volumes" doc:"additional volumes of each instance"`
	Placement    placement `yaml:"placement" doc:"a placement group for instances"`
	MetadataHops int       `yaml:"metadata_hops" min:"1" max:"64" doc:"the metadata service's hop limit; 1: containers cannot reach it; 2: they can"`

	SpotBy    spotBy `yaml:"spot_allocation" doc:"how EC2 chooses among spot candidates"`
	BareMetal bool   `yaml:"bare_metal" doc:"whether to offer bare-metal types too"`

	kit.TypeKeys
	kit.MarketKeys
}

// volume is an EBS volume. It is encrypted unless the configuration says otherwise, and is deleted with its instance.
type volume struct {
	Device     string        `yaml:"device" doc:"such as /dev/sdf; for the root volume, the image determines it"`
	Size       drover.Bytes  `yaml:"size"`
	Type       string        `yaml:"type" doc:"gp3, gp2, io2, io1, st1, sc1 or standard; default: gp3"`
	IOPS       int           `yaml:"iops" min:"0"`
	Throughput int           `yaml:"throughput" min:"0" doc:"in MiB per second"`
	Price      *drover.Money `yaml:"price" doc:"the price per GiB per month; default: the price in us-east-1"`
	Key        string        `yaml:"kms_key" doc:"id or ARN; default: the account's default"`
	Encrypted  *bool         `yaml:"encrypted" doc:"default: true"`
}

type placement struct {
	Group     string `yaml:"group" doc:"the name of a placement group"`
	Partition int    `yaml:"partition" min:"0" doc:"a partition of a partition placement group; 0: any"`
}

// spotBy is one of EC2's allocation strategies.
type spotBy string

// bestSpot first avoids interruptions, and then follows the order of the candidates.
const bestSpot spotBy = "capacity-optimized-prioritized"

// UnmarshalText reads the strategy's name.
func (s *spotBy) UnmarshalText(b []byte) error {
	return kit.OneOf(s, b, bestSpot, "price-capacity-optimized", "lowest-price")
}

// Default sets the defaults.
func (c *Config) Default() {
	*c = Config{CallRate: 1, MetadataHops: 1, TypeKeys: kit.DefaultTypes(), MarketKeys: kit.DefaultMarkets(), SpotBy: bestSpot}
}

// tagRules are EC2's rules for tags: see "Tag restrictions" in Amazon's guide to EC2.
var tagRules = kit.TagRules{
	Key:      regexp.MustCompile(`^.{1,128}$`),
	Value:    regexp.MustCompile(`^.{0,256}$`),
	Reserved: "aws:",
	Hint:     "a key may have up to 128 characters and must not begin with aws:; a value may have up to 256",
}

// FirstBoot returns what an instance accepts for its first boot, and its maximum size in bytes.
func (Config) FirstBoot() (runs driver.Init, most int) { return driver.InitCloud, maxUserData }

// Check finds errors that the types of the fields cannot.
func (c *Config) Check() error {
	if c.Region != "" && !regions.MatchString(c.Region) {
		return drover.Errorf(drover.KindInvalid, "region: %q is not the name of a region", c.Region).WithHint("write region: us-east-1, or another region")
	}
	if c.Volume.Device != "" || c.Volume.Size != 0 {
		return drover.Errorf(drover.KindInvalid, "volume: the root volume's device and size cannot be set here").
			WithHint("write disk: 100Gi in the cloud's configuration; the image determines the device")
	}
	for _, v := range c.Volumes {
		if v.Device == "" || v.Size <= 0 {
			return drover.Errorf(drover.KindInvalid, "volumes: each needs a device and a size").WithHint("write, for example, {device: /dev/sdf, size: 100Gi}")
		}
	}
	for _, v := range slices.Concat(c.Volumes, []volume{c.Volume}) {
		if _, known := volumePrices[cmp.Or(v.Type, defaultVolume)]; !known {
			return drover.Errorf(drover.KindInvalid, "volume: type %q is not one of %s", v.Type, strings.Join(slices.Sorted(maps.Keys(volumePrices)), ", "))
		}
	}
	return cmp.Or(c.CheckTypes(), c.CheckMarkets(), tagRules.Check("tags", c.Tags))
}
