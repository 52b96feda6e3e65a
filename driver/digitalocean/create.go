package digitalocean

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/digitalocean/godo"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// longestName is the API's limit: see a Droplet's "name" in its reference.
const longestName = 255

// demands are what DigitalOcean requires of every create call.
var demands = kit.Demands{Longest: longestName, Image: "debian-12-x64", OnDemand: true, UserData: maxUserData}

// Create creates a Droplet. Names need not be unique there, so it first looks for the name, in one call per name at a
// time.
func (c *cloud) Create(ctx context.Context, r driver.CreateRequest) (in driver.Instance, _ driver.Candidate, err error) {
	release, err := c.names.Hold(ctx, r.Name)
	if err == nil {
		defer release()
		in, err = c.create(ctx, r)
	}
	return in, in.Candidate(), errs.Classify("create instance "+r.Name, err)
}

// create finds the Droplet or creates it; it adds the login key to the account if necessary.
func (c *cloud) create(ctx context.Context, r driver.CreateRequest) (in driver.Instance, err error) {
	wanted, err := c.request(r)
	if err == nil {
		ctx, err = c.gate.Prepay(ctx, anyRequest, 2)
	}
	if err != nil {
		return in, err
	}
	if in, found, err := c.find(ctx, r); err != nil || found {
		return in, err
	}
	in, err = c.createAs(ctx, wanted, r.Candidates[0])
	if err != nil && strings.Contains(err.Error(), unknownKey) {
		if err = c.addKey(ctx, r.PublicKey, wanted.SSHKeys[0].Fingerprint); err == nil {
			in, err = c.createAs(ctx, wanted, r.Candidates[0])
		}
	}
	return in, err
}

// createAs creates a Droplet from a candidate.
func (c *cloud) createAs(ctx context.Context, wanted godo.DropletCreateRequest, as driver.Candidate) (driver.Instance, error) {
	wanted.Size, wanted.Region = as.ProviderType, as.Zone
	wanted.Image = imageOf(as.Image)
	wanted.VPCUUID = cmp.Or(c.config.VPCs[as.Zone], wanted.VPCUUID)
	wanted.Tags = slices.Concat(wanted.Tags, c.config.Tags)
	d, _, err := c.api.Droplets.Create(ctx, &wanted)
	if err != nil {
		return driver.Instance{}, errs.ClassifyCreate(as.ProviderType+" in "+as.Zone, as.Market, err)
	}
	if d == nil || d.ID == 0 {
		return driver.Instance{}, drover.Errorf(drover.KindTransient, "the response contains no Droplet")
	}
	in := instance(*d)
	in.Zone, in.ProviderType = as.Zone, as.ProviderType
	in.Tags = words.Read(wanted.Tags)
	return in, nil
}

// request returns the create request without the candidate's values.
func (c *cloud) request(r driver.CreateRequest) (wanted godo.DropletCreateRequest, err error) {
	if err := kit.CheckRequest(r, demands); err != nil {
		return wanted, err
	}
	// The API would accept a region without its number as any of several regions.
	if zone := r.Candidates[0].Zone; zone == "" || !strings.ContainsAny(zone[len(zone)-1:], "0123456789") {
		return wanted, drover.Errorf(drover.KindInvalid, "%q is not a DigitalOcean region", zone)
	}
	if wanted, err = readTemplate(r.Template); err != nil {
		return wanted, err
	}
	// Without a login key, DigitalOcean sets a password, mails it, and requires its change at the first login.
	wanted.Name, wanted.UserData = r.Name, kit.UserData(r).Reveal()
	print, err := kit.Fingerprint(r.PublicKey)
	if err != nil {
		return wanted, err
	}
	wanted.SSHKeys = []godo.DropletCreateSSHKey{{Fingerprint: print}}
	wanted.Tags, err = words.Write(r.Tags, time.Now())
	return wanted, err
}

// extras are what a user's template may set.
type extras struct {
	VPC        string `json:"vpc_uuid"`
	IPv6       bool   `json:"ipv6"`
	Monitoring bool   `json:"monitoring"`
	Public     *bool  `json:"public_networking"`
	Agent      bool   `json:"with_droplet_agent"`
}

var template = kit.Template{Hint: "write a JSON object with any of vpc_uuid, ipv6, monitoring, public_networking and with_droplet_agent"}

// readTemplate starts a request from a template. It disables DigitalOcean's agent unless the template enables it, since
// the agent lets others log in through a console.
func readTemplate(text string) (wanted godo.DropletCreateRequest, err error) {
	var t extras
	err = template.Read(text, &t)
	return godo.DropletCreateRequest{VPCUUID: t.VPC, IPv6: t.IPv6, Monitoring: t.Monitoring, PublicNetworking: t.Public, WithDropletAgent: &t.Agent}, err
}

// imageOf identifies an image by its number, otherwise by its name.
func imageOf(id string) godo.DropletCreateImage {
	if n, ok := number(id); ok {
		return godo.DropletCreateImage{ID: n}
	}
	return godo.DropletCreateImage{Slug: id}
}

// find looks for the fleet's existing instance with the name.
func (c *cloud) find(ctx context.Context, r driver.CreateRequest) (in driver.Instance, found bool, err error) {
	droplets, err := pages(ctx, func(ctx context.Context, o *godo.ListOptions) ([]godo.Droplet, *godo.Response, error) {
		return c.api.Droplets.ListByName(ctx, r.Name, o)
	})
	if err != nil {
		return in, false, errs.Classify("look for a Droplet with this name", err)
	}
	if strings.HasPrefix(r.Candidates[0].ProviderType, "gpu-") {
		gpus, err := c.withGPUs(ctx)
		if err != nil {
			return in, false, err
		}
		droplets = append(droplets, gpus...)
	}
	for _, d := range droplets {
		if in := instance(d); d.Name == r.Name && in.Tags[driver.TagFleet] == r.Tags[driver.TagFleet] {
			return in, true, nil
		}
	}
	return in, false, nil
}

// addKey adds a login key to the account. Somebody else may do so at the same time.
func (c *cloud) addKey(ctx context.Context, key, print string) error {
	_, answer, err := c.api.Keys.Create(ctx, &godo.KeyCreateRequest{Name: words.OfFleet(c.o.Fleet) + ":" + print, PublicKey: key})
	if err != nil && answer != nil && strings.Contains(err.Error(), "already in use") {
		return nil
	}
	return errs.Classify("add the login key", err)
}
