package openstack

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// longestName is short enough wherever Nova uses a server's name.
const longestName = 128

// defaultVolume is the size of a volume, in GiB, if neither the request nor the image specifies one.
const defaultVolume = 20

// demands are what Nova requires of every create call.
var demands = kit.Demands{Longest: longestName, Image: "debian-12-*", OnDemand: true, UserData: maxUserData}

// Create creates a server for the first candidate, unless one with this name exists. If no host has capacity for it,
// only a list shows that, since Nova accepts the request.
func (c *cloud) Create(ctx context.Context, r driver.CreateRequest) (driver.Instance, driver.Candidate, error) {
	return errs.Create(ctx, r, demands, c.create)
}

func (c *cloud) create(ctx context.Context, r driver.CreateRequest) (driver.Instance, error) {
	release, err := c.names.Hold(ctx, r.Name)
	if err != nil {
		return driver.Instance{}, err
	}
	defer release()
	if in, found, err := c.named(ctx, r); found || err != nil {
		return in, err
	}
	opts, err := c.serverRequest(ctx, r)
	if err != nil {
		return driver.Instance{}, err
	}
	id, err := c.api.createServer(ctx, opts.forVersion)
	if err != nil {
		return driver.Instance{}, err
	}
	first := r.Candidates[0]
	return driver.Instance{ID: id, Tags: opts.Metadata, ProviderType: first.ProviderType, Zone: first.Zone, Market: first.Market, State: driver.Pending}, nil
}

// named looks for the instance with this name, or the oldest one if there are several.
func (c *cloud) named(ctx context.Context, r driver.CreateRequest) (in driver.Instance, found bool, err error) {
	all, _, err := c.api.listServers(ctx, r.Name)
	if err != nil {
		return in, false, err
	}
	all = slices.DeleteFunc(all, func(s servers.Server) bool {
		return s.Name != r.Name || s.Metadata[driver.TagFleet] != r.Tags[driver.TagFleet]
	})
	if len(all) == 0 {
		return in, false, nil
	}
	oldest := slices.MinFunc(all, func(a, b servers.Server) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID)) })
	in, err = c.instance(ctx, oldest)
	if errs.StatusOf(err) == http.StatusNotFound {
		return in, false, nil // it has just been deleted
	}
	return in, err == nil, err
}

// serverRequest is the part of a create call that does not depend on Nova's version.
type serverRequest struct {
	servers.CreateOpts
	networks networks
	keyPair  string
	fleet    string
	template map[string]any
}

func (c *cloud) serverRequest(ctx context.Context, r driver.CreateRequest) (*serverRequest, error) {
	first := r.Candidates[0]
	template, err := readTemplate(r.Template)
	if err != nil {
		return nil, err
	}
	known, err := c.flavors.Get(ctx)
	if err != nil {
		return nil, errs.Classify("list flavors", err)
	}
	f, ok := known[first.ProviderType]
	if !ok {
		return nil, drover.Errorf(drover.KindInvalid, "there is no flavor %s", first.ProviderType).WithHint("run: openstack flavor list")
	}
	opts := &serverRequest{networks: c.config.Networks, keyPair: c.config.KeyPair, fleet: r.Tags[driver.TagFleet], template: template, CreateOpts: servers.CreateOpts{
		Name: r.Name, FlavorRef: f.ID, ImageRef: first.Image, AvailabilityZone: first.Zone, UserData: []byte(kit.UserData(r).Reveal()),
		Metadata: kit.MergeTags(c.config.Tags, r.Tags), SecurityGroups: c.config.SecurityGroups, ConfigDrive: kit.Given(c.config.ConfigDrive),
	}}
	if c.config.BootFrom == fromVolume {
		opts.BlockDevice, err = c.volume(ctx, r)
		opts.ImageRef = ""
	}
	return opts, err
}

// volume returns the boot volume, at least as large as requested and as its image needs; it is deleted with the
// instance.
func (c *cloud) volume(ctx context.Context, r driver.CreateRequest) ([]servers.BlockDevice, error) {
	size, err := c.imageSize(ctx, r.Candidates[0].Image)
	if err != nil {
		return nil, err
	}
	size = max(size, int(r.Disk.WholeGiB()))
	return []servers.BlockDevice{{
		SourceType: servers.SourceImage, UUID: r.Candidates[0].Image, DestinationType: servers.DestinationVolume, VolumeSize: cmp.Or(size, defaultVolume),
		VolumeType: c.config.VolumeType, DeleteOnTermination: true,
	}}, nil
}

// forVersion adds the parts that depend on Nova's version. A server's tag is for people: it lets them list a fleet.
func (r *serverRequest) forVersion(version int) (servers.CreateOptsBuilder, error) {
	switch word := r.networks[0]; {
	case word != autoNetwork && word != noNetwork:
		var all []servers.Network
		for _, id := range r.networks {
			all = append(all, servers.Network{UUID: id})
		}
		r.Networks = all
	case version >= networksByWord:
		r.Networks = word
	case word == noNetwork:
		return nil, drover.Errorf(drover.KindUnsupported, "networks \"none\" needs Nova API version 2.%d; this cloud supports 2.%d", networksByWord, version)
	}
	if len(r.BlockDevice) > 0 && r.BlockDevice[0].VolumeType != "" && version < volumesByType {
		return nil, drover.Errorf(drover.KindUnsupported, "volume_type needs Nova API version 2.%d; this cloud supports 2.%d", volumesByType, version)
	}
	if version >= tagsAtCreation {
		r.Tags = []string{driver.TagFleet + "=" + r.fleet}
	}
	return r, nil
}

// ToServerCreateMap returns the body of the call: Drover's values and the template's.
func (r *serverRequest) ToServerCreateMap() (map[string]any, error) {
	body, err := r.CreateOpts.ToServerCreateMap()
	if err != nil {
		return nil, err
	}
	if r.keyPair != "" {
		body["server"].(map[string]any)["key_name"] = r.keyPair
	}
	for key, value := range r.template {
		if strings.HasSuffix(key, "scheduler_hints") {
			body[key] = value // a key next to "server"
		} else {
			body["server"].(map[string]any)[key] = value
		}
	}
	return body, nil
}

// template has the keys of the body of Nova's call that creates a server.
var template = kit.Template{
	Hint: `write JSON with the keys of "server" in the Compute API, and "os:scheduler_hints"; for example, {"os:scheduler_hints": {"group": ID}}`,
	Given: []string{"name", "flavorRef", "imageRef", "user_data", "metadata", "tags", "availability_zone", "networks", "security_groups",
		"key_name", "config_drive", "block_device_mapping_v2", "min_count", "max_count"},
	Use: "use the keys in the cloud's configuration: networks, security_groups, key_pair, tags, image, cloud_init and so on",
}

// readTemplate reads a raw template.
func readTemplate(raw string) (keys map[string]any, err error) {
	return keys, template.Read(raw, &keys)
}
