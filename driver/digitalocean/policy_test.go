package digitalocean

import (
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drover/driver"
	"drover/driver/drivertest"
)

// scopes are those that DigitalOcean's reference of the API has for each call.
var scopes = map[string][]string{
	"GET /v2/sizes": {"sizes:read", "regions:read"}, "GET /v2/images": {"image:read"}, "GET /v2/images/ID": {"image:read"},
	"POST /v2/droplets": {"droplet:create"}, "GET /v2/droplets": {"droplet:read"}, "GET /v2/droplets/ID": {"droplet:read"}, "DELETE /v2/droplets/ID": {"droplet:delete"},
	"POST /v2/droplets/ID/actions": {"droplet:update"},
	"POST /v2/tags":                {"tag:create"}, "GET /v2/tags": {"tag:read"}, "GET /v2/tags/ID": {"tag:read"}, "DELETE /v2/tags/ID": {"tag:delete"},
	"POST /v2/tags/ID/resources": {"tag:create"}, "DELETE /v2/tags/ID/resources": {"tag:delete"},
	"POST /v2/account/keys": {"ssh_key:create"}, "GET /v2/account/keys": {"ssh_key:read"}, "DELETE /v2/account/keys/ID": {"ssh_key:delete"},
}

// implied are scopes that are wanted of whoever creates Droplets, and to put one into a network.
var implied = []string{"actions:read", "vpc:read"}

func TestTheScopesAreThoseOfTheCallsThatAreMade(t *testing.T) {
	f, want := newFake(t), slices.Clone(implied)
	o := options(t, f.config(), "lab")
	o.Metric = func(call string, _ error) {
		needs, known := scopes[call]
		if !known {
			t.Errorf("%s: what does it need?", call)
		}
		want = append(want, needs...)
	}
	opened, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	c := opened.(*cloud)
	in, _, err := c.Create(t.Context(), request("a"))
	if err != nil {
		t.Fatal(err)
	}
	leftovers, err := c.Leftovers(t.Context(), "lab")
	for _, s := range leftovers {
		c.Remove(t.Context(), s)
	}
	c.Remove(t.Context(), driver.Leftover{Kind: leftoverTag, ID: "drover:lab:k:v"})
	c.Offerings(t.Context())
	c.FindImages(t.Context(), "jobs-*", "amd64")
	c.FindImages(t.Context(), "12", "amd64")
	c.List(t.Context(), ofTheFleet)
	c.Describe(t.Context(), in.ID)
	c.SetTags(t.Context(), in.ID, map[string]string{driver.TagFleet: "lab", "a": "b"})
	c.Stop(t.Context(), in.ID)
	c.Start(t.Context(), in.ID)
	c.Destroy(t.Context(), in.ID)
	slices.Sort(want)
	shown := drivertest.ReadPage(t, "digitalocean").Words(t, "Permissions", regexp.MustCompile("`([a-z_]+:[a-z]+)`"))
	if diff := cmp.Diff(slices.Compact(want), shown); diff != "" {
		t.Errorf("the calls (-) and the page's scopes (+): %s", diff)
	}
}
