package azure

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	azcloud "github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// maxUserData is Azure's limit for custom data before it is encoded: see "Custom data and cloud-init on Azure Virtual
// Machines".
const maxUserData = 65535

// Config is the driver's part of the configuration.
type Config struct {
	Subscription  string      `yaml:"subscription" doc:"its id; default: AZURE_SUBSCRIPTION_ID, or the one that az uses"`
	Tenant        string      `yaml:"tenant" doc:"the credentials' tenant; default: the one that the Azure tools use"`
	Environment   environment `yaml:"environment" doc:"public, government or china"`
	Location      string      `yaml:"location" doc:"the region, such as westeurope"`
	ResourceGroup string      `yaml:"resource_group" doc:"the resource group for everything; it must exist"`
	CallRate      int         `yaml:"call_rate" min:"1" max:"100" doc:"the subscription's API rate limit, as a multiple of the published one"`

	Zones         []string          `yaml:"zones" doc:"such as westeurope-1; the region's own name means no particular zone; default: all zones of each type"`
	Subnet        string            `yaml:"subnet" doc:"its resource id, or NETWORK/SUBNET in the resource group"`
	SecurityGroup string            `yaml:"security_group" doc:"resource id or name; default: the subnet's group"`
	PublicAddress bool              `yaml:"public_address" doc:"whether instances get a public address, which costs extra"`
	Accelerated   bool              `yaml:"accelerated_networking" doc:"whether to use accelerated networking, which Azure rejects for some types"`
	Identity      string            `yaml:"identity" doc:"the resource id of the instances' managed identity; default: none"`
	AdminUser     string            `yaml:"admin_user" doc:"the user to create and log in as"`
	ImageGroup    string            `yaml:"image_group" doc:"the resource group of images; default: resource_group"`
	Tags          map[string]string `yaml:"tags" doc:"for everything Drover creates, in addition to its own tags"`

	Volume  volume   `yaml:"volume" doc:"the root volume; the cloud's disk key sets its size"`
	Volumes []volume `yaml:"volumes" doc:"additional volumes of each instance"`

	Generation int `yaml:"generation" min:"1" max:"2" doc:"the image's VM generation; types that do not support it are not offered"`

	kit.TypeKeys
	kit.MarketKeys
}

// volume is a managed disk. It is deleted with its instance.
type volume struct {
	Size       drover.Bytes  `yaml:"size"`
	Type       string        `yaml:"type" doc:"Standard_LRS, StandardSSD_LRS, Premium_LRS or another type; default: StandardSSD_LRS"`
	Price      *drover.Money `yaml:"price" doc:"the price per GiB per month; default: Azure's list price"`
	Encryption string        `yaml:"encryption_set" doc:"the resource id of a disk encryption set; default: Azure's own keys"`
}

// environment is one of Azure's separate clouds.
type environment string

var environments = map[environment]azcloud.Configuration{
	"public": azcloud.AzurePublic, "government": azcloud.AzureGovernment, "china": azcloud.AzureChina,
}

// UnmarshalText reads the environment's name.
func (e *environment) UnmarshalText(b []byte) error {
	return kit.OneOf(e, b, slices.Sorted(maps.Keys(environments))...)
}

// Default sets the defaults.
func (c *Config) Default() {
	*c = Config{
		Environment: "public", CallRate: 1, AdminUser: "drover", Volume: volume{Type: defaultVolume}, Generation: 2,
		TypeKeys: kit.DefaultTypes(), MarketKeys: kit.DefaultMarkets(),
	}
}

// tagRules are Azure's rules for tags: see "Use tags to organize your Azure resources".
var tagRules = kit.TagRules{
	Key:   regexp.MustCompile(`^[^<>%&\\?/]{1,512}$`),
	Value: regexp.MustCompile(`^.{0,256}$`),
	Hint:  "a key may have up to 512 characters, but none of <>%&\\?/; a value may have up to 256",
}

var (
	location = regexp.MustCompile(`^[a-z][a-z0-9]*$`)
	group    = regexp.MustCompile(`^[A-Za-z0-9._()-]{1,90}$`)
	user     = regexp.MustCompile(`^[a-z_][a-z0-9_-]{0,31}$`)
)

// FirstBoot returns what an instance accepts for its first boot, and its maximum size in bytes.
func (Config) FirstBoot() (runs driver.Init, most int) { return driver.InitCloud, maxUserData }

// Check finds errors that the types of the fields cannot.
func (c *Config) Check() error {
	for _, v := range c.Volumes {
		if v.Size <= 0 {
			return drover.Errorf(drover.KindInvalid, "volumes: each needs a size").WithHint("write, for example, {size: 100Gi}")
		}
	}
	for _, zone := range c.Zones {
		if zone != c.Location && number(c.Location, zone) == "" {
			return drover.Errorf(drover.KindInvalid, "zones: %q is not a zone of %s", zone, c.Location).WithHint("write, for example, %s-1", c.Location)
		}
	}
	return cmp.Or(c.CheckTypes(), c.CheckMarkets(), tagRules.Check("tags", c.Tags), c.checkPlace())
}

// checkPlace checks where instances are created. The subscription need not be configured.
func (c *Config) checkPlace() error {
	switch {
	case !location.MatchString(c.Location):
		return drover.Errorf(drover.KindInvalid, "location: %q is not a region", c.Location).WithHint("write, for example, westeurope; az account list-locations lists all regions")
	case !group.MatchString(c.ResourceGroup):
		return drover.Errorf(drover.KindInvalid, "resource_group: %q is not a valid name", c.ResourceGroup).WithHint("create one with az group create")
	case !strings.Contains(c.Subnet, "/"):
		return drover.Errorf(drover.KindInvalid, "subnet: %q is not valid", c.Subnet).WithHint("write NETWORK/SUBNET, or the subnet's resource id")
	case !user.MatchString(c.AdminUser) || c.AdminUser == "root" || c.AdminUser == "admin":
		return drover.Errorf(drover.KindInvalid, "admin_user: Azure does not allow %q", c.AdminUser).WithHint("write another name, such as drover")
	}
	return nil
}

func (c Config) subscription() string {
	if said := cmp.Or(c.Subscription, os.Getenv("AZURE_SUBSCRIPTION_ID")); said != "" {
		return said
	}
	return usedByTools()
}

// usedByTools returns the subscription that az account set chose on this host; empty if there is none.
func usedByTools() string {
	home, _ := os.UserHomeDir() // without one there is no file
	text, _ := os.ReadFile(filepath.Join(cmp.Or(os.Getenv("AZURE_CONFIG_DIR"), filepath.Join(home, ".azure")), "azureProfile.json"))
	var profile struct {
		Subscriptions []struct {
			ID        string `json:"id"`
			IsDefault bool   `json:"isDefault"`
		} `json:"subscriptions"`
	}
	json.Unmarshal(bytes.TrimPrefix(text, []byte("\ufeff")), &profile) // an unreadable file names none
	for _, s := range profile.Subscriptions {
		if s.IsDefault {
			return s.ID
		}
	}
	return ""
}

func (c Config) imageGroup() string { return cmp.Or(c.ImageGroup, c.ResourceGroup) }

// resource returns the resource id of a named object in the resource group; it leaves an id unchanged.
func (c Config) resource(group, kind, name string) string {
	if strings.HasPrefix(name, "/") {
		return name
	}
	return fmt.Sprintf("/subscriptions/%s/resourceGroups/%s/providers/%s/%s", c.subscription(), group, kind, name)
}

// nodes returns an instance's resource id as Azure's Kubernetes cloud provider writes it: with the resource group in
// lower case.
func (c Config) nodes() string {
	return c.resource(strings.ToLower(c.ResourceGroup), "Microsoft.Compute/virtualMachines", "{id}")
}

func (c Config) subnetID() string {
	network, subnet, _ := strings.Cut(c.Subnet, "/")
	if network == "" {
		return c.Subnet
	}
	return c.resource(c.ResourceGroup, "Microsoft.Network/virtualNetworks", network+"/subnets/"+subnet)
}

// number returns Azure's name of a zone, such as 1 for westeurope-1; empty if the region has no such zone.
func number(location, zone string) string {
	n, ok := strings.CutPrefix(zone, location+"-")
	if !ok || len(n) != 1 || n < "1" || n > "9" {
		return ""
	}
	return n
}
