package hetzner

import (
	"cmp"
	"context"
	"errors"
	"net"
	"strconv"
	"strings"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// List lists the servers with the tags' labels.
func (c *cloud) List(ctx context.Context, tags map[string]string) ([]driver.Instance, error) {
	servers, err := pages(func(o hcloud.ListOpts) ([]*hcloud.Server, *hcloud.Response, error) {
		o.LabelSelector = selector(tags)
		return c.api.Server.List(ctx, hcloud.ServerListOpts{ListOpts: o, Sort: oldestFirst})
	})
	return kit.Each(servers, instanceOf), errs.Classify("list instances", err)
}

// Describe reads one server.
func (c *cloud) Describe(ctx context.Context, id string) (driver.Instance, error) {
	server, err := c.server(ctx, id)
	if err != nil {
		return driver.Instance{}, errs.Classify("describe instance "+id, err)
	}
	return instanceOf(server), nil
}

// server reads the server with an id.
func (c *cloud) server(ctx context.Context, id string) (*hcloud.Server, error) {
	wanted, err := serverOf(id)
	if err != nil {
		return nil, err
	}
	server, _, err := c.api.Server.GetByID(ctx, wanted.ID)
	switch {
	case err == nil && server == nil: // this is the SDK's not_found
		err = drover.Errorf(drover.KindNotFound, "there is no such server")
	case err == nil && server.ID != wanted.ID:
		err = errors.New("Hetzner's response describes another server")
	}
	return server, err
}

func instanceOf(s *hcloud.Server) driver.Instance {
	in := driver.Instance{
		ID: strconv.FormatInt(s.ID, 10), Tags: labels.Read(s.Labels), Market: drover.OnDemand, State: cmp.Or(states[s.Status], driver.Running),
		Addresses: driver.Addresses{User: "root"}, Created: drover.TimeOf(s.Created),
		ProviderType: kit.Value(s.ServerType).Name, Zone: kit.Value(s.Location).Name,
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

// firstOf returns a server's address in its IPv6 network.
func firstOf(network net.IP) net.IP {
	ip := append(net.IP(nil), network...)
	ip[len(ip)-1] |= 1
	return ip
}

// states are the states in which a server does not run.
var states = map[hcloud.ServerStatus]driver.State{
	hcloud.ServerStatusInitializing: driver.Pending, hcloud.ServerStatusStarting: driver.Pending, hcloud.ServerStatusOff: driver.Stopped,
	hcloud.ServerStatusStopping: driver.Stopping, hcloud.ServerStatusDeleting: driver.Stopping,
}

// SetTags replaces the labels, except the configured ones.
func (c *cloud) SetTags(ctx context.Context, id string, tags map[string]string) error {
	server, err := serverOf(id)
	if err == nil {
		_, _, err = c.api.Server.Update(ctx, server, hcloud.ServerUpdateOpts{Labels: c.labelsOf(tags)})
	}
	return errs.Classify("tag instance "+id, err)
}

// serverOf returns the server with an id. An id that is not a number never existed.
func serverOf(id string) (*hcloud.Server, error) {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil || n <= 0 {
		return nil, drover.Errorf(drover.KindNotFound, "there is no instance %s", id)
	}
	return &hcloud.Server{ID: n}, nil
}

// labels is the encoding of tags. A label's value has at most 63 letters, digits, dashes, underscores and dots, and
// begins and ends with a letter or digit: see "Labels" in the API's reference.
var labels = kit.Labels{Max: 63, Mark: 'Z', Joint: ".", Plain: func(c byte, edge bool) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || !edge && (c == '-' || c == '_' || c == '.')
}}

// labelsOf returns the labels for tags, and the configured ones.
func (c *cloud) labelsOf(tags map[string]string) map[string]string {
	return kit.MergeTags(c.config.Labels, labels.Write(tags))
}

// selector returns the label selector for all these tags.
func selector(tags map[string]string) string {
	return strings.Join(kit.EachTag(labels.Write(tags), func(key, value string) string { return key + "=" + value }), ",")
}
