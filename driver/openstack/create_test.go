package openstack

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/driver"
	"drover/driver/drivertest"
	"drover/driver/kit"
	"drover/driver/middleware"
)

// covers C4 L17
func TestCreate(t *testing.T) {
	t.Run("looks for the name and creates one server", func(t *testing.T) {
		f := newFake()
		f.buildTime = time.Hour
		c := imitate(t, f, "")
		in, taken := drivertest.Create(t, c, request("one"))
		if !taken.Same(candidate("m1.small", "nova")) || in.State != driver.Pending || !in.Bears(map[string]string{driver.TagFleet: "fleet", driver.TagName: "one"}) {
			t.Errorf("took %+v: %+v", taken, in)
		}
		if f.calls["GET servers/detail"] != 1 || f.calls["POST servers"] != 1 || f.calls["POST auth/tokens"] != 1 {
			t.Errorf("calls: %v", f.calls)
		}
		if got := drivertest.Listed(t, c)[in.ID]; got.State != driver.Pending || got.Failed != nil || got.ProviderType != "m1.small" || got.Zone != "nova" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("a repeated name with another candidate returns the existing instance, and of two the older", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			c := imitate(t, f, "")
			first, _ := drivertest.Create(t, c, request("one"))
			again, taken := drivertest.Create(t, c, request("one", candidate("m1.large", "nova")))
			if again.ID != first.ID || taken.ProviderType != "m1.small" {
				t.Errorf("got %+v, %+v", again, taken)
			}
			time.Sleep(time.Minute)
			twin := *f.servers[first.ID]
			twin.id, twin.created = "00000000-0000-4000-8000-000000000000", time.Now()
			f.servers[twin.id] = &twin
			if again, _ := drivertest.Create(t, c, request("one")); again.ID != first.ID {
				t.Errorf("got %+v", again)
			}
		})
	})
	t.Run("the same name in another fleet, or as part of a longer name, is another instance", func(t *testing.T) {
		f := newFake()
		c := imitate(t, f, "")
		a, _ := drivertest.Create(t, c, request("one"))
		b, _ := drivertest.Create(t, c, request("one-more"))
		other := request("one")
		other.Tags[driver.TagFleet] = "other"
		d, _ := drivertest.Create(t, c, other)
		if a.ID == b.ID || a.ID == d.ID {
			t.Errorf("%s, %s, %s", a.ID, b.ID, d.ID)
		}
	})
	t.Run("a request over the project's quota is refused at once", func(t *testing.T) {
		f := newFake()
		f.instances, f.cores = 2, 4
		c := imitate(t, f, "")
		drivertest.Create(t, c, request("one"))
		drivertest.RefusedAs(t, c, request("two", candidate("m1.large", "nova")), drover.Error{Kind: drover.KindQuota, Scope: drover.ScopeType, Market: drover.OnDemand})
		drivertest.Create(t, c, request("three"))
		if got := drivertest.Refused(t, c, request("four")); got.Kind != drover.KindQuota || got.Scope != drover.ScopeAll || got.Hint == "" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("a resource that Nova does not find makes the request invalid", func(t *testing.T) {
		f := newFake()
		f.broken["POST servers"] = func() *answer { return wrong(http.StatusNotFound, "The group could not be found.") }
		drivertest.RefusedAs(t, imitate(t, f, ""), request("one"), drover.Error{Kind: drover.KindInvalid})
	})
	t.Run("an instance that fits no host is accepted, listed with the reason, counts against the quota, and can be destroyed", func(t *testing.T) {
		f := newFake()
		f.room["nova"], f.instances = 1, 2
		c := imitate(t, f, "")
		drivertest.Create(t, c, request("one"))
		in, _ := drivertest.Create(t, c, request("two"))
		got := drivertest.Listed(t, c)[in.ID]
		if got.Failed == nil || got.Failed.Kind != drover.KindCapacity || got.Failed.Scope != drover.ScopeType || got.State != driver.Stopped {
			t.Errorf("%+v", got)
		}
		if again, _ := drivertest.Create(t, c, request("two")); again.ID != in.ID || again.Failed == nil {
			t.Errorf("%+v", again)
		}
		if got := drivertest.Refused(t, c, request("three")); got.Kind != drover.KindQuota {
			t.Errorf("%+v", got)
		}
		drivertest.Must(t, c.Destroy(t.Context(), in.ID))
		drivertest.Create(t, c, request("three"))
	})
	t.Run("waits a while for the reason of a failure", func(t *testing.T) {
		for after, kind := range map[time.Duration]drover.ErrorKind{time.Second: drover.KindCapacity, time.Hour: drover.KindTransient} {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				f.room["nova"], f.faultTime = 0, after
				c := imitate(t, f, "")
				in, _ := drivertest.Create(t, c, request("one"))
				if got := drivertest.Listed(t, c)[in.ID]; got.Failed != nil || got.State != driver.Pending {
					t.Errorf("%+v", got)
				}
				time.Sleep(min(after, faultTime+time.Second))
				if got := drivertest.Listed(t, c)[in.ID]; got.Failed == nil || got.Failed.Kind != kind || got.State != driver.Stopped {
					t.Errorf("%+v", got)
				}
			})
		}
	})
	t.Run("a failure to allocate the network means that the subnet is full", func(t *testing.T) {
		f := newFake()
		f.faults["m1.small"] = "Build of instance 5f2 aborted: Failed to allocate the network(s), not rescheduling."
		c := imitate(t, f, "")
		in, _ := drivertest.Create(t, c, request("one"))
		if got := drivertest.Listed(t, c)[in.ID].Failed; got == nil || got.Kind != drover.KindCapacity || got.Scope != drover.ScopeSubnet {
			t.Errorf("%+v", got)
		}
	})
	t.Run("an instance whose answer was lost is found by its name and not created again", func(t *testing.T) {
		f := newFake()
		c := imitate(t, &cut{f, "POST servers"}, "")
		drivertest.RefusedAs(t, c, request("one"), drover.Error{Kind: drover.KindTransient})
		if f.calls["POST servers"] != 1 {
			t.Errorf("%d calls", f.calls["POST servers"])
		}
		drivertest.Create(t, c, request("one"))
		if len(f.servers) != 1 || f.calls["POST servers"] != 1 {
			t.Errorf("%d servers, %d calls", len(f.servers), f.calls["POST servers"])
		}
	})
	t.Run("a refused call is classified by its status and not retried", func(t *testing.T) {
		for status, want := range map[int]drover.ErrorKind{429: drover.KindRateLimit, 403: drover.KindAuthentication, 500: drover.KindTransient, 503: drover.KindTransient} {
			f := newFake()
			f.broken["POST servers"] = func() *answer {
				return &answer{status: status, header: http.Header{"Retry-After": {"30"}}, body: map[string]any{"x": map[string]any{"message": "no"}}}
			}
			got := drivertest.Refused(t, imitate(t, f, ""), request("one"))
			if got.Kind != want || f.calls["POST servers"] != 1 || want == drover.KindRateLimit && time.Until(got.RetryAt.Std()) < 29*time.Second {
				t.Errorf("%d in %d calls: %+v", status, f.calls["POST servers"], got)
			}
		}
	})
	t.Run("an expired token is renewed once", func(t *testing.T) {
		f := newFake()
		c := imitate(t, f, "")
		drivertest.Create(t, c, request("one"))
		clear(f.tokens)
		drivertest.Create(t, c, request("two"))
		if f.calls["POST auth/tokens"] != 2 {
			t.Errorf("signed in %d times", f.calls["POST auth/tokens"])
		}
		clear(f.tokens)
		t.Setenv("OS_PASSWORD", "wrong")
		wrong, err := open(options(t, "fleet", "", t.TempDir()), f)
		drivertest.Must(t, err)
		drivertest.RefusedAs(t, wrong, request("three"), drover.Error{Kind: drover.KindAuthentication})
	})
	t.Run("an impossible request is refused before anything is created", func(t *testing.T) {
		f := newFake()
		f.networks = 2
		c := imitate(t, f, "")
		none, spot, forbidden := request("one"), request("one"), request("one")
		none.Candidates, spot.Candidates[0].Market, forbidden.Template = nil, drover.Spot, `{"user_data": "x"}`
		drivertest.Impossible(t, c, request, maxUserData, none, request("a b"), forbidden, request("one", candidate("m9.huge", "nova")), request("one"))
		f.networks = 1
		for _, r := range []driver.CreateRequest{spot, request("one", candidate("m1.small", "moon"))} {
			drivertest.RefusedAs(t, c, r, drover.Error{Kind: drover.KindUnsupported})
		}
		if len(f.servers) > 0 {
			t.Errorf("%d servers", len(f.servers))
		}
	})
}

// cut is a network that loses the answer to a call once.
type cut struct {
	*fake
	call string
}

func (c *cut) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := c.fake.RoundTrip(r)
	if err == nil && callName(r) == c.call {
		c.call = ""
		return nil, errors.New("connection reset by peer")
	}
	return answer, err
}

// only returns the request body of the only server.
func only(t *testing.T, f *fake) map[string]any {
	t.Helper()
	if len(f.servers) != 1 {
		t.Fatalf("%d servers", len(f.servers))
	}
	for _, s := range f.servers {
		return s.body
	}
	return nil
}

// covers C3
func TestRequestedInstance(t *testing.T) {
	const net1, net2 = "4f2ad3f0-5a3c-4b3e-9f0c-2b1d0a9e8c77", "5f2ad3f0-5a3c-4b3e-9f0c-2b1d0a9e8c77"
	ask := func(t *testing.T, newest int, keys string, change func(*driver.CreateRequest)) map[string]any {
		f := newFake()
		f.newest = newest
		r := request("one")
		if change != nil {
			change(&r)
		}
		drivertest.Create(t, imitate(t, f, keys), r)
		return only(t, f)
	}
	want := func(t *testing.T, got map[string]any, want map[string]any) {
		t.Helper()
		for k, v := range want {
			if diff := cmp.Diff(v, got[k]); diff != "" {
				t.Error(k, diff)
			}
		}
	}
	t.Run("by default, has the image, the project's network, tags in the metadata, and user data that plants the keys", func(t *testing.T) {
		got := ask(t, 96, "", nil)
		want(t, got, map[string]any{
			"name": "one", "imageRef": debian, "flavorRef": "1", "networks": "auto", "availability_zone": "nova", "key_name": nil, "config_drive": nil,
			"tags": []any{"drover-fleet=fleet"}, "metadata": map[string]any{driver.TagFleet: "fleet", driver.TagName: "one"},
		})
		text, err := base64.StdEncoding.DecodeString(got["user_data"].(string))
		if err != nil || string(text) != kit.UserData(request("one")).Reveal() {
			t.Errorf("%v: %s", err, text)
		}
	})
	t.Run("has no tag before version 2.52, and no word for networks before 2.37", func(t *testing.T) {
		want(t, ask(t, 51, "", nil), map[string]any{"tags": nil, "networks": "auto"})
		want(t, ask(t, 36, "", nil), map[string]any{"tags": nil, "networks": nil})
		f := newFake()
		f.newest = 36
		drivertest.RefusedAs(t, imitate(t, f, "networks: none"), request("one"), drover.Error{Kind: drover.KindUnsupported})
	})
	t.Run("has the configured networks, groups, key, drive and metadata", func(t *testing.T) {
		got := ask(t, 96, "networks: '"+net1+", "+net2+"', security_groups: [ssh], key_pair: ops, config_drive: true, tags: {team: a}", nil)
		want(t, got, map[string]any{
			"networks":        []any{map[string]any{"uuid": net1}, map[string]any{"uuid": net2}},
			"security_groups": []any{map[string]any{"name": "ssh"}}, "key_name": "ops", "config_drive": true,
			"metadata": map[string]any{driver.TagFleet: "fleet", driver.TagName: "one", "team": "a"},
		})
		want(t, ask(t, 96, "networks: none", nil), map[string]any{"networks": "none"})
	})
	t.Run("has a volume as large as requested or as the image needs, deleted with the instance", func(t *testing.T) {
		for disk, size := range map[drover.Bytes]float64{30*drover.GiB + 1: 31, 0: 5} {
			got := ask(t, 96, "boot_from: volume, volume_type: ssd", func(r *driver.CreateRequest) { r.Disk = disk })
			want(t, got, map[string]any{"imageRef": "", "block_device_mapping_v2": []any{map[string]any{
				"boot_index": 0.0, "source_type": "image", "destination_type": "volume", "uuid": debian, "volume_size": size, "volume_type": "ssd", "delete_on_termination": true,
			}}})
		}
		f := newFake()
		f.newest = 66
		drivertest.RefusedAs(t, imitate(t, f, "boot_from: volume, volume_type: ssd"), request("one"), drover.Error{Kind: drover.KindUnsupported})
	})
	t.Run("has the template's keys, and hints next to the server", func(t *testing.T) {
		got := ask(t, 96, "", func(r *driver.CreateRequest) {
			r.Template = `{"OS-DCF:diskConfig": "MANUAL", "os:scheduler_hints": {"group": "g"}}`
		})
		want(t, got, map[string]any{"OS-DCF:diskConfig": "MANUAL", "os:scheduler_hints": map[string]any{"group": "g"}})
	})
}

// covers K9
func TestFindImages(t *testing.T) {
	f := newFake()
	f.pageSize = 2
	c := imitate(t, f, "")
	for _, tt := range []struct {
		ref  string
		arch drover.Arch
		want string
	}{
		{"debian-12-*", "amd64", debian}, {"debian-12-*", "arm64", "33333333-3333-3333-3333-333333333333"}, {"ubuntu", "", "44444444-4444-4444-4444-444444444444"},
		{debian, "amd64", debian}, {"99999999-9999-9999-9999-999999999999", "", ""}, {"debian", "", ""},
	} {
		all, err := c.FindImages(t.Context(), tt.ref, tt.arch)
		newest, _ := middleware.Newest(all, tt.arch)
		if err != nil || newest.ID != tt.want {
			t.Errorf("%s: %v, %v", tt.ref, newest, err)
		}
	}
	t.Run("an incomplete list is an error", func(t *testing.T) {
		calls := 0
		f.broken["GET images"] = func() *answer {
			if calls++; calls > 1 {
				return wrong(http.StatusServiceUnavailable, "gone for a while")
			}
			return nil
		}
		if all, err := c.FindImages(t.Context(), "*", ""); len(all) > 0 || drover.KindOf(err) != drover.KindTransient {
			t.Errorf("%v, %v", all, err)
		}
	})
	t.Run("the size of an unknown image is queried once", func(t *testing.T) {
		f := newFake()
		c := imitate(t, f, "boot_from: volume")
		drivertest.Create(t, c, request("one"))
		drivertest.Create(t, c, request("two"))
		if f.calls["GET images"] != 1 {
			t.Errorf("%v", f.calls)
		}
		unknown := request("three")
		unknown.Candidates[0].Image = "99999999-9999-9999-9999-999999999999"
		drivertest.RefusedAs(t, c, unknown, drover.Error{Kind: drover.KindInvalid})
	})
}

// covers C1
func TestOpen(t *testing.T) {
	t.Run("makes no call", func(t *testing.T) {
		f := newFake()
		c := imitate(t, f, "")
		if text := fmt.Sprintf("%v %+v %#v", c.api.who, c.api.who, c.api.who); strings.Contains(text, "secret") {
			t.Error(text)
		}
		if can := c.Capabilities(); can.Project != "lab" || can.PowerOff != driver.PowerOffStops {
			t.Errorf("%+v", can)
		}
		if len(f.calls) > 0 {
			t.Errorf("%v", f.calls)
		}
	})
	t.Run("refuses an invalid configuration and names the key", func(t *testing.T) {
		isolate(t, "http://fake")
		for keys, want := range map[string]string{
			"networks: internal": "networks must be auto, none, or ids", "boot_from: disk": "not one of image, volume", "volume_type: ssd": "volume_type", "rates: {disk: 0.1}": "rates: disk", "arch: mips": "is not one of",
			"list_types: false": "no instance can be rented", "tags: {drover-x: a}": "drover-x", "flavour: x": "flavour",
		} {
			_, err := open(options(t, "fleet", keys, t.TempDir()), newFake())
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", keys, err)
			}
		}
		if _, err := open(options(t, "a b", "", t.TempDir()), newFake()); drover.KindOf(err) != drover.KindInvalid {
			t.Error(err)
		}
	})
	t.Run("takes the credentials from clouds.yaml or the environment, or reports that there are none", func(t *testing.T) {
		isolate(t, "http://elsewhere")
		file := t.TempDir() + "/clouds.yaml"
		t.Setenv("OS_CLIENT_CONFIG_FILE", file)
		writeFile(t, file, "clouds: {campus: {region_name: north, auth: {auth_url: 'http://fake/identity/v3', username: a, password: secret, project_name: p, domain_id: default}},"+
			" half: {auth: {auth_url: 'http://fake', username: a, password: secret}}}")
		f := newFake()
		c, err := open(options(t, "fleet", "cloud: campus", t.TempDir()), f)
		drivertest.Must(t, err)
		if _, err := c.Offerings(t.Context()); err != nil || c.Capabilities().Project != "p" {
			t.Errorf("%v, %+v", err, c.Capabilities())
		}
		for _, cloud := range []string{"other", "half"} {
			if _, err := open(options(t, "fleet", "cloud: "+cloud, t.TempDir()), f); drover.KindOf(err) != drover.KindInvalid || strings.Contains(err.Error(), "secret") {
				t.Error(err)
			}
		}
		t.Setenv("OS_AUTH_URL", "")
		if _, err := open(options(t, "fleet", "", t.TempDir()), f); drover.KindOf(err) != drover.KindInvalid || drover.AsError(err, "").Hint == "" {
			t.Error(err)
		}
	})
	t.Run("counts every call by a name without ids", func(t *testing.T) {
		isolate(t, "http://fake")
		o := options(t, "fleet", "", t.TempDir())
		var calls []string
		o.Metric = func(call string, err error) {
			if err != nil {
				call += "!"
			}
			calls = append(calls, call)
		}
		c, err := open(o, newFake())
		drivertest.Must(t, err)
		c.SetTags(t.Context(), debian, nil)
		if want := []string{"POST auth/tokens", "GET image", "GET ", "PUT servers/metadata!", "GET servers!"}; !slices.Equal(calls, want) {
			t.Errorf("%q", calls)
		}
	})
	t.Run("of several regions, one must be configured", func(t *testing.T) {
		f := newFake()
		f.regions = []string{"south", "north"}
		_, err := imitate(t, f, "").List(t.Context(), nil)
		if told := drover.AsError(err, ""); told.Kind != drover.KindInvalid || told.Message != "list instances: the compute service has several regions: south, north" || told.Hint != "choose one; earlier versions of Drover used region: south" {
			t.Errorf("%+v", told)
		}
		if got := drivertest.Listed(t, imitate(t, f, "region: south")); len(got) != 0 {
			t.Errorf("%+v", got)
		}
	})
	t.Run("reports an unknown region with the first call", func(t *testing.T) {
		c := imitate(t, newFake(), "region: south")
		if _, err := c.List(t.Context(), nil); drover.KindOf(err) != drover.KindInvalid {
			t.Error(err)
		}
	})
}
