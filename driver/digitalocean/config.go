package digitalocean

import (
	"cmp"
	"net/url"
	"os"
	"regexp"
	"strings"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// maxUserData is the API's limit for user data.
const maxUserData = 64 << 10

// Config is the driver's part of the configuration.
type Config struct {
	Token    drover.Secret     `yaml:"token" doc:"the API token; default: DIGITALOCEAN_ACCESS_TOKEN, which doctl uses too"`
	Regions  []string          `yaml:"regions" doc:"where instances may be created; default: all"`
	VPCs     map[string]string `yaml:"vpcs" doc:"the id of the network that instances join, by region; default: the region's default"`
	Tags     []string          `yaml:"tags" doc:"for all instances, in addition to Drover's own"`
	Endpoint string            `yaml:"endpoint" doc:"the URL of the API; default: DigitalOcean's"`

	kit.TypeKeys
}

// tagWord matches what DigitalOcean accepts as a tag.
var tagWord = regexp.MustCompile(`^[A-Za-z0-9:_-]{1,255}$`)

// official is the address of DigitalOcean's API.
const official = "https://api.digitalocean.com/"

// Default sets the defaults.
func (c *Config) Default() { *c = Config{Endpoint: official, TypeKeys: kit.DefaultTypes()} }

// FirstBoot returns what an instance accepts for its first boot, and its maximum size in bytes.
func (Config) FirstBoot() (runs driver.Init, most int) { return driver.InitCloud, maxUserData }

// Check finds errors in the configuration.
func (c *Config) Check() error {
	u, err := url.Parse(c.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return drover.Errorf(drover.KindInvalid, "endpoint: %q is not a URL", c.Endpoint).WithHint("leave it out")
	}
	if len(c.Types) > 0 && len(c.Regions) == 0 {
		return drover.Errorf(drover.KindInvalid, "types: regions must be set too").WithHint("write regions: [fra1]")
	}
	for _, word := range c.Tags {
		if !tagWord.MatchString(word) || strings.HasPrefix(word, prefix+":") {
			return drover.Errorf(drover.KindInvalid, "tags: %.80q is not allowed", word).
				WithHint("a tag may have up to 255 letters, digits, colons, dashes and underscores, and must not begin with %s:", prefix)
		}
	}
	for region, id := range c.VPCs {
		if region == "" || id == "" {
			return drover.Errorf(drover.KindInvalid, "vpcs: a region or an id is empty").WithHint("write REGION: ID, as shown by doctl vpcs list")
		}
	}
	return c.CheckTypes()
}

// token returns the secret that requests contain.
func (c *Config) token() (drover.Secret, error) {
	if token := cmp.Or(c.Token.Reveal(), os.Getenv("DIGITALOCEAN_ACCESS_TOKEN")); token != "" {
		return drover.NewSecret(token), nil
	}
	return drover.Secret{}, drover.Errorf(drover.KindAuthentication, "no DigitalOcean token is configured").
		WithHint("set DIGITALOCEAN_ACCESS_TOKEN, or write token: ${env:NAME} in the cloud's configuration")
}
