package hetzner

import (
	"context"
	"fmt"
	"io"
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

	"drover"
	"drover/driver"
	"drover/driver/drivertest"
	"drover/driver/kit"
)

// imitate opens a cloud over a fake network, with these configuration keys in addition to the endpoint.
func imitate(t *testing.T, network http.RoundTripper, keys string) *cloud {
	t.Helper()
	c, err := open(options(t, "fleet", "endpoint: 'http://fake', "+keys), network)
	drivertest.Must(t, err)
	return c.(*cloud)
}

func options(t *testing.T, fleet, keys string) driver.Options {
	t.Helper()
	t.Setenv("HCLOUD_TOKEN", "secret")
	return drivertest.Options(t, "h", "hetzner", fleet, keys, "")
}

func request(name string) driver.CreateRequest {
	return drivertest.Request(name, "11", driver.Candidate{ProviderType: "cx23", Zone: "fsn1", Market: drover.OnDemand, Arch: "amd64"})
}

// TestConformance runs the suite against the fake, over a real connection.
// covers C1 C2 C11
func TestConformance(t *testing.T) {
	s := httptest.NewServer(newFake())
	t.Cleanup(s.Close)
	drivertest.Run(t, drivertest.Harness{
		Open: func(ctx context.Context, fleet string) (driver.Cloud, error) {
			return Open(ctx, options(t, fleet, "endpoint: '"+s.URL+"'"))
		},
		Images: map[drover.Arch]string{"": "debian-*"},
		Fleet:  "check", Patience: 10 * time.Second, Many: 8, NoLogin: true,
	})
}

// covers C1
func TestOpen(t *testing.T) {
	t.Run("makes no call and needs a token", func(t *testing.T) {
		for token, want := range map[string]drover.ErrorKind{"": drover.KindAuthentication, "x": ""} {
			o := options(t, "fleet", "endpoint: 'http://127.0.0.1:1'")
			t.Setenv("HCLOUD_TOKEN", token)
			if _, err := Open(t.Context(), o); drover.KindOf(err) != want {
				t.Errorf("with the token %q: %v", token, err)
			}
		}
	})
	for _, keys := range []string{"ipv4: false, ipv6: false", "dollars: 0", "labels: {drover-fleet: x}", "labels: {team: a b}", "list_types: false", "types: [{name: a, vcpus: 1, memory: 1Gi}]"} {
		t.Run("refused: "+keys, func(t *testing.T) {
			if _, err := open(options(t, "fleet", keys), newFake()); err == nil {
				t.Error("it was accepted")
			}
		})
	}
}

// covers C10
func TestOfferings(t *testing.T) {
	offers := func(keys string) (all []string) {
		offered, err := imitate(t, newFake(), keys).Offerings(t.Context())
		drivertest.Must(t, err)
		for _, o := range offered {
			all = append(all, fmt.Sprint(o.Type.Name, " ", o.Zone, " ", o.Type.Resources.Arch, " ", o.Type.Resources.Disk.Rounded(), " ", o.Price))
		}
		return all
	}
	t.Run("are the types in all locations that have them, even out of stock, priced in dollars", func(t *testing.T) {
		want := []string{"cax11 fsn1 arm64 37.2Gi $0.007320", "cx23 fsn1 amd64 37.2Gi $0.006720", "cx23 hel1 amd64 37.2Gi $0.006720"}
		if diff := cmp.Diff(want, offers("")); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("configured types are added to the cloud's own and replace those of the same name", func(t *testing.T) {
		want := []string{"cax11 fsn1 arm64 37.2Gi $0.007320", "cx23 fsn1 amd64 37Gi $0.005000", "small fsn1 amd64 37Gi $0.006500"}
		if diff := cmp.Diff(want, offers("locations: [fsn1], types: [{name: small, provider_type: cx23, vcpus: 2, memory: 4Gi, disk: 37Gi, price: 0.0065}, {name: cx23, vcpus: 2, memory: 4Gi, disk: 37Gi, price: 0.005}]")); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("configured types replace the cloud's own if those are not listed", func(t *testing.T) {
		want := []string{"small fsn1 amd64 37Gi $0.006500"}
		if diff := cmp.Diff(want, offers("list_types: false, locations: [fsn1], types: [{name: small, provider_type: cx23, vcpus: 2, memory: 4Gi, disk: 37Gi, price: 0.0065}]")); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("dedicated processors have a separate limit", func(t *testing.T) {
		keys := "list_types: false, locations: [fsn1], types: [{name: own, provider_type: ccx13, vcpus: 2, memory: 8Gi, price: 0.02}, {name: shared, provider_type: cx23, vcpus: 2, memory: 4Gi, price: 0.01}]"
		offered, err := imitate(t, newFake(), keys).Offerings(t.Context())
		drivertest.Must(t, err)
		for _, o := range offered {
			if (o.QuotaGroup == dedicated) != (o.Type.Name == "own") {
				t.Errorf("%s counts under %q", o.Type.Name, o.QuotaGroup)
			}
		}
	})
	t.Run("locations and the exchange rate are configurable", func(t *testing.T) {
		if diff := cmp.Diff([]string{"cx23 hel1 amd64 37.2Gi $0.005600"}, offers("locations: [hel1], dollars: 1")); diff != "" {
			t.Error(diff)
		}
	})
}

// covers K9
func TestFindImages(t *testing.T) {
	c := imitate(t, newFake(), "")
	for _, tt := range []struct {
		name, ref string
		arch      drover.Arch
		want      []string
	}{
		{"a name matches one image for each architecture", "debian-12", "", []string{"11", "12"}},
		{"an architecture excludes the other", "debian-12", "arm64", []string{"12"}},
		{"a pattern matches whole names", "debian-*", "amd64", []string{"11"}},
		{"a snapshot is found by its description", "ours-*", "amd64", []string{"13"}},
		{"an id finds an image or a snapshot", "13", "", []string{"13"}},
		{"a missing image is not found", "debian-7", "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			found, err := c.FindImages(t.Context(), tt.ref, tt.arch)
			drivertest.Must(t, err)
			if diff := cmp.Diff(tt.want, kit.Each(found, func(i driver.Image) string { return i.ID })); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// covers C4
func TestCreate(t *testing.T) {
	t.Run("sets the labels, the key and the user data in the create call", func(t *testing.T) {
		f := newFake()
		c := imitate(t, f, "networks: [7], firewalls: [8], ipv6: false")
		r := request("one")
		r.Tags[driver.TagHostKey] = "SHA256:+/" + strings.Repeat("Z+", 20)
		in, _ := drivertest.Create(t, c, r)
		if diff := cmp.Diff(r.Tags, in.Tags); diff != "" {
			t.Error(diff)
		}
		asked := f.servers[2].asked
		if len(f.keys) != 1 || !strings.Contains(asked["user_data"].(string), "cloud-config") || fmt.Sprint(asked["networks"], asked["ssh_keys"]) != "[7] [1]" {
			t.Errorf("requested %v with the keys %v", asked, f.keys)
		}
	})
	t.Run("another fleet's server with the same name makes the request invalid", func(t *testing.T) {
		c := imitate(t, newFake(), "")
		r := request("one")
		drivertest.Create(t, c, r)
		r.Tags = map[string]string{driver.TagFleet: "another"}
		drivertest.RefusedAs(t, c, r, drover.Error{Kind: drover.KindInvalid})
	})
	t.Run("a key that somebody deleted is created again after one failed create call", func(t *testing.T) {
		f := newFake()
		c := imitate(t, f, "")
		r := request("one")
		drivertest.Create(t, c, r)
		clear(f.keys)
		r.Name = "two"
		drivertest.RefusedAs(t, c, r, drover.Error{Kind: drover.KindTransient})
		if _, _, err := c.Create(t.Context(), r); err != nil || len(f.keys) != 1 {
			t.Errorf("got %v, with the keys %v", err, f.keys)
		}
	})
	t.Run("without an image, makes no call", func(t *testing.T) {
		f := newFake()
		r := request("one")
		r.Candidates[0].Image = ""
		if _, _, err := imitate(t, f, "").Create(t.Context(), r); drover.KindOf(err) != drover.KindInvalid || len(f.met) > 0 {
			t.Errorf("got %v after %q", err, f.met)
		}
	})
}

func TestAThousandInstances(t *testing.T) {
	f := newFake()
	drivertest.Thousand(t, func(t *testing.T) drivertest.Crowded {
		f.throttle, f.latency, f.pageSize = true, 300*time.Millisecond, 50
		return drivertest.Crowded{Cloud: imitate(t, f, ""), Request: request, Calls: f.calls, Refused: f.refused, AtOnce: 10, Destroys: 50}
	})
}

// covers L18
func TestNoCallIsRetried(t *testing.T) {
	drivertest.Once(t, newFake(), request("one"), func(t *testing.T, n *drivertest.Network) driver.Cloud { return imitate(t, n, "") })
}

// covers C2
func TestList(t *testing.T) {
	t.Run("servers deleted while the pages are read hide no others", func(t *testing.T) {
		f := newFake()
		c := imitate(t, f, "")
		for i := range 10 {
			drivertest.Create(t, c, request(fmt.Sprint("i", i)))
		}
		f.listed = func() { // after each page, somebody deletes the oldest server
			f.oldest++
			delete(f.servers, f.oldest)
		}
		all, err := c.List(t.Context(), nil)
		drivertest.Must(t, err)
		for id := range f.servers {
			if !slices.ContainsFunc(all, func(in driver.Instance) bool { return in.ID == fmt.Sprint(id) }) {
				t.Errorf("server %d is not listed", id)
			}
		}
		if len(f.servers) < 3 {
			t.Errorf("%d servers are left, too few for the test", len(f.servers))
		}
	})
}

// redirecting is a network that redirects every request, and counts them.
type redirecting struct{ requests *int }

func (r redirecting) RoundTrip(*http.Request) (*http.Response, error) {
	*r.requests++
	return &http.Response{StatusCode: http.StatusFound, Header: http.Header{"Location": {"http://elsewhere/login"}}, Body: io.NopCloser(strings.NewReader("{}"))}, nil
}

func TestGarbledResponses(t *testing.T) {
	t.Run("all pages are read if the number of the last one is missing, and a repeated page is an error", func(t *testing.T) {
		f := newFake()
		c := imitate(t, f, "")
		for i := range 3*f.pageSize + 1 {
			drivertest.Create(t, c, request(fmt.Sprint("i", i)))
		}
		f.uncount = true
		if got := drivertest.Listed(t, c); len(got) != len(f.servers) {
			t.Errorf("%d of %d servers are listed", len(got), len(f.servers))
		}
		f.pageSize = 1
		if found, err := c.FindImages(t.Context(), "*", ""); len(found) != len(images) {
			t.Errorf("%d of %d images are listed, %v", len(found), len(images), err)
		}
		f.stuck = true // as behind a cache that ignores the page
		drivertest.ListFails(t, c, drover.KindTransient)
		_, imagesErr := c.FindImages(t.Context(), "debian-12", "")
		_, typesErr := c.Offerings(t.Context())
		for _, err := range []error{imagesErr, typesErr} {
			if drover.KindOf(err) != drover.KindTransient || len(f.met) > 50 {
				t.Errorf("%v, after %d requests", err, len(f.met))
			}
		}
	})
	t.Run("a redirect is not followed", func(t *testing.T) {
		requests := 0
		c := imitate(t, redirecting{&requests}, "")
		drivertest.ListFails(t, c, drover.KindTransient)
		if err := c.Destroy(t.Context(), "1"); drover.KindOf(err) != drover.KindTransient || requests != 2 {
			t.Errorf("%v, after %d requests", err, requests)
		}
	})
	t.Run("another server than the requested one is a transient error", func(t *testing.T) {
		f := newFake()
		c := imitate(t, f, "")
		in, _ := drivertest.Create(t, c, request("one"))
		f.garbled = map[string]string{"GET servers": `{"server": {"id": 99, "name": "x"}, "servers": [{"id": 99, "name": "x", "labels": {"drover-fleet": "fleet"}}]}`}
		drivertest.DescribeFails(t, c, drover.KindTransient, in.ID)
		drivertest.RefusedAs(t, c, request("one"), drover.Error{Kind: drover.KindTransient})
	})
	for _, text := range []string{"", "{}", "null", "<html></html>", `{"servers": [{"id": 1`, `{"servers": null, "images": null}`} {
		t.Run(fmt.Sprintf("the response %q is a transient error", text), func(t *testing.T) {
			f := newFake()
			c := imitate(t, f, "")
			in, _ := drivertest.Create(t, c, request("one"))
			f.garbled = map[string]string{
				"GET servers": text, "POST servers": text, "PUT servers": text, "DELETE servers": text, "POST actions": text,
				"GET images": text, "GET server_types": text, "GET ssh_keys": text,
			}
			_, imagesErr := c.FindImages(t.Context(), "debian-12", "amd64")
			_, typesErr := c.Offerings(t.Context())
			_, keysErr := c.Leftovers(t.Context(), "fleet")
			_, _, shutdownErr := c.api.Server.Shutdown(t.Context(), &hcloud.Server{ID: 2})
			for _, err := range []error{
				imagesErr, typesErr, keysErr, errs.Classify("", shutdownErr), c.SetTags(t.Context(), in.ID, in.Tags), c.Stop(t.Context(), in.ID),
			} {
				if drover.KindOf(err) != drover.KindTransient {
					t.Error(err)
				}
			}
			drivertest.ListFails(t, c, drover.KindTransient)
			drivertest.DescribeFails(t, c, drover.KindTransient, in.ID)
			drivertest.RefusedAs(t, c, request("two"), drover.Error{Kind: drover.KindTransient})
			if err := c.Destroy(t.Context(), in.ID); drover.KindOf(err) != drover.KindTransient {
				t.Error(err)
			}
			f.garbled = nil
			if again, _ := drivertest.Create(t, c, request("two")); again.ID == "0" || f.servers[3] == nil {
				t.Errorf("%+v of %v", again, f.servers)
			}
		})
	}
}

func TestDescribe(t *testing.T) {
	f := newFake()
	c := imitate(t, f, "")
	in, _ := drivertest.Create(t, c, request("one"))
	drivertest.Must(t, c.Stop(t.Context(), in.ID))
	if got := drivertest.Listed(t, c); len(got) != 1 || got[in.ID].State != driver.Stopped {
		t.Errorf("%+v", got)
	}
	drivertest.DescribeFails(t, c, drover.KindNotFound, "4711", "none", "-1")
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
func TestReap(t *testing.T) {
	f := newFake()
	c := imitate(t, f, "labels: {team: vision}")
	drivertest.Create(t, c, request("one"))
	t.Run("the key and the server have the fleet's label and the configured ones", func(t *testing.T) {
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
		if swept := drivertest.Reaped(t, c, 0, life); (len(swept) == 1) != (life == driver.Ended) || (len(f.keys) == 0) != (life == driver.Ended) {
			t.Errorf("swept %v, left %v", swept, f.keys)
		}
	}
}

// covers C5 L17
func TestErrors(t *testing.T) {
	drivertest.Errors(t, "hetzner", &errs, func(a kit.Answer) error { return hcloud.Error{Code: hcloud.ErrorCode(a.Code), Message: a.Message} })
	t.Run("what only a person can mend has a hint", func(t *testing.T) {
		for code, kind := range map[hcloud.ErrorCode]drover.ErrorKind{
			"unauthorized": drover.KindAuthentication, "resource_limit_exceeded": drover.KindQuota, "protected": drover.KindInvalid, "resource_locked": drover.KindInvalid,
		} {
			if e := drover.AsError(errs.Classify("", hcloud.Error{Code: code}), ""); e.Kind != kind || e.Hint == "" {
				t.Errorf("%s: %+v", code, e)
			}
		}
	})
	for answer, kind := range map[string]drover.ErrorKind{
		"resource_unavailable": drover.KindCapacity, "uniqueness_error": drover.KindTransient, // the driver looks for the server by its name
		"not_found": drover.KindInvalid, // the type or location does not exist
	} {
		t.Run("the create call fails with "+answer, func(t *testing.T) {
			f := newFake()
			f.refuse = func() code { return code{422, answer, "the reason"} }
			e := drivertest.Refused(t, imitate(t, f, ""), request("one"))
			if n := strings.Count(strings.Join(f.met, "\n"), "POST /servers"); n != 1 {
				t.Errorf("%d create calls", n)
			}
			if e.Kind != kind || !strings.HasPrefix(e.Message, "create instance one: ") {
				t.Errorf("%+v", e)
			}
		})
	}
}

// answered is a network that returns an empty answer and counts requests.
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

func TestPageShowsListLag(t *testing.T) { drivertest.ShowsLag(t, "Hetzner Cloud", listLag) }

// covers C2
func TestNode(t *testing.T) {
	drivertest.Node(t, imitate(t, newFake(), ""), driver.Instance{ID: "4711", Zone: "fsn1"}, "hcloud://4711")
}
