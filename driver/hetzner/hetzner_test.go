package hetzner

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hetznercloud/hcloud-go/v2/hcloud"
	"golang.org/x/crypto/ssh"

	"drover"
	"drover/driver"
	"drover/driver/drivertest"
	"drover/driver/kit"
)

// serve answers as the fake until the test ends.
func serve(t *testing.T, f *fake) (endpoint string) {
	t.Helper()
	t.Setenv("HCLOUD_TOKEN", "secret")
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return s.URL
}

func openAt(t *testing.T, endpoint, fleet, keys string) (*cloud, error) {
	t.Helper()
	return openOver(t, http.DefaultTransport, fleet, fmt.Sprintf("endpoint: %q, %s", endpoint, keys))
}

func openOver(t *testing.T, network http.RoundTripper, fleet, keys string) (*cloud, error) {
	t.Helper()
	opened, err := open(drivertest.Options(t, "h", "hetzner", fleet, keys, ""), network)
	if err != nil {
		return nil, err
	}
	return opened.(*cloud), nil
}

func mustOpen(t *testing.T, f *fake, keys string) *cloud {
	t.Helper()
	c, err := openAt(t, serve(t, f), "fleet", keys)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// mustOpenOver opens a cloud over what stands for the network.
func mustOpenOver(t *testing.T, f http.RoundTripper) *cloud {
	t.Helper()
	c, err := openOver(t, f, "fleet", "endpoint: http://fake")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func request(t *testing.T, name string) driver.CreateRequest {
	t.Helper()
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return driver.CreateRequest{
		Name: name, Candidates: []driver.Candidate{{ProviderType: "cx23", Zone: "fsn1", Market: drover.OnDemand, Arch: "amd64", Image: "11"}},
		Tags:      map[string]string{driver.TagFleet: "fleet", driver.TagName: name},
		PublicKey: string(ssh.MarshalAuthorizedKey(key)),
	}
}

// covers C1 C2 C11
func TestConformance(t *testing.T) {
	endpoint := serve(t, newFake())
	drivertest.Run(t, drivertest.Harness{
		Open: func(_ context.Context, fleet string) (driver.Cloud, error) {
			return openAt(t, endpoint, fleet, "")
		},
		Images: map[drover.Arch]string{"": "debian-*"},
		Fleet:  "check", Patience: 10 * time.Second, Many: 8, NoLogin: true,
	})
}

// covers C1
func TestOpen(t *testing.T) {
	t.Run("nobody is called, and a token is wanted", func(t *testing.T) {
		t.Setenv("HCLOUD_TOKEN", "")
		if _, err := openAt(t, "http://127.0.0.1:1", "fleet", ""); drover.KindOf(err) != drover.KindAuthentication {
			t.Errorf("got %v", err)
		}
		t.Setenv("HCLOUD_TOKEN", "x")
		if _, err := openAt(t, "http://127.0.0.1:1", "fleet", ""); err != nil {
			t.Errorf("got %v", err)
		}
	})
	for _, keys := range []string{"ipv4: false, ipv6: false", "dollars: 0", "labels: {drover-fleet: x}", "labels: {team: a b}", "list_types: false", "types: [{name: a, vcpus: 1, memory: 1Gi}]"} {
		t.Run("refused: "+keys, func(t *testing.T) {
			t.Setenv("HCLOUD_TOKEN", "x")
			if _, err := openAt(t, "http://127.0.0.1:1", "fleet", keys); err == nil {
				t.Error("it is taken")
			}
		})
	}
}

// covers C10
func TestOfferings(t *testing.T) {
	told := func(keys string) (all []string) {
		offered, err := mustOpen(t, newFake(), keys).Offerings(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range offered {
			all = append(all, fmt.Sprint(o.Type.Name, " ", o.Zone, " ", o.Type.Resources.Arch, " ", o.Type.Resources.Disk.Rounded(), " ", o.Price))
		}
		return all
	}
	t.Run("types are in the locations that have them, out of stock or not, in dollars", func(t *testing.T) {
		want := []string{"cax11 fsn1 arm64 37.2Gi $0.007320", "cx23 fsn1 amd64 37.2Gi $0.006720", "cx23 hel1 amd64 37.2Gi $0.006720"}
		if diff := cmp.Diff(want, told("")); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("types by hand are beside the cloud's own, and take the place of those of the same name", func(t *testing.T) {
		want := []string{"cax11 fsn1 arm64 37.2Gi $0.007320", "cx23 fsn1 amd64 37Gi $0.005000", "small fsn1 amd64 37Gi $0.006500"}
		if diff := cmp.Diff(want, told("locations: [fsn1], types: [{name: small, provider_type: cx23, vcpus: 2, memory: 4Gi, disk: 37Gi, price: 0.0065}, {name: cx23, vcpus: 2, memory: 4Gi, disk: 37Gi, price: 0.005}]")); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("types by hand alone take the place of the cloud's own", func(t *testing.T) {
		want := []string{"small fsn1 amd64 37Gi $0.006500"}
		if diff := cmp.Diff(want, told("list_types: false, locations: [fsn1], types: [{name: small, provider_type: cx23, vcpus: 2, memory: 4Gi, disk: 37Gi, price: 0.0065}]")); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("processors of one's own count under a limit of their own", func(t *testing.T) {
		keys := "list_types: false, locations: [fsn1], types: [{name: own, provider_type: ccx13, vcpus: 2, memory: 8Gi, price: 0.02}, {name: shared, provider_type: cx23, vcpus: 2, memory: 4Gi, price: 0.01}]"
		offered, err := mustOpen(t, newFake(), keys).Offerings(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range offered {
			if (o.QuotaGroup == dedicated) != (o.Type.Name == "own") {
				t.Errorf("%s counts under %q", o.Type.Name, o.QuotaGroup)
			}
		}
	})
	t.Run("locations and the rate of exchange are the operator's", func(t *testing.T) {
		if diff := cmp.Diff([]string{"cx23 hel1 amd64 37.2Gi $0.005600"}, told("locations: [hel1], dollars: 1")); diff != "" {
			t.Error(diff)
		}
	})
}

// covers K9
func TestFindImages(t *testing.T) {
	c := mustOpen(t, newFake(), "")
	for _, tt := range []struct {
		name, ref string
		arch      drover.Arch
		want      []string
	}{
		{"a name is that of one image for each architecture", "debian-12", "", []string{"11", "12"}},
		{"an architecture leaves the other out", "debian-12", "arm64", []string{"12"}},
		{"a pattern fits whole names", "debian-*", "amd64", []string{"11"}},
		{"a snapshot goes by its description", "ours-*", "amd64", []string{"13"}},
		{"an id is good for either", "13", "", []string{"13"}},
		{"what there is not is not found", "debian-7", "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			found, err := c.FindImages(t.Context(), tt.ref, tt.arch)
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, i := range found {
				ids = append(ids, i.ID)
			}
			if diff := cmp.Diff(tt.want, ids); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// covers C4
func TestCreate(t *testing.T) {
	t.Run("a server has the labels, the key and the user data from the first", func(t *testing.T) {
		f := newFake()
		c := mustOpen(t, f, "networks: [7], firewalls: [8], ipv6: false")
		r := request(t, "one")
		r.Tags[driver.TagHostKey] = "SHA256:+/" + strings.Repeat("Z+", 20)
		in, _, err := c.Create(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r.Tags, in.Tags); diff != "" {
			t.Error(diff)
		}
		asked := f.servers[2].asked
		if len(f.keys) != 1 || !strings.Contains(asked["user_data"].(string), "cloud-config") || fmt.Sprint(asked["networks"], asked["ssh_keys"]) != "[7] [1]" {
			t.Errorf("asked for %v with the keys %v", asked, f.keys)
		}
	})
	t.Run("the name of another fleet's server is in the way for good", func(t *testing.T) {
		c := mustOpen(t, newFake(), "")
		r := request(t, "one")
		if _, _, err := c.Create(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		r.Tags = map[string]string{driver.TagFleet: "another"}
		if _, _, err := c.Create(t.Context(), r); drover.KindOf(err) != drover.KindInvalid {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a key that somebody took away is made again by the create after the one that failed", func(t *testing.T) {
		f := newFake()
		c := mustOpen(t, f, "")
		r := request(t, "one")
		if _, _, err := c.Create(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		clear(f.keys)
		r.Name = "two"
		if _, _, err := c.Create(t.Context(), r); err == nil {
			t.Error("it was made without a key")
		}
		if _, _, err := c.Create(t.Context(), r); err != nil || len(f.keys) != 1 {
			t.Errorf("got %v, with the keys %v", err, f.keys)
		}
	})
	t.Run("without an image nothing is asked", func(t *testing.T) {
		f := newFake()
		r := request(t, "one")
		r.Candidates[0].Image = ""
		if _, _, err := mustOpen(t, f, "").Create(t.Context(), r); drover.KindOf(err) != drover.KindInvalid || len(f.met) > 0 {
			t.Errorf("got %v after %q", err, f.met)
		}
	})
}

func TestAThousandInstances(t *testing.T) {
	t.Setenv("HCLOUD_TOKEN", "secret")
	f := newFake()
	drivertest.Thousand(t, func(t *testing.T) drivertest.Crowded {
		f.throttle, f.latency, f.pageSize = true, 300*time.Millisecond, 50
		one := request(t, "")
		return drivertest.Crowded{
			Cloud: mustOpenOver(t, f), Calls: f.calls, Refused: f.refused, AtOnce: 10, Destroys: 50,
			Request: func(name string) driver.CreateRequest {
				r := one
				r.Name, r.Tags = name, map[string]string{driver.TagFleet: "fleet", driver.TagName: name}
				return r
			},
		}
	})
}

// covers L18
func TestNothingIsTriedAgain(t *testing.T) {
	t.Setenv("HCLOUD_TOKEN", "secret")
	drivertest.Once(t, newFake(), request(t, "one"), func(t *testing.T, n *drivertest.Network) driver.Cloud { return mustOpenOver(t, n) })
}

// covers C2
func TestList(t *testing.T) {
	t.Run("what goes while the pages are read hides nothing else", func(t *testing.T) {
		f := newFake()
		c := mustOpen(t, f, "")
		for i := range 10 {
			if _, _, err := c.Create(t.Context(), request(t, fmt.Sprint("i", i))); err != nil {
				t.Fatal(err)
			}
		}
		f.listed = func() { // the oldest goes after each page
			f.oldest++
			delete(f.servers, f.oldest)
		}
		all, err := c.List(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for id := range f.servers {
			if !slices.ContainsFunc(all, func(in driver.Instance) bool { return in.ID == fmt.Sprint(id) }) {
				t.Errorf("server %d was passed over", id)
			}
		}
		if len(f.servers) < 3 {
			t.Errorf("%d servers are left, too few to tell", len(f.servers))
		}
	})
}

func TestDescribe(t *testing.T) {
	f := newFake()
	c := mustOpen(t, f, "")
	in, _, err := c.Create(t.Context(), request(t, "one"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Stop(t.Context(), in.ID); err != nil {
		t.Fatal(err)
	}
	all, err := c.List(t.Context(), nil)
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	if described, err := c.Describe(t.Context(), in.ID); err != nil || described.State != driver.Stopped || !cmp.Equal(described, all[0]) {
		t.Errorf("listed %+v, described %+v, %v", all[0], described, err)
	}
	for _, id := range []string{"4711", "none", "-1"} {
		if in, err := c.Describe(t.Context(), id); err == nil || drover.KindOf(err) != drover.KindNotFound || in.ID != "" {
			t.Errorf("%s: %+v, %v", id, in, err)
		}
	}
}

// covers C3
func TestLabels(t *testing.T) {
	valid := regexp.MustCompile(`^(([a-z0-9A-Z](?:[\-_.]|[a-z0-9A-Z]){0,61})?[a-z0-9A-Z]$|$)`)
	for _, value := range []string{
		"", "lab-x7k2p-1", "-", "Z", "ZZ5a", "a.", "SHA256:" + strings.Repeat("+/", 21), strings.Repeat("-", 200), strings.Repeat("aZ.", 63), "Grüße", strings.Repeat("x", 63) + "-",
	} {
		tags := map[string]string{"a": value, "b.2": "of another", "c": "z"}
		written := labels.Write(tags)
		for k, v := range written {
			if !valid.MatchString(v) {
				t.Errorf("%s: %q is not a label", k, v)
			}
		}
		if diff := cmp.Diff(tags, labels.Read(written)); diff != "" {
			t.Errorf("%q: %s", value, diff)
		}
	}
}

// covers C7
func TestSweep(t *testing.T) {
	f := newFake()
	c := mustOpen(t, f, "labels: {team: vision}")
	if _, _, err := c.Create(t.Context(), request(t, "one")); err != nil {
		t.Fatal(err)
	}
	t.Run("the key and the server bear the fleet's label and those of the configuration", func(t *testing.T) {
		leftovers, err := c.Leftovers(t.Context(), "fleet")
		if err != nil || len(leftovers) != 1 || leftovers[0].Tags["team"] != "vision" || leftovers[0].Tags[driver.TagFleet] != "fleet" {
			t.Errorf("leftovers %+v, %v", leftovers, err)
		}
		list, err := c.List(t.Context(), map[string]string{driver.TagFleet: "fleet"})
		if err != nil || len(list) != 1 || list[0].Tags["team"] != "vision" {
			t.Errorf("list %+v, %v", list, err)
		}
		if err := c.SetTags(t.Context(), list[0].ID, list[0].Tags); err != nil {
			t.Error(err)
		}
	})
	for _, life := range []driver.FleetState{driver.Active, driver.Ended} {
		swept, err := driver.Reap(t.Context(), c, "fleet", drover.TimeOf(time.Now()), life)
		if err != nil || (len(swept) == 1) != (life == driver.Ended) || (len(f.keys) == 0) != (life == driver.Ended) {
			t.Errorf("swept %v, %v, left %v", swept, err, f.keys)
		}
	}
}

// covers C5 L17
func TestErrors(t *testing.T) {
	drivertest.Errors(t, "hetzner", &errs, func(a kit.Answer) error { return hcloud.Error{Code: hcloud.ErrorCode(a.Code), Message: a.Message} })
	for said, kind := range map[string]drover.ErrorKind{
		"resource_unavailable": drover.KindCapacity, "uniqueness_error": drover.KindTransient, // it is looked for by its name
		"not_found": drover.KindInvalid, // of a type or location, of which there will never be one
	} {
		t.Run("a create is answered "+said, func(t *testing.T) {
			f := newFake()
			f.refuse = func() code { return code{422, said, "said so"} }
			_, _, err := mustOpen(t, f, "").Create(t.Context(), request(t, "one"))
			if n := strings.Count(strings.Join(f.met, "\n"), "POST /servers"); n != 1 {
				t.Errorf("it was asked for %d times", n)
			}
			if e := drover.AsError(err, ""); e.Kind != kind || !strings.HasPrefix(e.Message, "create instance one: ") {
				t.Errorf("%+v", e)
			}
		})
	}
}

// answered is a network that answers with nothing, and counts.
type answered struct{ requests int }

func (a *answered) RoundTrip(*http.Request) (*http.Response, error) {
	a.requests++
	return &http.Response{StatusCode: http.StatusTeapot, Status: "418"}, nil
}

func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next, counted := &answered{}, 0
		c := connect(Config{}, "t", next, func(request string, err error) {
			if request == "POST actions" && err != nil {
				counted++
			}
		})
		var err error
		for drover.KindOf(errs.Classify("", err)) != drover.KindRateLimit {
			_, _, err = c.Server.Shutdown(t.Context(), &hcloud.Server{ID: 7})
		}
		if next.requests != 3600 || counted != 3600 {
			t.Errorf("%d requests, %d counted, then %v", next.requests, counted, err)
		}
		time.Sleep(time.Second)
		if c.Server.Shutdown(t.Context(), &hcloud.Server{ID: 7}); next.requests != 3601 {
			t.Errorf("a second later: %d", next.requests)
		}
	})
}

func TestThePageHasTheListLag(t *testing.T) { drivertest.ShowsLag(t, "Hetzner Cloud", listLag) }

// covers C2
func TestNode(t *testing.T) {
	drivertest.Node(t, mustOpen(t, newFake(), ""), driver.Instance{ID: "4711", Zone: "fsn1"}, "hcloud://4711")
}
