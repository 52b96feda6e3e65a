package digitalocean

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/digitalocean/godo"

	"drover"
	"drover/driver"
	"drover/driver/drivertest"
	"drover/driver/kit"
)

// config returns the configuration of a cloud that uses the fake.
func (f *fake) config() string { return "token: '${env:FAKE}', endpoint: '" + f.URL + "/'" }

// options returns a fleet's options, with these configuration keys.
func options(t *testing.T, keys, fleet string) driver.Options {
	t.Helper()
	return drivertest.Options(t, "do", "digitalocean", fleet, keys, "")
}

func (f *fake) open(t *testing.T) *cloud { return opened(t, f.config()) }

// opened returns a cloud with these configuration keys.
func opened(t *testing.T, keys string) *cloud {
	t.Helper()
	c, err := Open(t.Context(), options(t, keys, "fleet"))
	drivertest.Must(t, err)
	return c.(*cloud)
}

// covers C1 C2
func TestConformance(t *testing.T) {
	f := newFake(t)
	drivertest.Run(t, drivertest.Harness{
		Open: func(ctx context.Context, fleet string) (driver.Cloud, error) {
			return Open(ctx, options(t, f.config(), fleet))
		},
		Images: map[drover.Arch]string{"": "ubuntu-24-04-x64"},
		Fleet:  "check", Patience: 10 * time.Second, Many: 8, NoLogin: true,
	})
}

// request returns a request for the smallest instance.
func request(name string) driver.CreateRequest {
	r := drivertest.Request(name, "11", driver.Candidate{ProviderType: "s-1vcpu-1gb", Zone: "nyc1", Market: drover.OnDemand, Arch: "amd64"})
	r.Tags[driver.TagHostKey] = "SHA256:Ab+/"
	return r
}

// covers C1
func TestOpen(t *testing.T) {
	t.Setenv("DIGITALOCEAN_ACCESS_TOKEN", "")
	t.Setenv("FAKE", fakeToken)
	const token = "token: '${env:FAKE}'"
	for name, c := range map[string]struct {
		keys, fleet string
		kind        drover.ErrorKind
	}{
		"no token":                        {"", "fleet", drover.KindAuthentication},
		"a fleet name that is too long":   {token, strings.Repeat("A", 40), drover.KindInvalid},
		"an endpoint that is not a URL":   {token + ", endpoint: here", "fleet", drover.KindInvalid},
		"a tag with an invalid character": {token + ", tags: [a b]", "fleet", drover.KindInvalid},
		"a tag with Drover's prefix":      {token + ", tags: ['drover:lab']", "fleet", drover.KindInvalid},
		"a network without an id":         {token + ", vpcs: {nyc1: ''}", "fleet", drover.KindInvalid},
		"an endpoint that is not HTTP":    {token + ", endpoint: gopher://x/", "fleet", drover.KindInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Open(t.Context(), options(t, c.keys, c.fleet)); drover.KindOf(err) != c.kind {
				t.Error(err)
			}
		})
	}
	t.Run("the token defaults to doctl's", func(t *testing.T) {
		f := newFake(t)
		t.Setenv("DIGITALOCEAN_ACCESS_TOKEN", fakeToken)
		if _, err := opened(t, "endpoint: '"+f.URL+"/'").Offerings(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// covers C10
func TestOfferings(t *testing.T) {
	c := opened(t, newFake(t).config()+", regions: [nyc1]")
	all, err := c.Offerings(t.Context())
	drivertest.Must(t, err)
	got := kit.Each(all, func(o drover.Offering) string {
		r := o.Type.Resources
		return fmt.Sprint(o.Zone, " ", o.Type.Name, " ", int64(o.Price), " ", r.CPU, " ", r.Memory, " ", r.Disk, " ", r.GPUs, " ", o.Type.LocalDisk)
	})
	want := []string{
		"nyc1 gpu-h100x1-80gb 3390000000 20 240Gi 720Gi 1 5Ti",
		"nyc1 s-1vcpu-1gb 8928570 1 1Gi 25Gi 0 0",
		"nyc1 s-2vcpu-4gb 35710000 2 4Gi 80Gi 0 0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("offerings:\n%s", strings.Join(got, "\n"))
	}
	t.Run("configured types are added to the sizes or replace them", func(t *testing.T) {
		const keys = ", regions: [nyc1], types: [{name: own, provider_type: s-2vcpu-4gb, vcpus: 2, memory: 4Gi, price: 0.03}, {name: s-1vcpu-1gb, vcpus: 1, memory: 1Gi, price: 0.01}]"
		for more, want := range map[string][]string{
			"":                    {"gpu-h100x1-80gb $3.3900", "own $0.0300", "s-1vcpu-1gb $0.0100", "s-2vcpu-4gb $0.0357"},
			", list_types: false": {"own $0.0300", "s-1vcpu-1gb $0.0100"},
		} {
			all, err := opened(t, newFake(t).config()+keys+more).Offerings(t.Context())
			drivertest.Must(t, err)
			got := kit.Each(all, func(o drover.Offering) string { return fmt.Sprint(o.Type.Name, " ", o.Price) })
			if !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		}
	})
	t.Run("configured types need a region", func(t *testing.T) {
		f := newFake(t)
		if _, err := Open(t.Context(), options(t, f.config()+", types: [{name: own}]", "fleet")); err == nil || !strings.Contains(err.Error(), "regions must be set") {
			t.Error(err)
		}
	})
	t.Run("a price has no rounding error", func(t *testing.T) {
		if p, err := priceOf(godo.Size{PriceHourly: 0.00743999984115362}); err != nil || p != 7_440_000 {
			t.Error(p, err)
		}
	})
	t.Run("a price of 0 is an error", func(t *testing.T) {
		if _, err := priceOf(godo.Size{}); drover.KindOf(err) != drover.KindTransient {
			t.Error(err)
		}
	})
}

func TestRequestedInstance(t *testing.T) {
	f := newFake(t)
	c := opened(t, f.config()+", vpcs: {nyc1: a-network}, tags: [vision]")
	r := request("a")
	r.Template = `{"monitoring": true}`
	in, _ := drivertest.Create(t, c, r)
	n, _ := strconv.Atoi(in.ID)
	asked := f.asked[n]
	if asked.VPCUUID != "a-network" || !asked.Monitoring || asked.WithDropletAgent == nil || *asked.WithDropletAgent || len(asked.Tags) != 4 || !slices.Contains(asked.Tags, "vision") ||
		asked.UserData != kit.UserData(r).Reveal() {
		t.Errorf("%+v", asked)
	}
	if err := c.SetTags(t.Context(), in.ID, r.Tags); err != nil || !slices.Contains(f.droplets[n].Tags, "vision") {
		t.Errorf("after tagging: %v, %q", err, f.droplets[n].Tags)
	}
	for _, key := range f.keys {
		if !strings.HasPrefix(key.Name, "drover:fleet:") {
			t.Errorf("the login key is named %s", key.Name)
		}
	}
}

// covers C4
func TestCreate(t *testing.T) {
	for name, spoil := range map[string]func(*driver.CreateRequest){
		"without an image":          func(r *driver.CreateRequest) { r.Candidates[0].Image = "" },
		"in any of several regions": func(r *driver.CreateRequest) { r.Candidates[0].Zone = "nyc" },
		"of an unknown size":        func(r *driver.CreateRequest) { r.Candidates[0].ProviderType = "s-none" },
		"with too much user data": func(r *driver.CreateRequest) {
			r.Init = drover.NewSecret("#!/bin/sh\n" + strings.Repeat("#\n", maxUserData))
		},
		"with a template that sets the size": func(r *driver.CreateRequest) { r.Template = `{"size": "s-1vcpu-1gb"}` },
		"without a login key":                func(r *driver.CreateRequest) { r.PublicKey = "" },
		"with a tag that is too long":        func(r *driver.CreateRequest) { r.Tags["k"] = strings.Repeat("x", 300) },
		"with an invalid login key":          func(r *driver.CreateRequest) { r.PublicKey = "ssh-rsa !" },
	} {
		t.Run("an instance "+name+" is invalid", func(t *testing.T) {
			f := newFake(t)
			r := request("a")
			spoil(&r)
			drivertest.RefusedAs(t, f.open(t), r, drover.Error{Kind: drover.KindInvalid})
			if len(f.droplets) != 0 {
				t.Errorf("%d instances exist", len(f.droplets))
			}
		})
	}
	t.Run("a spot instance is unsupported", func(t *testing.T) {
		f := newFake(t)
		r := request("a")
		r.Candidates[0].Market = drover.Spot
		if _, _, err := f.open(t).Create(t.Context(), r); drover.KindOf(err) != drover.KindUnsupported || len(f.droplets) != 0 {
			t.Error(len(f.droplets), err)
		}
	})
	t.Run("an instance with GPUs is found by its name and listed", func(t *testing.T) {
		f := newFake(t)
		c, r := f.open(t), request("a")
		r.Candidates[0].ProviderType = "gpu-h100x1-80gb"
		first, _ := drivertest.Create(t, c, r)
		if again, _ := drivertest.Create(t, c, r); again.ID != first.ID {
			t.Error(again)
		}
		if all := drivertest.Listed(t, c); len(all) != 1 {
			t.Error(all)
		}
	})
	t.Run("another fleet's instance with the same name is another instance", func(t *testing.T) {
		f := newFake(t)
		other := request("a")
		other.Tags[driver.TagFleet] = "other"
		c := f.open(t)
		drivertest.Create(t, c, other)
		drivertest.Create(t, c, request("a"))
		if len(f.droplets) != 2 {
			t.Errorf("%d instances exist, want 2", len(f.droplets))
		}
	})
}

// covers C2
func TestList(t *testing.T) {
	t.Run("instances deleted while the pages are read hide no others", func(t *testing.T) {
		f := newFake(t)
		c := f.open(t)
		for i := range 10 {
			drivertest.Create(t, c, request(fmt.Sprint("i", i)))
		}
		reads := 0
		f.refuse = func(r *http.Request) (int, string) {
			if r.Method == "GET" && r.URL.Query().Has("tag_name") {
				if reads++; reads > 1 && reads < 5 {
					delete(f.droplets, slices.Min(slices.Collect(maps.Keys(f.droplets))))
				}
			}
			return 0, ""
		}
		all, err := c.List(t.Context(), map[string]string{driver.TagFleet: "fleet"})
		drivertest.Must(t, err)
		for id := range f.droplets {
			if !slices.ContainsFunc(all, func(in driver.Instance) bool { return in.ID == strconv.Itoa(id) }) {
				t.Errorf("%d is not listed", id)
			}
		}
	})
	t.Run("a failed page makes the list an error", func(t *testing.T) {
		f := newFake(t)
		c := f.open(t)
		for i := range 5 {
			drivertest.Create(t, c, request(fmt.Sprint("i", i)))
		}
		f.refuse = func(r *http.Request) (int, string) {
			if r.URL.Query().Get("page") == "2" {
				return 500, "Server Error"
			}
			return 0, ""
		}
		drivertest.ListFails(t, c, drover.KindTransient)
	})
	for name, wrong := range map[string]*godo.Response{
		"without a list":                      {},
		"with an unreadable last page number": {Meta: &godo.Meta{}, Links: &godo.Links{Pages: &godo.Pages{Next: "https://x/?page=2", Last: "https://x/?page=last"}}},
		"with the first page, always":         {Meta: &godo.Meta{}, Links: &godo.Links{Pages: &godo.Pages{Next: "https://x/?page=2", Last: "https://x/?page=3"}}},
		"with the last page, always":          {Meta: &godo.Meta{}, Links: &godo.Links{Pages: &godo.Pages{First: "https://x/?page=1", Prev: "https://x/?page=2"}}},
	} {
		t.Run("a response "+name+" is an error and not a shorter list", func(t *testing.T) {
			some, err := pages(t.Context(), func(context.Context, *godo.ListOptions) ([]godo.Droplet, *godo.Response, error) {
				return []godo.Droplet{{ID: 1}}, wrong, nil
			})
			if err == nil || some != nil {
				t.Error(some, err)
			}
		})
	}
	t.Run("a stopped instance is described, an archived or unknown one is neither found nor listed", func(t *testing.T) {
		f := newFake(t)
		c := f.open(t)
		in, _ := drivertest.Create(t, c, request("a"))
		drivertest.Must(t, c.Stop(t.Context(), in.ID))
		if in, err := c.Describe(t.Context(), in.ID); err != nil || in.State != driver.Stopped || in.Tags[driver.TagHostKey] != "SHA256:Ab+/" {
			t.Errorf("%+v, %v", in, err)
		}
		for _, d := range f.droplets {
			d.Status = "archive"
		}
		drivertest.DescribeFails(t, c, drover.KindNotFound, in.ID, "4711", "none", "-1")
		if all := drivertest.Listed(t, c); len(all) != 0 {
			t.Errorf("listed %v", all)
		}
	})
	t.Run("an instance has its addresses, zone and time", func(t *testing.T) {
		f := newFake(t)
		c := f.open(t)
		made, _ := drivertest.Create(t, c, request("a"))
		_, err := c.List(t.Context(), nil) // from then on it runs
		drivertest.Must(t, err)
		in := drivertest.Listed(t, c)[made.ID]
		if in.State != driver.Running || in.Addresses != (driver.Addresses{Private: "10.0.0.2", Public: "203.0.113.2", User: "root"}) ||
			in.Zone != "nyc1" || in.Created == 0 || in.Market != drover.OnDemand || in.Tags[driver.TagHostKey] != "SHA256:Ab+/" {
			t.Errorf("%+v", in)
		}
	})
}

// covers C7
func TestReap(t *testing.T) {
	f := newFake(t)
	c := f.open(t)
	f.tags["drover:other:k:v"] = "drover:other:k:v"
	f.tags["web"] = "web"
	in, _ := drivertest.Create(t, c, request("a"))
	left := func(when string, tags, keys int) {
		t.Helper()
		if len(f.tags) != tags || len(f.keys) != keys {
			t.Errorf("%s there are %d tags and %d keys: %v", when, len(f.tags), len(f.keys), f.tags)
		}
	}
	drivertest.Reaped(t, c, 2*time.Hour, driver.Active)
	left("while the instance exists", 5, 1)
	n, _ := strconv.Atoi(in.ID)
	delete(f.droplets, n) // as after an interrupted destroy call
	drivertest.Reaped(t, c, 0, driver.Active)
	left("just after its end", 5, 1)
	drivertest.Reaped(t, c, 2*time.Hour, driver.Active)
	left("two hours later", 3, 1)
	drivertest.Reaped(t, c, 2*time.Hour, driver.Ended)
	left("after the fleet's end", 2, 0)
	t.Run("destroying an instance deletes its own words", func(t *testing.T) {
		again, _ := drivertest.Create(t, c, request("b"))
		if err := c.Destroy(t.Context(), again.ID); err != nil {
			t.Error(err)
		}
		left("after the destroy call", 3, 1)
	})
}

// covers K9
func TestFindImages(t *testing.T) {
	f := newFake(t)
	c := f.open(t)
	for ref, want := range map[string]string{"ubuntu-24-04-x64": "11", "12": "12", "jobs-*": "13 14", "jobs-1": "13", "debian*": "12", "none": "", "no/ne?x=1": ""} {
		t.Run("finds images by "+ref, func(t *testing.T) {
			found, err := c.FindImages(t.Context(), ref, "amd64")
			ids := kit.Each(found, func(i driver.Image) string { return i.ID })
			if err != nil || strings.Join(ids, " ") != want {
				t.Error(ids, err)
			}
		})
	}
	t.Run("a response without an image is an error", func(t *testing.T) {
		f.refuse = func(*http.Request) (int, string) { return 200, "something else" }
		if found, err := c.FindImages(t.Context(), "11", "amd64"); drover.KindOf(err) != drover.KindTransient {
			t.Error(found, err)
		}
	})
}

func TestMetrics(t *testing.T) {
	f := newFake(t)
	counted := map[string]int{}
	o := options(t, f.config(), "fleet")
	o.Metric = func(call string, err error) { counted[call]++ }
	c, err := Open(t.Context(), o)
	drivertest.Must(t, err)
	in, _ := drivertest.Create(t, c, request("a"))
	c.SetTags(t.Context(), in.ID, map[string]string{driver.TagFleet: "fleet"})
	c.Destroy(t.Context(), in.ID)
	want := map[string]int{"GET /v2/droplets": 1, "POST /v2/droplets": 2, "POST /v2/account/keys": 1,
		"GET /v2/droplets/ID": 2, "DELETE /v2/tags/ID": 2, "DELETE /v2/droplets/ID": 1}
	if !maps.Equal(counted, want) {
		t.Error(counted)
	}
}

func TestRequestsPerMinute(t *testing.T) {
	for call, want := range map[string]struct{ least, most int }{"": {230, 250}, listKeys: {9, 10}} {
		budget, now, asked := kit.NewRateLimiter(rates, 1), time.Now(), 0
		for s := range 60 {
			for budget.Take(now.Add(time.Duration(s)*time.Second), 1, call) == nil {
				asked++
			}
		}
		if asked < want.least || asked > want.most {
			t.Errorf("%q: %d requests, want %d to %d", call, asked, want.least, want.most)
		}
	}
}

// covers C2
func TestNode(t *testing.T) {
	drivertest.Node(t, newFake(t).open(t), driver.Instance{ID: "7", Zone: "fra1"}, "digitalocean://7")
}
