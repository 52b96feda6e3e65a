package azure

import (
	"context"
	"encoding/json"
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

// covers C2
func TestList(t *testing.T) {
	spot := candidate("Standard_D2s_v5", "westeurope-1", drover.Spot)

	t.Run("merges Azure's lists", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRegion()
			r.makeTime = time.Minute
			c := imitate(t, r, "public_address: true, tags: {team: a}")
			drivertest.Create(t, c, request("one", spot))
			want := driver.Instance{
				ID: "one", ProviderType: "Standard_D2s_v5", Zone: "westeurope-1", Market: drover.Spot, State: driver.Pending, Created: drover.TimeOf(time.Now()),
				Tags:      map[string]string{"team": "a", driver.TagFleet: "fleet", driver.TagName: "one"},
				Addresses: driver.Addresses{Private: "10.0.0.4", Public: "192.0.2.1", User: "drover"},
			}
			if diff := cmp.Diff(want, drivertest.Listed(t, c)["one"]); diff != "" {
				t.Error(diff)
			}
			time.Sleep(time.Minute)
			want.State = driver.Running
			if diff := cmp.Diff(want, drivertest.Listed(t, c)["one"]); diff != "" {
				t.Error(diff)
			}
		})
	})
	t.Run("an incomplete list of any kind is an error", func(t *testing.T) {
		for _, call := range []string{"ListVMs", "ListVMStates", "ListInterfaces", "ListAddresses"} {
			r := newRegion()
			c := imitate(t, r, "public_address: true")
			drivertest.Create(t, c, request("one"))
			r.broken[call] = wrong{status: 500}
			t.Log(call)
			drivertest.ListFails(t, c, drover.KindTransient)
		}
		r := newRegion()
		r.pageSize = 1
		c := imitate(t, r, "")
		drivertest.Create(t, c, request("one"))
		drivertest.Create(t, c, request("two"))
		c.api.gate.Limiter = kit.NewRateLimiter(map[string]kit.Rate{"list VMs": {Burst: 1, PerSecond: 1}}, 1)
		drivertest.ListFails(t, c, drover.KindRateLimit)
	})
	t.Run("a response that is no list is an error, not an empty list", func(t *testing.T) {
		for _, call := range []string{"ListVMs", "ListVMStates", "ListInterfaces", "ListAddresses"} {
			for _, text := range []string{"", "{}", "null", `{"error": {"code": "None"}}`, "<html></html>", `{"value": [{"na`} {
				r := newRegion()
				c := imitate(t, r, "public_address: true")
				drivertest.Create(t, c, request("one"))
				r.garbled = map[string]string{call: text}
				t.Logf("%s: %q", call, text)
				drivertest.ListFails(t, c, drover.KindTransient)
			}
		}
	})
	t.Run("a page that is not Azure's does not mean that the instance is gone", func(t *testing.T) {
		r := newRegion()
		c := imitate(t, r, "")
		drivertest.Create(t, c, request("one"))
		for _, call := range []string{"GetVM", "DeleteVM", "CreateVM"} {
			r.broken[call] = wrong{status: 404, message: "<html><body>404 page not found</body></html>"}
		}
		drivertest.DescribeFails(t, c, drover.KindTransient, "one")
		drivertest.RefusedAs(t, c, request("two"), drover.Error{Kind: drover.KindTransient})
		if err := c.Destroy(t.Context(), "one"); drover.KindOf(err) != drover.KindTransient {
			t.Error(err)
		}
	})
	t.Run("a list without entries is empty", func(t *testing.T) {
		for _, text := range []string{`{"value": []}`, `{"value": null}`, "\ufeff" + `{"value": [], "nextLink": null}`} {
			r := newRegion()
			r.garbled = map[string]string{"ListVMs": text}
			if got := drivertest.Listed(t, imitate(t, r, "")); len(got) != 0 {
				t.Errorf("%s: %v", text, got)
			}
		}
	})
	t.Run("a response without the instance is a transient error", func(t *testing.T) {
		for _, text := range []string{"", "{}", "null", "<html></html>"} {
			r := newRegion()
			c := imitate(t, r, "")
			drivertest.Create(t, c, request("one"))
			r.garbled = map[string]string{"GetVM": text, "CreateVM": text}
			drivertest.DescribeFails(t, c, drover.KindTransient, "one")
			drivertest.RefusedAs(t, c, request("one"), drover.Error{Kind: drover.KindTransient})
			drivertest.RefusedAs(t, c, request("two"), drover.Error{Kind: drover.KindTransient})
		}
	})
	t.Run("a page of a proxy does not confirm a change", func(t *testing.T) {
		r := newRegion()
		c := imitate(t, r, "")
		drivertest.Create(t, c, request("one"))
		r.garbled = map[string]string{"DeallocateVM": "<html></html>", "StartVM": "<html></html>", "UpdateVM": "<html></html>", "DeleteVM": "<html></html>"}
		tag := func(ctx context.Context, id string) error { return c.SetTags(ctx, id, nil) }
		for _, change := range []func(context.Context, string) error{c.Stop, c.Start, tag, c.Destroy} {
			if err := change(t.Context(), "one"); drover.KindOf(err) != drover.KindTransient {
				t.Error(err)
			}
		}
	})
	t.Run("an ending spot instance is reclaimed, unless Drover destroyed it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRegion()
			r.endTime = time.Minute
			c := imitate(t, r, "")
			for _, name := range []string{"ours", "taken"} {
				drivertest.Create(t, c, request(name, spot))
			}
			drivertest.Create(t, c, request("demand"))
			for _, name := range []string{"ours", "demand"} {
				drivertest.Must(t, c.Destroy(t.Context(), name))
			}
			r.evict("taken")
			for name, in := range drivertest.Listed(t, c) {
				if in.State != driver.Stopping || in.Reclaimed != (name == "taken") {
					t.Errorf("%+v", in)
				}
			}
			time.Sleep(time.Minute)
			if got := drivertest.Listed(t, c); len(got) != 0 {
				t.Errorf("still listed: %v", got)
			}
		})
	})
	t.Run("a spot instance whose destroy call was not answered is not reclaimed, unless Azure refused it", func(t *testing.T) {
		for _, refused := range []bool{false, true} {
			r := newRegion()
			r.endTime = time.Minute
			c := imitate(t, r, "")
			drivertest.Create(t, c, request("one", spot))
			r.cut = map[string]bool{"DeleteVM": true}
			if refused {
				r.broken["DeleteVM"] = wrong{403, "AuthorizationFailed", "no", ""}
			}
			if err := c.Destroy(t.Context(), "one"); err == nil {
				t.Error("there is no error")
			}
			r.evict("one")
			if in := drivertest.Listed(t, c)["one"]; in.State != driver.Stopping || in.Reclaimed != refused {
				t.Errorf("refused: %v: %+v", refused, in)
			}
		}
	})
	t.Run("a spot instance that Drover stops is not reclaimed", func(t *testing.T) {
		c := imitate(t, newRegion(), "")
		in := driver.Instance{ID: "one", State: driver.Stopping, Market: drover.Spot}
		if !c.takenBack(in) {
			t.Error("a spot instance that Azure stops is not reclaimed")
		}
		in.Tags = map[string]string{driver.TagStopped: "2026-02-03T04:05:06Z"}
		if c.takenBack(in) {
			t.Error("a spot instance that Drover stopped is reclaimed")
		}
	})
	t.Run("an instance in another region is not listed", func(t *testing.T) {
		r := newRegion()
		drivertest.Create(t, imitate(t, r, ""), request("one"))
		r.vms["one"].asked["location"] = "northeurope"
		if got := drivertest.Listed(t, imitate(t, r, "")); len(got) != 0 {
			t.Errorf("%v", got)
		}
	})
	t.Run("accepts missing values, nulls, and times without a time zone, as Azure returns them", func(t *testing.T) {
		for text, want := range map[string]driver.Instance{
			`{"name": "one"}`: {ID: "one", Zone: "westeurope", Market: drover.OnDemand, State: driver.Pending},
			`{"name": "one", "zones": null, "tags": {"a": null}, "new": 1, "properties": {"timeCreated": null, "osProfile": null, "instanceView": {"statuses": [null]}}}`: {
				ID: "one", Zone: "westeurope", Market: drover.OnDemand, State: driver.Pending, Tags: map[string]string{"a": ""},
			},
			`{"name": "one", "properties": {"timeCreated": "2026-03-01T00:00:00.5"}}`: {
				ID: "one", Zone: "westeurope", Market: drover.OnDemand, State: driver.Pending, Created: drover.TimeOf(day("2026-03-01").Add(time.Second / 2)),
			},
		} {
			var vm virtualMachine
			drivertest.Must(t, json.Unmarshal([]byte(text), &vm))
			if diff := cmp.Diff(want, imitate(t, newRegion(), "").instanceOf(vm)); diff != "" {
				t.Errorf("%s: %s", text, diff)
			}
		}
	})
	t.Run("an instance that runs although its provisioning failed is left to the boot probe", func(t *testing.T) {
		for _, tt := range []struct {
			provisioning, power string
			want                driver.State
		}{
			{"Creating", "", driver.Pending}, {"Creating", "running", driver.Running}, {"Succeeded", "running", driver.Running}, {"Failed", "running", driver.Running},
			{"Succeeded", "stopped", driver.Stopped}, {"Succeeded", "deallocated", driver.Stopped}, {"Succeeded", "deallocating", driver.Stopping},
			{"Succeeded", "", driver.Pending}, {"Failed", "", driver.Stopped}, {"Deleting", "running", driver.Stopping}, {"Updating", "starting", driver.Pending},
		} {
			if got := statusOf(t, tt.provisioning, tt.power).state(); got != tt.want {
				t.Errorf("%s, %s: %s", tt.provisioning, tt.power, got)
			}
		}
	})
	t.Run("an instance that the list of states lacks has not failed: perhaps only its last change has", func(t *testing.T) {
		r := newRegion()
		r.fails["Standard_D2s_v5  "] = zonal
		c := imitate(t, r, "")
		drivertest.Create(t, c, request("one"))
		r.garbled = map[string]string{"ListVMStates": `{"value": []}`}
		all, err := c.List(t.Context(), nil)
		if err != nil || len(all) != 1 || all[0].State != driver.Pending || all[0].Failed != nil {
			t.Errorf("%+v, %v", all, err)
		}
	})
	t.Run("an instance that Drover stopped was created, whatever failed since", func(t *testing.T) {
		vm := statusOf(t, "Failed", "deallocated")
		c := imitate(t, newRegion(), "")
		if in := c.instanceOf(vm); in.State != driver.Stopped || in.Failed == nil {
			t.Errorf("%+v", in)
		}
		vm.Tags = map[string]string{driver.TagStopped: "2026-02-03T04:05:06Z"}
		if in := c.instanceOf(vm); in.State != driver.Stopped || in.Failed != nil {
			t.Errorf("%+v", in)
		}
	})
	t.Run("setting tags keeps the configured ones", func(t *testing.T) {
		r := newRegion()
		c := imitate(t, r, "tags: {team: a}")
		drivertest.Create(t, c, request("one"))
		drivertest.KeepsTags(t, c, "one", map[string]string{"team": "a", driver.TagFleet: "fleet"})
	})
	t.Run("a missing instance does not start", func(t *testing.T) {
		if err := imitate(t, newRegion(), "").Start(t.Context(), "nobody"); drover.KindOf(err) != drover.KindNotFound {
			t.Error(err)
		}
	})
}

// statusOf returns an instance with a provisioning state and a power state, which may be empty.
func statusOf(t *testing.T, provisioning, power string) (vm virtualMachine) {
	t.Helper()
	statuses := []object{{"code": "ProvisioningState/" + provisioning}, {"code": "PowerState/" + power}}
	text, err := json.Marshal(object{"properties": object{"provisioningState": provisioning, "instanceView": object{"statuses": statuses}}})
	drivertest.Must(t, err)
	drivertest.Must(t, json.Unmarshal(text, &vm))
	return vm
}

func TestDescribe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRegion()
		r.endTime = time.Minute
		c := imitate(t, r, "public_address: true")
		drivertest.Create(t, c, request("one"))
		drivertest.Must(t, c.Stop(t.Context(), "one"))
		drivertest.Listed(t, c) // which also compares it with Describe
		for _, call := range []string{"GetVM", "ListInterfaces", "ListAddresses"} {
			r.broken[call] = wrong{status: 500}
			t.Log("without", call)
			drivertest.DescribeFails(t, c, drover.KindTransient, "one")
			if call != "GetVM" { // then it does exist
				r.broken[call] = wrong{status: 404, code: "ResourceGroupNotFound"}
				drivertest.DescribeFails(t, c, drover.KindTransient, "one")
			}
			delete(r.broken, call)
		}
		drivertest.Must(t, c.Destroy(t.Context(), "one"))
		if in, err := c.Describe(t.Context(), "one"); err != nil || in.State != driver.Stopping {
			t.Errorf("while it ends: %+v, %v", in, err)
		}
		time.Sleep(time.Minute)
		drivertest.DescribeFails(t, c, drover.KindNotFound, "one")
	})
}

// covers C7
func TestReap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRegion()
		r.pageSize = 1
		c := imitate(t, r, "public_address: true")
		drivertest.Create(t, c, request("one"))
		drivertest.Create(t, c, request("two"))
		theirs := request("theirs")
		theirs.Tags[driver.TagFleet] = "other"
		drivertest.Create(t, c, theirs)
		for _, p := range r.parts {
			p.stays = true // as after a create call that failed half-way
		}
		for _, name := range []string{"one", "theirs"} {
			drivertest.Must(t, c.Destroy(t.Context(), name))
		}
		if swept := drivertest.Reaped(t, c, 0, driver.Active); len(swept) != 0 {
			t.Errorf("leftovers that may soon have an owner were removed: %v", swept)
		}
		time.Sleep(time.Hour)
		want := []string{leftoverDisk + " one_OsDisk", leftoverInterface + " one-nic", leftoverAddress + " one-ip"}
		if diff := cmp.Diff(want, drivertest.Reaped(t, c, 0, driver.Active)); diff != "" {
			t.Error(diff)
		}
		if len(r.of(leftoverDisk)) != 2 || len(r.of(leftoverInterface)) != 2 || len(r.of(leftoverAddress)) != 2 {
			t.Errorf("left: %v", r.parts)
		}
		for _, s := range []driver.Leftover{
			{Kind: leftoverDisk, ID: "two_OsDisk"}, {Kind: leftoverInterface, ID: "two-nic"}, {Kind: leftoverAddress, ID: "two-ip"}, {Kind: leftoverDisk, ID: "one_OsDisk"},
		} {
			if err := c.Remove(t.Context(), s); err != nil {
				t.Errorf("%s, which has an owner or does not exist: %v", s.ID, err)
			}
		}
		if err := c.Remove(t.Context(), driver.Leftover{Kind: "castle"}); drover.KindOf(err) != drover.KindInvalid {
			t.Error(err)
		}
		if len(r.parts) != 6 {
			t.Errorf("left: %v", r.parts)
		}
	})
}

func TestLeftovers(t *testing.T) {
	t.Run("a kind that cannot be listed does not hide the others", func(t *testing.T) {
		r := newRegion()
		r.garbled = map[string]string{
			"ListDisks":      `{}`,
			"ListInterfaces": `{"value": [{"name": "old", "tags": {"drover-fleet": "fleet"}, "properties": {}}]}`,
		}
		all, err := imitate(t, r, "").Leftovers(t.Context(), "fleet")
		if err == nil || len(all) != 1 || all[0].ID != "old" {
			t.Errorf("%+v, %v", all, err)
		}
	})
	t.Run("a disk's time may have no time zone, or be missing", func(t *testing.T) {
		r := newRegion()
		r.garbled = map[string]string{"ListDisks": `{"value": [
			{"name": "old", "tags": {"drover-fleet": "fleet"}, "properties": {"diskState": "Unattached", "timeCreated": "2026-03-01T00:00:00.5"}},
			{"name": "new", "tags": {"drover-fleet": "fleet"}, "properties": {"diskState": "Unattached", "timeCreated": null}}]}`}
		all, err := imitate(t, r, "").Leftovers(t.Context(), "fleet")
		if err != nil || len(all) != 2 || all[0].Created != drover.TimeOf(day("2026-03-01").Add(time.Second/2)) || all[1].Created != 0 {
			t.Errorf("%+v, %v", all, err)
		}
	})
}

// covers K9
func TestFindImages(t *testing.T) {
	r := newRegion()
	r.pageSize = 2
	for i, name := range []string{"worker-1", "worker-2", "Worker-3", "other"} {
		made := object{"createdAt": time.Date(2026, 3, 9-i, 0, 0, 0, 0, time.UTC)}
		r.images = append(r.images, object{"id": "/images/" + name, "name": name, "location": "westeurope", "systemData": made})
	}
	r.images = append(r.images, object{"id": "/images/far", "name": "worker-9", "location": "northeurope", "systemData": nil})
	c := imitate(t, r, "image_group: pictures")
	gallery := "/subscriptions/sub/resourceGroups/pictures/providers/Microsoft.Compute/galleries/lab/images/worker"
	for ref, want := range map[string][]string{
		image:                   {image},
		"/subscriptions/x/y":    {"/subscriptions/x/y"},
		"/CommunityGalleries/x": {"/CommunityGalleries/x"},
		"lab/worker":            {gallery},
		"lab/worker/1.2.0":      {gallery + "/versions/1.2.0"},
		"worker-*":              {"/images/worker-1", "/images/worker-2", "/images/Worker-3"},
		"worker-2":              {"/images/worker-2"},
		"worker-?":              nil,
		"nobody":                nil,
	} {
		found, err := c.FindImages(t.Context(), ref, "amd64")
		got := kit.Each(found, func(i driver.Image) string { return i.ID })
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %s %v", ref, diff, err)
		}
		if newest, _ := middleware.Newest(found, "amd64"); ref == "worker-*" && newest.Name != "worker-1" {
			t.Errorf("the newest is %+v", newest)
		}
	}
	expect(t, `{"communityGalleryImageId": "/CommunityGalleries/x/images/y"}`, imageOf("/CommunityGalleries/x/images/y"))
	expect(t, `{"sharedGalleryImageId": "/SharedGalleries/x/images/y"}`, imageOf("/SharedGalleries/x/images/y"))
}
