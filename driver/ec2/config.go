package ec2

import (
	"cmp"
	"regexp"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// maxUserData is how much user data EC2 takes, before it is encoded.
const maxUserData = 16 << 10

// Config is the driver's part of the configuration.
type Config struct {
	Region   string `yaml:"region" doc:"left out: the one that the AWS tools would use, or that this host is in"`
	Profile  string `yaml:"profile" doc:"of the AWS tools' configuration; left out: theirs"`
	Endpoint string `yaml:"endpoint" doc:"of the API, for what imitates EC2; left out: Amazon's"`
	CallRate int    `yaml:"call_rate" min:"1" max:"100" doc:"how many times the published rate of calls the account may make"`

	Zones           []string          `yaml:"zones" doc:"left out: all that there is a subnet in"`
	Subnets         []string          `yaml:"subnets" doc:"ids; left out: the default subnet of each zone"`
	SecurityGroups  []string          `yaml:"security_groups" doc:"ids; left out: the network's default"`
	PublicAddress   *bool             `yaml:"public_address" doc:"whether instances get a public address; left out: as the subnet has it"`
	InstanceProfile string            `yaml:"instance_profile" doc:"name or ARN of the IAM profile that instances have; left out: none"`
	KeyPair         string            `yaml:"key_pair" doc:"the name of one that exists; left out: one of the fleet's own is imported"`
	Tags            map[string]string `yaml:"tags" doc:"on all that is made, beside Drover's own"`

	Volume       volume    `yaml:"volume" doc:"the root volume; its size is the cloud's disk"`
	Volumes      []volume  `yaml:"volumes" doc:"further volumes of each instance"`
	Placement    placement `yaml:"placement" doc:"where instances lie to one another"`
	MetadataHops int       `yaml:"metadata_hops" min:"1" max:"64" doc:"how far the metadata service answers: 1: not into containers; 2: into them too"`

	SpotBy    spotBy `yaml:"spot_allocation" doc:"how EC2 chooses among the spot candidates"`
	BareMetal bool   `yaml:"bare_metal" doc:"whether bare metal is offered too"`

	kit.TypeKeys
	kit.MarketKeys
}

// volume is an EBS volume. It is encrypted unless that is refused, and goes with its instance.
type volume struct {
	Device     string        `yaml:"device" doc:"such as /dev/sdf; of the root volume it is the image's"`
	Size       drover.Bytes  `yaml:"size"`
	Type       string        `yaml:"type" doc:"gp3, gp2, io2, io1, st1, sc1 or standard; left out: gp3"`
	IOPS       int           `yaml:"iops" min:"0"`
	Throughput int           `yaml:"throughput" min:"0" doc:"in MiB a second"`
	Price      *drover.Money `yaml:"price" doc:"of a GiB a month; left out: what it costs in us-east-1"`
	Key        string        `yaml:"kms_key" doc:"id or ARN; left out: the account's default"`
	Encrypted  *bool         `yaml:"encrypted" doc:"left out: true"`
}

type placement struct {
	Group     string `yaml:"group" doc:"the name of a placement group"`
	Partition int    `yaml:"partition" min:"0" doc:"of a partition placement group; 0: any"`
}

// spotBy is a strategy of EC2's.
type spotBy types.SpotAllocationStrategy

// UnmarshalText reads the strategy's name.
func (s *spotBy) UnmarshalText(b []byte) error {
	return kit.OneOf(s, b, spotBy(types.SpotAllocationStrategyCapacityOptimizedPrioritized), spotBy(types.SpotAllocationStrategyPriceCapacityOptimized),
		spotBy(types.SpotAllocationStrategyLowestPrice))
}

// Default is what holds where nothing is said.
func (c *Config) Default() {
	*c = Config{
		CallRate: 1, MetadataHops: 1, TypeKeys: kit.DefaultTypes(), MarketKeys: kit.DefaultMarkets(),
		SpotBy: spotBy(types.SpotAllocationStrategyCapacityOptimizedPrioritized),
	}
}

// tagRules are what EC2 takes: see "Tag restrictions" in Amazon's guide to EC2.
var tagRules = kit.TagRules{
	Key:      regexp.MustCompile(`^.{1,128}$`),
	Value:    regexp.MustCompile(`^.{0,256}$`),
	Reserved: "aws:",
	Hint:     "a key has up to 128 characters and does not begin with aws:, a value has up to 256",
}

// FirstBoot says what an instance can be given for its first boot, and how much of it.
func (Config) FirstBoot() (runs driver.Init, most int) { return driver.InitCloud, maxUserData }

// Check finds what the types of the fields cannot.
func (c *Config) Check() error {
	for _, v := range c.Volumes {
		if v.Device == "" || v.Size <= 0 {
			return drover.Errorf(drover.KindInvalid, "volumes: one has no device or no size").WithHint("such as {device: /dev/sdf, size: 100Gi}")
		}
	}
	return cmp.Or(c.CheckTypes(), c.CheckMarkets(), tagRules.Check("tags", c.Tags))
}
