package gce

import (
	"encoding/base64"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/driver"
	"drover/driver/drivertest"
	"drover/driver/kit"
)

// covers C2
func TestList(t *testing.T) {
	spot := candidate("n2-standard-2", "us-central1-a", drover.Spot)

	t.Run("shows an instance as Google describes it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			f.bootTime = time.Minute
			c := imitate(t, f, "")
			in, _ := drivertest.Create(t, c, requestFor("one", spot))
			want := driver.Instance{ID: "us-central1-a/one", ProviderType: "n2-standard-2", Zone: "us-central1-a", Market: drover.Spot, State: driver.Pending,
				Created: drover.TimeOf(time.Now()), Addresses: driver.Addresses{User: "drover"}, Tags: map[string]string{driver.TagFleet: "fleet", driver.TagName: "one"}}
			if diff := cmp.Diff(want, drivertest.Listed(t, c)[in.ID]); diff != "" {
				t.Error(diff)
			}
			time.Sleep(time.Minute)
			want.State, want.Addresses = driver.Running, driver.Addresses{Private: "10.0.0.7", Public: "192.0.2.7", User: "drover"}
			if diff := cmp.Diff(want, drivertest.Listed(t, c)[in.ID]); diff != "" {
				t.Error(diff)
			}
		})
	})
	t.Run("an incomplete list is an error", func(t *testing.T) {
		f := newFake()
		c := imitate(t, f, "")
		drivertest.Create(t, c, requestFor("one"))
		f.unreached = "us-central1-b"
		drivertest.ListFails(t, c, drover.KindTransient)
		if _, err := c.Leftovers(t.Context(), "fleet"); drover.KindOf(err) != drover.KindTransient {
			t.Errorf("leftovers: %v", err)
		}
		f.unreached, f.warned = "", "us-central1-b"
		drivertest.ListFails(t, c, drover.KindTransient)
		f.unreached, f.warned, f.pageSize = "europe-west1-b", "europe-west1-c", 1
		drivertest.Create(t, c, requestFor("two"))
		if all, err := c.List(t.Context(), nil); len(all) != 2 || err != nil {
			t.Errorf("with another region's zones unreachable: %v, %v", all, err)
		}
		c.api.gate.Limiter = kit.NewRateLimiter(map[string]kit.Rate{"aggregated lists": {Burst: 1, PerSecond: 1}}, 1)
		drivertest.ListFails(t, c, drover.KindRateLimit)
	})
}

// covers P9
func TestReclaimed(t *testing.T) {
	spot := candidate("n2-standard-2", "us-central1-a", drover.Spot)

	t.Run("an interrupted instance is listed as reclaimed until it is destroyed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			f.bootTime, f.pageSize = time.Minute, 1
			c := imitate(t, f, "")
			in, _ := drivertest.Create(t, c, requestFor("one", spot))
			other, _ := drivertest.Create(t, c, requestFor("two", spot))
			time.Sleep(time.Minute)
			f.preempt(in.ID)
			if got := drivertest.Listed(t, c)[in.ID]; !got.Reclaimed || got.State != driver.Stopping {
				t.Errorf("%+v", got)
			}
			time.Sleep(24 * time.Hour)
			all := drivertest.Listed(t, c)
			if got := all[in.ID]; !got.Reclaimed || got.State != driver.Stopped || all[other.ID].Reclaimed {
				t.Errorf("%+v", all)
			}
			drivertest.Must(t, c.Destroy(t.Context(), in.ID))
			time.Sleep(time.Minute)
			if got := drivertest.Listed(t, c); len(got) != 1 {
				t.Errorf("%+v", got)
			}
		})
	})
	t.Run("an instance that powered itself off is not reclaimed", func(t *testing.T) {
		f := newFake()
		c := imitate(t, f, "")
		in, _ := drivertest.Create(t, c, requestFor("one", spot))
		f.powerOff(in.ID)
		if got := drivertest.Listed(t, c)[in.ID]; got.Reclaimed || got.State != driver.Stopped {
			t.Errorf("%+v", got)
		}
	})
	t.Run("an instance that was started again is not reclaimed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			c := imitate(t, f, "")
			in, _ := drivertest.Create(t, c, requestFor("one", spot))
			f.preempt(in.ID)
			time.Sleep(time.Hour)
			drivertest.Must(t, c.Start(t.Context(), in.ID))
			time.Sleep(time.Hour)
			drivertest.Must(t, c.Stop(t.Context(), in.ID))
			if got := drivertest.Listed(t, c)[in.ID]; got.Reclaimed || got.State != driver.Stopped {
				t.Errorf("%+v", got)
			}
		})
	})
	t.Run("an instance exists even if its zone's operations are not found", func(t *testing.T) {
		f := newFake()
		c := imitate(t, f, "")
		in, _ := drivertest.Create(t, c, requestFor("one", spot))
		f.powerOff(in.ID)
		f.broken["compute.zoneOperations.list"] = wrong{404, "notFound", "no zone", 0}
		if _, err := c.Describe(t.Context(), in.ID); drover.KindOf(err) != drover.KindTransient {
			t.Error(err)
		}
	})
	t.Run("operations are listed only if a spot instance has stopped", func(t *testing.T) {
		f := newFake()
		c := imitate(t, f, "")
		drivertest.Create(t, c, requestFor("one", spot))
		in, _ := drivertest.Create(t, c, requestFor("two"))
		f.powerOff(in.ID)
		if drivertest.Listed(t, c); f.calls["compute.zoneOperations.list"] != 0 {
			t.Errorf("%v", f.calls)
		}
	})
}

func TestDescribe(t *testing.T) {
	f := newFake()
	c := imitate(t, f, "")
	in, _ := drivertest.Create(t, c, requestFor("one"))
	f.powerOff(in.ID)
	if got, err := c.Describe(t.Context(), in.ID); err != nil || got.State != driver.Stopped || got.Tags[driver.TagName] != "one" {
		t.Errorf("%+v, %v", got, err)
	}
	drivertest.Must(t, c.Destroy(t.Context(), in.ID))
	drivertest.DescribeFails(t, c, drover.KindNotFound, in.ID, "us-central1-a/nobody", "nobody")
}

func TestChanges(t *testing.T) {
	t.Run("setting tags keeps the configured labels and fails on a concurrent change", func(t *testing.T) {
		f := newFake()
		c := imitate(t, f, "labels: {team: a}")
		in, _ := drivertest.Create(t, c, requestFor("one"))
		drivertest.KeepsTags(t, c, in.ID, map[string]string{"team": "a", driver.TagFleet: "fleet"})
		f.broken["compute.instances.setLabels"] = wrong{412, "conditionNotMet", "Labels fingerprint either invalid or resource labels have changed", 0}
		if err := c.SetTags(t.Context(), in.ID, nil); drover.KindOf(err) != drover.KindTransient {
			t.Error(err)
		}
	})
	t.Run("an instance stops, and starts if there is capacity", func(t *testing.T) {
		f := newFake()
		c := imitate(t, f, "")
		in, _ := drivertest.Create(t, c, requestFor("one"))
		if err := c.Stop(t.Context(), in.ID); err != nil || drivertest.Listed(t, c)[in.ID].State != driver.Stopped {
			t.Errorf("%v, %+v", err, drivertest.Listed(t, c)[in.ID])
		}
		f.out["start"] = "ZONE_RESOURCE_POOL_EXHAUSTED"
		if err := c.Start(t.Context(), in.ID); drover.KindOf(err) != drover.KindCapacity {
			t.Error(err)
		}
		clear(f.out)
		if err := c.Start(t.Context(), in.ID); err != nil || drivertest.Listed(t, c)[in.ID].State != driver.Running {
			t.Errorf("%v, %+v", err, drivertest.Listed(t, c)[in.ID])
		}
		for _, id := range []string{"us-central1-a/nobody", "nobody", "../x/y"} {
			if err := c.Start(t.Context(), id); drover.KindOf(err) != drover.KindNotFound {
				t.Errorf("%s: %v", id, err)
			}
			if err := c.Destroy(t.Context(), id); err != nil {
				t.Errorf("%s: %v", id, err)
			}
		}
	})
}

// covers C2
func TestVerifyHostKey(t *testing.T) {
	f := newFake()
	c := imitate(t, f, "")
	in, _ := drivertest.Create(t, c, requestFor("one"))
	if err := c.VerifyHostKey(t.Context(), in, []byte("key"), nil); drover.KindOf(err) != drover.KindTransient {
		t.Errorf("before the instance has published keys: %v", err)
	}
	f.guest[in.ID] = thing{"ssh-rsa": "xyz", "ssh-ed25519": base64.StdEncoding.EncodeToString([]byte("key"))}
	if err := c.VerifyHostKey(t.Context(), in, []byte("key"), nil); err != nil {
		t.Error(err)
	}
	if err := c.VerifyHostKey(t.Context(), in, []byte("another"), nil); drover.KindOf(err) != drover.KindHostKey {
		t.Errorf("another key: %v", err)
	}
	f.guest[in.ID] = thing{}
	if err := c.VerifyHostKey(t.Context(), in, []byte("key"), nil); drover.KindOf(err) != drover.KindTransient {
		t.Errorf("no keys published: %v", err)
	}
	if err := imitate(t, f, "init: cloud-init").VerifyHostKey(t.Context(), in, []byte("key"), nil); drover.KindOf(err) != drover.KindUnsupported {
		t.Errorf("with planted host keys: %v", err)
	}
}

// covers C7
func TestReap(t *testing.T) {
	f := newFake()
	f.pageSize = 1
	c := imitate(t, f, "")
	disk := func(fleet, zone string, users any) thing {
		return thing{"name": "data", "zone": prefix + "zones/" + zone, "labels": thing{driver.TagFleet: fleet}, "users": users, "creationTimestamp": "2020-01-01T00:00:00.000-08:00"}
	}
	f.disks["us-central1-a/data"], f.disks["us-central1-b/data"] = disk("fleet", "us-central1-a", nil), disk("fleet", "us-central1-b", []any{"one"})
	f.disks["us-east1-b/data"], f.disks["us-central1-c/data"] = disk("fleet", "us-east1-b", nil), disk("theirs", "us-central1-c", nil)
	swept, err := driver.Reap(t.Context(), c, "fleet", drover.TimeOf(time.Now()), driver.Active)
	if len(swept) != 1 || err != nil || len(f.disks) != 3 || f.disks["us-central1-a/data"] != nil {
		t.Errorf("%v, %v, left: %v", swept, err, f.disks)
	}
	for _, s := range append(swept, driver.Leftover{Kind: leftoverDisk, ID: "us-central1-b/data"}) {
		if err := c.Remove(t.Context(), s); err != nil {
			t.Errorf("removing a deleted or attached disk: %v", err)
		}
	}
	if err := c.Remove(t.Context(), driver.Leftover{Kind: "network", ID: "a/b"}); drover.KindOf(err) != drover.KindInvalid {
		t.Error(err)
	}
}

// covers K9
func TestFindImages(t *testing.T) {
	f := newFake()
	f.pageSize = 1
	c := imitate(t, f, "")
	newest, older, old := debian, "projects/debian-cloud/global/images/debian-12-bookworm-v20260101", "projects/debian-cloud/global/images/debian-12-bookworm-v20250101"
	for ref, want := range map[string][]string{
		"debian-cloud/family/debian-12":                                    {newest, older},
		"projects/debian-cloud/global/images/family/debian-12":             {newest, older},
		"debian-cloud/debian-12-bookworm-v*":                               {newest, older},
		"debian-cloud/debian-12-bookworm-v20250101":                        {old},
		"projects/debian-cloud/global/images/debian-12-bookworm-v20260201": {newest},
		"debian-cloud/nothing":                                             nil,
		"family/mine":                                                      nil,
		"mine-*":                                                           nil,
	} {
		found, err := c.FindImages(t.Context(), ref, "amd64")
		var got []string
		for _, i := range found {
			if got = append(got, i.ID); i.Arch != "amd64" || i.Created == 0 {
				t.Errorf("%+v", i)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %s %v", ref, diff, err)
		}
	}
	for _, bad := range []string{"debian-cloud/family/debian-*", "a b", "https://example.com/x", "a/b/c"} {
		if _, err := c.FindImages(t.Context(), bad, ""); drover.AsError(err, "").Hint == "" {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// covers C1
func TestOpen(t *testing.T) {
	network := newFake()
	t.Run("an invalid configuration is refused", func(t *testing.T) {
		for _, keys := range []string{
			"markets: [reserved]", "labels: {drover-fleet: x}", "labels: {Team: x}", "labels: {team: X}", "list_types: false", "zones: [us-east1-b]", "user: Root",
			"init: luck", "max_run: 1s", "max_run: 9000h", "zone: x",
		} {
			if _, err := open(t.Context(), options(t, "fleet", keys, t.TempDir()), network); err == nil || drover.AsError(err, drover.KindInvalid).Kind != drover.KindInvalid {
				t.Errorf("%s: %v", keys, err)
			}
		}
		if _, err := open(t.Context(), options(t, "a b", "", t.TempDir()), network); err == nil {
			t.Error("a fleet name with a space was accepted")
		}
		if err := (&Config{Region: "us", User: "a", TypeKeys: kit.DefaultTypes()}).Check(); drover.AsError(err, "").Hint == "" {
			t.Errorf("an invalid region: %v", err)
		}
	})
	t.Run("missing credentials are reported by the first call, not by Open", func(t *testing.T) {
		o := options(t, "fleet", "", t.TempDir())
		t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", t.TempDir()+"/none")
		c, err := open(t.Context(), o, nil)
		drivertest.Must(t, err)
		_, err = c.List(t.Context(), nil)
		if e := drover.AsError(err, ""); e.Kind != drover.KindAuthentication || e.Hint == "" {
			t.Errorf("%+v", e)
		}
	})
	t.Run("the project comes from the environment or the credentials if it is not configured", func(t *testing.T) {
		t.Setenv("GOOGLE_CLOUD_PROJECT", "lab-2")
		c, err := open(t.Context(), driver.Options{Fleet: "fleet", Folder: t.TempDir(), Decode: func(into any) error { into.(*Config).Region = "us-central1"; return nil }}, network)
		if err != nil || c.Capabilities().Project != "lab-2" {
			t.Errorf("%v", err)
		}
		t.Setenv("GOOGLE_CLOUD_PROJECT", "")
		file := t.TempDir() + "/credentials.json"
		drivertest.Must(t, os.WriteFile(file, []byte(`{"type": "authorized_user", "client_id": "a", "client_secret": "b", "refresh_token": "c"}`), 0o600))
		t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
		_, err = open(t.Context(), driver.Options{Fleet: "fleet", Folder: t.TempDir(), Decode: func(into any) error { into.(*Config).Region = "us-central1"; return nil }}, nil)
		if e := drover.AsError(err, ""); e.Kind != drover.KindInvalid || e.Hint == "" {
			t.Errorf("%+v", e)
		}
	})
}

func TestProjectAttributes(t *testing.T) {
	f := newFake()
	c := imitate(t, f, "")
	if _, err := c.Attribute(t.Context(), "pools"); drover.KindOf(err) != drover.KindNotFound {
		t.Errorf("a project without metadata: %v", err)
	}
	f.attributes = thing{"pools": "{}\n", "other": "x"}
	if text, err := c.Attribute(t.Context(), "pools"); text != "{}\n" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := c.Attribute(t.Context(), "pool"); drover.KindOf(err) != drover.KindNotFound {
		t.Errorf("a missing attribute: %v", err)
	}
	f.broken["compute.projects.get"] = wrong{403, "forbidden", "no", 0}
	if _, err := c.Attribute(t.Context(), "pools"); drover.KindOf(err) != drover.KindAuthentication {
		t.Errorf("credentials without permission: %v", err)
	}
}
