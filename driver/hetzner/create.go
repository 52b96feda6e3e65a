package hetzner

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// longestName is the limit for a host name, since a server's name is its host name.
const longestName = 63

// demands are what Hetzner requires of every create call.
var demands = kit.Demands{Longest: longestName, Image: "debian-12", OnDemand: true, UserData: maxUserData}

// Create creates a server for the first candidate.
func (c *cloud) Create(ctx context.Context, r driver.CreateRequest) (driver.Instance, driver.Candidate, error) {
	return errs.Create(ctx, r, demands, c.create)
}

// create creates the server. If the name is taken, an earlier call created it.
func (c *cloud) create(ctx context.Context, r driver.CreateRequest) (driver.Instance, error) {
	opts, err := c.options(ctx, r)
	if err != nil {
		return driver.Instance{}, err
	}
	made, _, err := c.api.Server.Create(ctx, opts)
	if err != nil {
		c.keys.Forget()
	}
	server := made.Server
	if err == nil && server.ID == 0 {
		err = errors.New("Hetzner's response contains no server")
	}
	switch errs.KindOf(err) {
	case drover.KindConflict:
		server, err = c.byName(ctx, r)
	case drover.KindNotFound, drover.KindInvalid: // perhaps somebody deleted the login key
		switch key, failed := c.sshKey(ctx, r); {
		case failed != nil:
			err = failed
		case key.ID != opts.SSHKeys[0].ID:
			err = drover.Errorf(drover.KindTransient, "the login key was deleted and has been added again")
		}
	}
	if err != nil {
		return driver.Instance{}, err
	}
	return instanceOf(server), nil
}

// options returns the request for the API.
func (c *cloud) options(ctx context.Context, r driver.CreateRequest) (opts hcloud.ServerCreateOpts, err error) {
	first := r.Candidates[0]
	image, err := strconv.ParseInt(first.Image, 10, 64)
	if err != nil {
		return opts, drover.Errorf(drover.KindInvalid, "%q is not an image id", first.Image)
	}
	key, err := c.sshKey(ctx, r)
	if err != nil {
		return opts, err
	}
	opts = hcloud.ServerCreateOpts{
		Name: r.Name, ServerType: &hcloud.ServerType{Name: first.ProviderType}, Location: &hcloud.Location{Name: first.Zone},
		Image: &hcloud.Image{ID: image}, SSHKeys: []*hcloud.SSHKey{key}, UserData: kit.UserData(r).Reveal(), Labels: c.labelsOf(r.Tags),
		PublicNet: &hcloud.ServerCreatePublicNet{EnableIPv4: c.config.IPv4, EnableIPv6: c.config.IPv6},
	}
	for _, id := range c.config.Networks {
		opts.Networks = append(opts.Networks, &hcloud.Network{ID: id})
	}
	for _, id := range c.config.Firewalls {
		opts.Firewalls = append(opts.Firewalls, &hcloud.ServerCreateFirewall{Firewall: hcloud.Firewall{ID: id}})
	}
	return opts, nil
}

// byName returns the server with an instance's name. A server of another fleet blocks the name permanently.
func (c *cloud) byName(ctx context.Context, r driver.CreateRequest) (*hcloud.Server, error) {
	server, _, err := c.api.Server.GetByName(ctx, r.Name)
	switch {
	case err != nil:
		return nil, err
	case server == nil || server.Name != r.Name:
		return nil, drover.Errorf(drover.KindTransient, "its name is taken, but no server with this name is listed")
	case labels.Read(server.Labels)[driver.TagFleet] != r.Tags[driver.TagFleet]:
		return nil, drover.Errorf(drover.KindInvalid, "its name is taken by a server of another fleet")
	}
	return server, nil
}

// sshKey returns the project's copy of the login key. It looks the key up once, and again after a failed create call.
func (c *cloud) sshKey(ctx context.Context, r driver.CreateRequest) (*hcloud.SSHKey, error) {
	fingerprint, err := kit.Fingerprint(r.PublicKey)
	if err != nil {
		return nil, err
	}
	return c.keys.Get(ctx, fingerprint, func() (*hcloud.SSHKey, error) { return c.findKey(ctx, r, fingerprint) })
}

// findKey finds the key by its fingerprint, or creates it.
func (c *cloud) findKey(ctx context.Context, r driver.CreateRequest, fingerprint string) (*hcloud.SSHKey, error) {
	key, _, err := c.api.SSHKey.GetByFingerprint(ctx, fingerprint)
	if key != nil || err != nil {
		return key, err
	}
	fleet := r.Tags[driver.TagFleet]
	key, _, err = c.api.SSHKey.Create(ctx, hcloud.SSHKeyCreateOpts{
		Name: fmt.Sprintf("drover-%s-%.11s", fleet, fingerprint), PublicKey: r.PublicKey, Labels: c.labelsOf(map[string]string{driver.TagFleet: fleet}),
	})
	if errs.KindOf(err) == drover.KindConflict { // another controller has just created it
		key, _, err = c.api.SSHKey.GetByFingerprint(ctx, fingerprint)
		if key == nil && err == nil {
			err = drover.Errorf(drover.KindTransient, "the login key exists but is not listed")
		}
	}
	if err == nil && key.ID == 0 {
		err = drover.Errorf(drover.KindTransient, "the response about the login key is incomplete")
	}
	return key, err
}
