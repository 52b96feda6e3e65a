package openstack

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	"drover"
	"drover/driver"
	"drover/driver/drivertest"
	"drover/driver/kit"
)

func writeFile(t *testing.T, file, text string) {
	t.Helper()
	drivertest.Must(t, os.WriteFile(file, []byte(text), 0o600))
}

// covers C2
func TestList(t *testing.T) {
	t.Run("shows an instance as Nova describes it, with the flavor's name or id", func(t *testing.T) {
		for _, newest := range []int{96, 46} {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				f.newest, f.buildTime = newest, time.Minute
				c := imitate(t, f, "")
				in, _ := drivertest.Create(t, c, request("one"))
				want := driver.Instance{ID: in.ID, ProviderType: "m1.small", Zone: "nova", Market: drover.OnDemand, State: driver.Pending, Created: drover.TimeOf(time.Now()),
					Tags: map[string]string{driver.TagFleet: "fleet", driver.TagName: "one"}}
				if diff := cmp.Diff(want, drivertest.Listed(t, c)[in.ID]); diff != "" {
					t.Error(diff)
				}
				time.Sleep(time.Minute)
				want.State, want.Addresses = driver.Running, driver.Addresses{Private: "10.0.0.7", Public: "192.0.2.7"}
				if diff := cmp.Diff(want, drivertest.Listed(t, c)[in.ID]); diff != "" {
					t.Error(diff)
				}
				f.flavors = f.flavors[1:] // somebody deletes the flavor
				time.Sleep(2 * flavorsAge)
				if got := drivertest.Listed(t, c)[in.ID].ProviderType; got != map[int]string{96: "m1.small", 46: "1"}[newest] {
					t.Errorf("the type is %q", got)
				}
			})
		}
	})
	t.Run("a destroyed instance is listed while it is ending", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			f.endTime = time.Minute
			c := imitate(t, f, "")
			in, _ := drivertest.Create(t, c, request("one"))
			if err := c.Destroy(t.Context(), in.ID); err != nil || drivertest.Listed(t, c)[in.ID].State != driver.Stopping {
				t.Errorf("%v, %+v", err, drivertest.Listed(t, c))
			}
			time.Sleep(time.Minute)
			if got := drivertest.Listed(t, c); len(got) != 0 {
				t.Errorf("%+v", got)
			}
		})
	})
	t.Run("an unreachable part of the cloud makes the list an error", func(t *testing.T) {
		f := newFake()
		c := imitate(t, f, "")
		in, _ := drivertest.Create(t, c, request("one"))
		drivertest.Create(t, c, request("two"))
		f.down[in.ID] = true
		drivertest.ListFails(t, c, drover.KindTransient)
	})
	t.Run("a failed instance that is deleted during the list is left out", func(t *testing.T) {
		f := newFake()
		f.room["nova"] = 0
		c := imitate(t, f, "")
		drivertest.Create(t, c, request("one"))
		f.broken["GET servers"] = func() *answer { return wrong(http.StatusNotFound, "Instance could not be found.") }
		if got := drivertest.Listed(t, c); len(got) != 0 {
			t.Errorf("%+v", got)
		}
		f.broken["GET servers"] = func() *answer { return wrong(http.StatusInternalServerError, "Unexpected API Error.") }
		drivertest.ListFails(t, c, drover.KindTransient)
	})
	t.Run("an incomplete list is an error", func(t *testing.T) {
		f := newFake()
		f.pageSize = 1
		c := imitate(t, f, "")
		drivertest.Create(t, c, request("one"))
		drivertest.Create(t, c, request("two"))
		calls := 0
		f.broken["GET servers/detail"] = func() *answer {
			if calls++; calls > 1 {
				return wrong(http.StatusInternalServerError, "Unexpected API Error.")
			}
			return nil
		}
		drivertest.ListFails(t, c, drover.KindTransient)
	})
	t.Run("an answer without a list is an error, and an empty page does not end the list", func(t *testing.T) {
		f := newFake()
		c := imitate(t, f, "")
		in, _ := drivertest.Create(t, c, request("one"))
		for _, a := range []*answer{ok(map[string]any{}), ok(map[string]any{"servers": nil}), ok("<html>"), ok(nil), {status: http.StatusNoContent}} {
			f.broken["GET servers/detail"] = func() *answer { return a }
			drivertest.ListFails(t, c, drover.KindTransient)
			drivertest.RefusedAs(t, c, request("one"), drover.Error{Kind: drover.KindTransient}) // it might exist
		}
		first := true
		f.broken["GET servers/detail"] = func() *answer {
			if !first {
				return nil
			}
			first = false
			return ok(map[string]any{"servers": []any{}, "servers_links": next("http://fake/compute/v2.1/servers/detail")})
		}
		if got := drivertest.Listed(t, c); len(got) != 1 || got[in.ID].ID == "" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("an endless list is an error", func(t *testing.T) {
		f := newFake()
		f.broken["GET servers/detail"] = func() *answer {
			one := map[string]any{"id": "x", "name": "x", "status": "ACTIVE", "metadata": map[string]string{}}
			return ok(map[string]any{"servers": []any{one}, "servers_links": next("http://fake/compute/v2.1/servers/detail?marker=x")})
		}
		c := imitate(t, f, "")
		if _, err := c.List(t.Context(), nil); drover.KindOf(err) != drover.KindTransient || f.calls["GET servers/detail"] != kit.MaxPages+1 {
			t.Errorf("%v after %d pages", err, f.calls["GET servers/detail"])
		}
	})
	t.Run("setting tags keeps the configured ones and fails while the instance is being created", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			f.buildTime = time.Second
			c := imitate(t, f, "tags: {team: a}")
			in, _ := drivertest.Create(t, c, request("one"))
			for range 2 { // before and after it has a host
				for _, err := range []error{c.SetTags(t.Context(), in.ID, map[string]string{driver.TagFleet: "fleet"}), c.Stop(t.Context(), in.ID)} {
					if drover.KindOf(err) != drover.KindTransient {
						t.Error(err)
					}
				}
				time.Sleep(time.Second / 2)
			}
			drivertest.KeepsTags(t, c, in.ID, map[string]string{"team": "a", driver.TagFleet: "fleet"})
		})
	})
	t.Run("stopping a stopped and starting a running instance succeed", func(t *testing.T) {
		f := newFake()
		c := imitate(t, f, "")
		in, _ := drivertest.Create(t, c, request("one"))
		for range 2 {
			if err := c.Stop(t.Context(), in.ID); err != nil || drivertest.Listed(t, c)[in.ID].State != driver.Stopped {
				t.Errorf("%v, %+v", err, drivertest.Listed(t, c)[in.ID])
			}
		}
		for range 2 {
			if err := c.Start(t.Context(), in.ID); err != nil || drivertest.Listed(t, c)[in.ID].State != driver.Running {
				t.Errorf("%v, %+v", err, drivertest.Listed(t, c)[in.ID])
			}
		}
		for _, err := range []error{c.Stop(t.Context(), debian), c.SetTags(t.Context(), debian, nil)} {
			if drover.KindOf(err) != drover.KindNotFound {
				t.Error(err)
			}
		}
	})
}

func TestStartingWhatNovaCannotStart(t *testing.T) {
	for status, want := range map[string]drover.ErrorKind{
		"SHELVED": drover.KindUnsupported, "SHELVED_OFFLOADED": drover.KindUnsupported, "PAUSED": drover.KindUnsupported, "SUSPENDED": drover.KindUnsupported,
		"ERROR": drover.KindUnsupported, "SHUTOFF": drover.KindTransient, "ACTIVE": "",
	} {
		f := newFake()
		c := imitate(t, f, "")
		in, _ := drivertest.Create(t, c, request("one"))
		shown := f.show(f.servers[in.ID], f.newest)
		shown["status"], shown["OS-EXT-STS:power_state"] = status, 4
		f.broken["GET servers"] = func() *answer { return ok(map[string]any{"server": shown}) }
		f.broken["POST servers/action"] = func() *answer { return wrong(http.StatusConflict, "Instance %s is not ready", in.ID) }
		if err := c.Start(t.Context(), in.ID); drover.KindOf(err) != want {
			t.Errorf("%s: %v", status, err)
		}
		shown["OS-EXT-STS:task_state"] = "shelving"
		if err := c.Start(t.Context(), in.ID); want != "" && drover.KindOf(err) != drover.KindTransient {
			t.Errorf("%s, with a task: %v", status, err)
		}
	}
}

func TestDescribe(t *testing.T) {
	t.Run("a server in an unreachable part of the cloud is a transient error", func(t *testing.T) {
		for _, newest := range []int{96, 46} {
			f := newFake()
			f.newest = newest
			c := imitate(t, f, "")
			in, _ := drivertest.Create(t, c, request("one"))
			f.down[in.ID] = true
			drivertest.DescribeFails(t, c, drover.KindTransient, in.ID)
		}
	})
	t.Run("only Nova's own 404 means that an instance does not exist", func(t *testing.T) {
		f := newFake()
		c := imitate(t, f, "")
		drivertest.DescribeFails(t, c, drover.KindNotFound, debian)
		in, _ := drivertest.Create(t, c, request("one"))
		for _, body := range []map[string]any{nil, {"message": "no Route matched with those values"}, {"error": map[string]any{"code": 404, "message": "Not Found"}}} {
			f.broken["GET servers"] = func() *answer { return &answer{status: http.StatusNotFound, body: body} }
			drivertest.DescribeFails(t, c, drover.KindTransient, in.ID)
			for _, call := range []string{"PUT servers/metadata", "POST servers/action", "DELETE servers"} {
				f.broken[call] = f.broken["GET servers"]
			}
			for _, err := range []error{c.SetTags(t.Context(), in.ID, nil), c.Stop(t.Context(), in.ID), c.Destroy(t.Context(), in.ID)} {
				if drover.KindOf(err) != drover.KindTransient {
					t.Error(err)
				}
			}
		}
	})
	t.Run("a 404 response to a sign-in does not mean that an instance is gone", func(t *testing.T) {
		for _, call := range []string{"POST auth/tokens", "GET image", "GET "} {
			for _, body := range []map[string]any{nil, {"error": map[string]any{"code": 404, "message": "Not Found"}}} {
				f := newFake()
				in, _ := drivertest.Create(t, imitate(t, f, ""), request("one"))
				f.broken[call] = func() *answer { return &answer{status: http.StatusNotFound, body: body} }
				later := imitate(t, f, "")
				drivertest.ListFails(t, later, drover.KindTransient)
				drivertest.DescribeFails(t, later, drover.KindTransient, in.ID)
				if err := later.Destroy(t.Context(), in.ID); drover.KindOf(err) != drover.KindTransient {
					t.Errorf("%s: %v", call, err)
				}
			}
		}
	})
	t.Run("nor does one to the list of flavors, which names an older Nova's", func(t *testing.T) {
		f := newFake()
		f.newest = 46
		in, _ := drivertest.Create(t, imitate(t, f, ""), request("one"))
		f.broken["GET flavors/detail"] = func() *answer { return wrong(http.StatusNotFound, "Not Found") }
		later := imitate(t, f, "")
		drivertest.ListFails(t, later, drover.KindTransient)
		if _, err := later.Describe(t.Context(), in.ID); drover.KindOf(err) != drover.KindTransient {
			t.Error(err)
		}
	})
	t.Run("nor does one to a sign-in with which an expired token is renewed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			f.tokenTime = time.Hour
			c := imitate(t, f, "")
			in, _ := drivertest.Create(t, c, request("one"))
			time.Sleep(2 * time.Hour)
			f.broken["POST auth/tokens"] = func() *answer { return wrong(http.StatusNotFound, "Not Found") }
			drivertest.DescribeFails(t, c, drover.KindTransient, in.ID)
			if err := c.Destroy(t.Context(), in.ID); drover.KindOf(err) != drover.KindTransient {
				t.Error(err)
			}
		})
	})
	t.Run("a failed instance stays in the list, and is not created again, if a proxy returns 404 for it", func(t *testing.T) {
		f := newFake()
		f.room["nova"] = 0
		c := imitate(t, f, "")
		drivertest.Create(t, c, request("one"))
		f.broken["GET servers"] = func() *answer { return &answer{status: http.StatusNotFound} }
		drivertest.ListFails(t, c, drover.KindTransient)
		drivertest.RefusedAs(t, c, request("one"), drover.Error{Kind: drover.KindTransient})
	})
	t.Run("an answer without a server is a transient error", func(t *testing.T) {
		f := newFake()
		c := imitate(t, f, "")
		in, _ := drivertest.Create(t, c, request("one"))
		for _, body := range []map[string]any{{}, {"server": map[string]any{}}} {
			f.broken["GET servers"] = func() *answer { return ok(body) }
			drivertest.DescribeFails(t, c, drover.KindTransient, in.ID)
			f.broken["POST servers"] = func() *answer { return &answer{status: http.StatusAccepted, body: body} }
			drivertest.RefusedAs(t, c, request("two"), drover.Error{Kind: drover.KindTransient})
		}
		f.broken["GET "] = func() *answer { return ok(map[string]any{}) }
		drivertest.ListFails(t, imitate(t, f, ""), drover.KindTransient)
	})
	t.Run("an answer without tags, an image or a list is a transient error, as is a redirect", func(t *testing.T) {
		f := newFake()
		c := imitate(t, f, "boot_from: volume")
		in, _ := drivertest.Create(t, c, request("one"))
		login := &answer{status: http.StatusFound, header: http.Header{"Location": {"http://elsewhere/login"}}}
		for _, a := range []*answer{ok(nil), ok(map[string]any{}), ok("<html>"), login} {
			for _, call := range []string{"PUT servers/metadata", "GET images", "GET flavors/detail", "GET os-availability-zone"} {
				f.broken[call] = func() *answer { return a }
			}
			later := imitate(t, f, "boot_from: volume")
			_, byID := later.FindImages(t.Context(), debian, "")
			_, byName := later.FindImages(t.Context(), "debian-*", "")
			_, offers := later.Offerings(t.Context())
			_, flavors := later.fetchFlavors(t.Context())
			_, _, create := later.Create(t.Context(), request("two"))
			for _, err := range []error{later.SetTags(t.Context(), in.ID, nil), byID, byName, offers, errs.Classify("", flavors), create} {
				if drover.KindOf(err) != drover.KindTransient {
					t.Errorf("%+v: %v", a, err)
				}
			}
		}
		if f.calls["GET login"] > 0 {
			t.Error("the redirect was followed")
		}
	})
	t.Run("a deleted server that Nova still shows does not exist", func(t *testing.T) {
		f := newFake()
		c := imitate(t, f, "")
		in, _ := drivertest.Create(t, c, request("one"))
		for _, status := range []string{"DELETED", "SOFT_DELETED"} {
			f.broken["GET servers"] = func() *answer {
				return ok(map[string]any{"server": map[string]any{"id": in.ID, "name": "one", "status": status, "metadata": in.Tags, "OS-SRV-USG:terminated_at": "2026-02-03T04:05:06.000000"}})
			}
			drivertest.DescribeFails(t, c, drover.KindNotFound, in.ID)
			if gone, _ := c.Describe(t.Context(), in.ID); gone.Ended != drover.TimeOf(time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)) {
				t.Errorf("it ended at %v", gone.Ended)
			}
		}
	})
}

// covers C2
func TestStates(t *testing.T) {
	for _, tt := range []struct {
		status, task string
		power        servers.PowerState
		want         driver.State
	}{
		{"BUILD", "spawning", 0, driver.Pending}, {"ACTIVE", "", servers.RUNNING, driver.Running}, {"ACTIVE", "deleting", servers.RUNNING, driver.Stopping},
		{"SHUTOFF", "", servers.SHUTDOWN, driver.Stopped}, {"PAUSED", "", servers.PAUSED, driver.Stopped}, {"SHELVED_OFFLOADED", "", 0, driver.Stopped},
		{"ERROR", "", 0, driver.Stopped}, {"ERROR", "", servers.RUNNING, driver.Running}, {"REBOOT", "rebooting", servers.RUNNING, driver.Running},
		{"UNKNOWN", "", 0, driver.Running}, {"SOFT_DELETED", "", 0, driver.Stopping},
	} {
		if got := stateOf(servers.Server{Status: tt.status, TaskState: tt.task, PowerState: tt.power, LaunchedAt: time.Now()}); got != tt.want {
			t.Errorf("%s, %s, %v: %s", tt.status, tt.task, tt.power, got)
		}
	}
	t.Run("an instance that fails after its launch is not a failed creation", func(t *testing.T) {
		f := newFake()
		c := imitate(t, f, "")
		in, _ := drivertest.Create(t, c, request("one"))
		f.servers[in.ID].launched, f.servers[in.ID].fault = true, "No valid host was found"
		if got := drivertest.Listed(t, c)[in.ID]; got.Failed != nil || got.State != driver.Running {
			t.Errorf("%+v", got)
		}
	})
	t.Run("without IPv4 addresses, IPv6 addresses count", func(t *testing.T) {
		port := map[string]any{"addr": "fd00::7", "version": 6.0, "OS-EXT-IPS:type": "fixed"}
		if got := addresses(servers.Server{Addresses: map[string]any{"net": []any{port}}}); got != (driver.Addresses{Private: "fd00::7"}) {
			t.Errorf("%+v", got)
		}
	})
}

// covers C6 C10
func TestOfferings(t *testing.T) {
	offered := func(t *testing.T, f *fake, keys string) map[string]string {
		t.Helper()
		all, err := imitate(t, f, keys).Offerings(t.Context())
		drivertest.Must(t, err)
		got := map[string]string{}
		for _, o := range all {
			r := o.Type.Resources
			got[o.Type.Name+" "+o.Zone] = fmt.Sprint(r.CPU, " ", r.Memory/drover.GiB, " ", r.Disk/drover.GiB, " ", r.GPUs, " ", r.Arch, " ", o.Price)
		}
		return got
	}
	t.Run("are flavors with a root disk, priced by their size", func(t *testing.T) {
		f := newFake()
		f.zones, f.pageSize = []string{"b", "a"}, 1
		want := map[string]string{}
		for _, z := range f.zones {
			want["m1.small "+z], want["m1.large "+z] = "1 2 20 0 amd64 $0.0150", "4 8 80 0 amd64 $0.0600"
			want["g1.large "+z] = "8 32 100 0 amd64 $0.1600"
		}
		if diff := cmp.Diff(want, offered(t, f, "")); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("are all flavors, without disks of their own, if instances boot from volumes", func(t *testing.T) {
		got := offered(t, newFake(), "boot_from: volume, arch: arm64")
		if got["v1.large nova"] != "4 8 0 0 arm64 $0.0600" || got["m1.small nova"] != "1 2 0 0 arm64 $0.0150" {
			t.Error(got)
		}
	})
	t.Run("prices come from the configuration, the extra spec, or, also if that is invalid, the rates", func(t *testing.T) {
		got := offered(t, newFake(), "price_spec: 'drover:price', flavor_prices: {m1.small: 0.5}, gpu_aliases: [a100], rates: {vcpu: 0.1, memory: 0, gpu: 2}")
		want := map[string]string{"m1.small nova": "1 2 20 0 amd64 $0.5000", "m1.large nova": "4 8 80 0 amd64 $0.2000", "g1.large nova": "8 32 100 2 amd64 $4.8000"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("volumes cost the configured rate, for flavors and configured types", func(t *testing.T) {
		keys := "boot_from: volume, types: [{name: hand, vcpus: 3, memory: 1Gi, price: 1}], "
		for rates, want := range map[string]drover.Money{"rates: {disk: 0.0001}": 100_000, "rates: {vcpu: 1}": 0} {
			all, err := imitate(t, newFake(), keys+rates).Offerings(t.Context())
			if err != nil || len(all) < 2 || slices.ContainsFunc(all, func(o drover.Offering) bool { return o.DiskPrice != want }) {
				t.Errorf("%s: %+v, %v", rates, all, err)
			}
		}
	})
	t.Run("configured types replace flavors of the same name, or all flavors", func(t *testing.T) {
		hand := "types: [{name: m1.small, vcpus: 3, memory: 1Gi, price: 1}]"
		if got := offered(t, newFake(), hand); got["m1.small nova"] != "3 1 0 0 amd64 $1.0000" || len(got) != 3 {
			t.Error(got)
		}
		f := newFake()
		if got := offered(t, f, hand+", list_types: false, zones: [x, x]"); len(got) != 1 || len(f.calls) > 0 {
			t.Error(got, f.calls)
		}
	})
	t.Run("a restart uses the cache, unless the configuration has changed", func(t *testing.T) {
		folder, f := t.TempDir(), newFake()
		c := imitateIn(t, f, "", folder)
		before, err := c.Offerings(t.Context())
		drivertest.Must(t, err)
		clear(f.calls)
		after, err := imitateIn(t, f, "", folder).Offerings(t.Context())
		if diff := cmp.Diff(before, after); diff != "" || err != nil || len(f.calls) > 0 {
			t.Error(diff, err, f.calls)
		}
		if _, err := imitateIn(t, f, "gpu_aliases: [nic]", folder).Offerings(t.Context()); err != nil || len(f.calls) == 0 {
			t.Error("another configuration's cache was used", err)
		}
	})
	t.Run("an empty list of flavors is an error, and an earlier copy stays in use", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			c := imitate(t, f, "")
			got, err := c.Offerings(t.Context())
			drivertest.Must(t, err)
			time.Sleep(2 * flavorsAge)
			f.broken["GET flavors/detail"] = func() *answer { return ok(map[string]any{"flavors": []any{}}) }
			if later, err := c.Offerings(t.Context()); err != nil || len(later) != len(got) {
				t.Errorf("%d offerings, then %d: %v", len(got), len(later), err)
			}
			if _, err := imitate(t, f, "").Offerings(t.Context()); drover.KindOf(err) != drover.KindInvalid || drover.AsError(err, "").Hint == "" {
				t.Errorf("%v", err)
			}
		})
	})
}
