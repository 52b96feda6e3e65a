package hetzner

import (
	"context"
	"fmt"
	"regexp"
	"strconv"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"drover"
	"drover/driver"
)

// instanceName is what a server may be called.
var instanceName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,62}$`)

// Create makes a server of the first candidate. That the name is taken means that it was made before.
func (c *cloud) Create(ctx context.Context, r driver.CreateRequest) (driver.Instance, driver.Candidate, error) {
	doing := "create instance " + r.Name
	opts, err := c.options(ctx, r)
	if err != nil {
		return driver.Instance{}, driver.Candidate{}, classify(doing, err)
	}
	made, _, err := c.api.Server.Create(ctx, opts)
	if err != nil {
		c.forget(opts.SSHKeys)
	}
	server := made.Server
	if is(err, hcloud.ErrorCodeUniquenessError) {
		server, err = c.byName(ctx, r)
	}
	if err != nil {
		return driver.Instance{}, driver.Candidate{}, unknownType(classify(doing, err), err)
	}
	in := instanceOf(server)
	return in, driver.Candidate{ProviderType: in.ProviderType, Zone: in.Zone, Market: in.Market}, nil
}

// options is the request in the API's words.
func (c *cloud) options(ctx context.Context, r driver.CreateRequest) (opts hcloud.ServerCreateOpts, err error) {
	switch {
	case !instanceName.MatchString(r.Name):
		return opts, drover.Errorf(drover.KindInvalid, "a name has letters, digits and dashes, at most 63")
	case len(r.Candidates) == 0:
		return opts, drover.Errorf(drover.KindInvalid, "no candidates")
	case r.Candidates[0].Market != drover.OnDemand:
		return opts, drover.Errorf(drover.KindUnsupported, "there is no spot market")
	}
	first := r.Candidates[0]
	image, err := strconv.ParseInt(first.Image, 10, 64)
	if err != nil {
		return opts, drover.Errorf(drover.KindInvalid, "no image is configured").WithHint("write image: debian-12 in the cloud's configuration")
	}
	text, err := driver.UserDataWithin(r, maxUserData)
	if err != nil {
		return opts, err
	}
	key, err := c.sshKey(ctx, r)
	if err != nil {
		return opts, err
	}
	opts = hcloud.ServerCreateOpts{
		Name: r.Name, ServerType: &hcloud.ServerType{Name: first.ProviderType}, Location: &hcloud.Location{Name: first.Zone},
		Image: &hcloud.Image{ID: image}, SSHKeys: []*hcloud.SSHKey{key}, UserData: text, Labels: labelsOf(r.Tags),
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

// byName is the server that has an instance's name. One of another fleet's is in the way for good.
func (c *cloud) byName(ctx context.Context, r driver.CreateRequest) (*hcloud.Server, error) {
	server, _, err := c.api.Server.GetByName(ctx, r.Name)
	switch {
	case err != nil:
		return nil, err
	case server == nil:
		return nil, drover.Errorf(drover.KindTransient, "its name is taken, by nothing that is listed")
	case tagsOf(server.Labels)[driver.TagFleet] != r.Tags[driver.TagFleet]:
		return nil, drover.Errorf(drover.KindInvalid, "its name is taken, by a server that is not of this fleet")
	}
	return server, nil
}

// unknownType has a type or location that there is not be refused for good, which the API calls not found.
func unknownType(classed, err error) error {
	if is(err, hcloud.ErrorCodeNotFound) {
		return &drover.Error{Kind: drover.KindInvalid, Message: classed.Error()}
	}
	return classed
}

// sshKey is the project's copy of the key that may log in. It is looked for once, and anew after a create that failed.
func (c *cloud) sshKey(ctx context.Context, r driver.CreateRequest) (*hcloud.SSHKey, error) {
	fingerprint, err := driver.Fingerprint(r.PublicKey)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	key := c.keys[fingerprint]
	c.mu.Unlock()
	if key != nil {
		return key, nil
	}
	key, err = c.findKey(ctx, r, fingerprint)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys[fingerprint] = key
	return key, nil
}

// forget has keys be looked for again: somebody may have taken them away.
func (c *cloud) forget(keys []*hcloud.SSHKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range keys {
		delete(c.keys, k.Fingerprint)
	}
}

// findKey finds the key by its fingerprint, and makes one if there is none.
func (c *cloud) findKey(ctx context.Context, r driver.CreateRequest, fingerprint string) (*hcloud.SSHKey, error) {
	key, _, err := c.api.SSHKey.GetByFingerprint(ctx, fingerprint)
	if key != nil || err != nil {
		return key, err
	}
	fleet := r.Tags[driver.TagFleet]
	key, _, err = c.api.SSHKey.Create(ctx, hcloud.SSHKeyCreateOpts{
		Name: fmt.Sprintf("drover-%s-%.11s", fleet, fingerprint), PublicKey: r.PublicKey, Labels: labelsOf(map[string]string{driver.TagFleet: fleet}),
	})
	if is(err, hcloud.ErrorCodeUniquenessError) { // another create made it meanwhile
		key, _, err = c.api.SSHKey.GetByFingerprint(ctx, fingerprint)
		if key == nil && err == nil {
			err = drover.Errorf(drover.KindTransient, "the key that may log in is there, and is not listed")
		}
	}
	return key, err
}
