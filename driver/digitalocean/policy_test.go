package digitalocean

import (
	"slices"
	"testing"

	"drover/driver"
	"drover/driver/drivertest"
)

// scopes are the scopes of each call in DigitalOcean's API reference.
var scopes = map[string][]string{
	"GET /v2/sizes": {"sizes:read", "regions:read"}, "GET /v2/images": {"image:read"}, "GET /v2/images/ID": {"image:read"},
	"POST /v2/droplets": {"droplet:create"}, "GET /v2/droplets": {"droplet:read"}, "GET /v2/droplets/ID": {"droplet:read"}, "DELETE /v2/droplets/ID": {"droplet:delete"},
	"POST /v2/droplets/ID/actions": {"droplet:update"},
	"POST /v2/tags":                {"tag:create"}, "GET /v2/tags": {"tag:read"}, "GET /v2/tags/ID": {"tag:read"}, "DELETE /v2/tags/ID": {"tag:delete"},
	"POST /v2/tags/ID/resources": {"tag:create"}, "DELETE /v2/tags/ID/resources": {"tag:delete"},
	"POST /v2/account/keys": {"ssh_key:create"}, "GET /v2/account/keys": {"ssh_key:read"}, "DELETE /v2/account/keys/ID": {"ssh_key:delete"},
}

// implied are additional scopes for creating Droplets and for putting one into a network.
var implied = []string{"actions:read", "vpc:read"}

func TestScopesMatchCalls(t *testing.T) {
	f, want := newFake(t), slices.Clone(implied)
	o := options(t, f.config(), "fleet")
	o.Metric = func(call string, _ error) {
		needs, known := scopes[call]
		if !known {
			t.Errorf("%s is not in scopes", call)
		}
		want = append(want, needs...)
	}
	opened, err := Open(t.Context(), o)
	drivertest.Must(t, err)
	c := opened.(*cloud)
	in, _ := drivertest.Create(t, c, request("a"))
	leftovers, err := c.Leftovers(t.Context(), "fleet")
	for _, s := range leftovers {
		c.Remove(t.Context(), s)
	}
	c.Remove(t.Context(), driver.Leftover{Kind: leftoverTag, ID: "drover:fleet:k:v"})
	c.Offerings(t.Context())
	c.FindImages(t.Context(), "jobs-*", "amd64")
	c.FindImages(t.Context(), "12", "amd64")
	c.List(t.Context(), map[string]string{driver.TagFleet: "fleet"})
	c.Describe(t.Context(), in.ID)
	c.SetTags(t.Context(), in.ID, map[string]string{driver.TagFleet: "fleet", "a": "b"})
	c.Stop(t.Context(), in.ID)
	c.Start(t.Context(), in.ID)
	c.Destroy(t.Context(), in.ID)
	drivertest.ShowsPermissions(t, "digitalocean", "`([a-z_]+:[a-z]+)`", want)
}
