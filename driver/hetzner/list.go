package hetzner

import (
	"context"
	"net"
	"strconv"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"
	"golang.org/x/crypto/ssh"

	"drover"
	"drover/driver"
)

// The pages of a list: of the most servers that one has, and how many are read at most.
const (
	pageSize = 50
	maxPages = 1000
)

// List asks for the servers with the tags' labels. Pages have numbers, and what goes meanwhile moves all that comes after it to the front: read
// from the first page on, a server could be passed over. So they are read from the last one on, by ascending ids: what moves is then met
// twice at worst.
func (c *cloud) List(ctx context.Context, tags map[string]string) ([]driver.Instance, error) {
	first, last, err := c.page(ctx, tags, 1)
	if err != nil || last <= 1 {
		return first, err
	}
	var all []driver.Instance
	for number := last; number >= 1; number-- {
		some, _, err := c.page(ctx, tags, number)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// page is one page of a list, and the number of the last.
func (c *cloud) page(ctx context.Context, tags map[string]string, number int) (all []driver.Instance, last int, err error) {
	servers, answer, err := c.api.Server.List(ctx, hcloud.ServerListOpts{
		ListOpts: hcloud.ListOpts{Page: number, PerPage: pageSize, LabelSelector: selector(tags)}, Sort: []string{"id:asc"},
	})
	if err != nil {
		return nil, 0, classify("list instances", err)
	}
	for _, s := range servers {
		all = append(all, instanceOf(s))
	}
	if answer.Meta.Pagination != nil {
		last = answer.Meta.Pagination.LastPage
	}
	if last > maxPages {
		return nil, 0, drover.Errorf(drover.KindTransient, "list instances: more than %d pages", maxPages)
	}
	return all, last, nil
}

func instanceOf(s *hcloud.Server) driver.Instance {
	in := driver.Instance{
		ID: strconv.FormatInt(s.ID, 10), Tags: tagsOf(s.Labels), Market: drover.OnDemand, State: stateOf(s.Status),
		Addresses: driver.Addresses{User: "root"}, Created: drover.TimeOf(s.Created),
	}
	if s.ServerType != nil {
		in.ProviderType = s.ServerType.Name
	}
	if s.Location != nil {
		in.Zone = s.Location.Name
	}
	switch {
	case !s.PublicNet.IPv4.IsUnspecified():
		in.Addresses.Public = s.PublicNet.IPv4.IP.String()
	case len(s.PublicNet.IPv6.IP) == net.IPv6len && !s.PublicNet.IPv6.IP.IsUnspecified():
		in.Addresses.Public = firstOf(s.PublicNet.IPv6.IP).String()
	}
	if len(s.PrivateNet) > 0 && s.PrivateNet[0].IP != nil {
		in.Addresses.Private = s.PrivateNet[0].IP.String()
	}
	return in
}

// firstOf is the address that a server has in the IPv6 network that is its own.
func firstOf(network net.IP) net.IP {
	ip := append(net.IP(nil), network...)
	ip[len(ip)-1] |= 1
	return ip
}

func stateOf(s hcloud.ServerStatus) driver.State {
	switch s {
	case hcloud.ServerStatusInitializing, hcloud.ServerStatusStarting:
		return driver.Pending
	case hcloud.ServerStatusStopping, hcloud.ServerStatusDeleting:
		return driver.Stopping
	case hcloud.ServerStatusOff:
		return driver.Stopped
	}
	return driver.Running
}

// SetTags replaces the labels.
func (c *cloud) SetTags(ctx context.Context, id string, tags map[string]string) error {
	server, err := serverOf(id)
	if err == nil {
		_, _, err = c.api.Server.Update(ctx, server, hcloud.ServerUpdateOpts{Labels: labelsOf(tags)})
	}
	return classify("tag instance "+id, err)
}

// serverOf is the server with an id. One that is no number never was.
func serverOf(id string) (*hcloud.Server, error) {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil || n <= 0 {
		return nil, drover.Errorf(drover.KindNotFound, "there is no instance %s", id)
	}
	return &hcloud.Server{ID: n}, nil
}

// fingerprintOf is a key's, as the API has it.
func fingerprintOf(authorized string) (string, error) {
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(authorized))
	if err != nil {
		return "", drover.Errorf(drover.KindInvalid, "read the public key: %v", err)
	}
	return ssh.FingerprintLegacyMD5(key), nil
}
