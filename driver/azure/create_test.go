package azure

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	azfake "github.com/Azure/azure-sdk-for-go/sdk/azcore/fake"
	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/driver"
	"drover/driver/drivertest"
	"drover/driver/kit"
)

// Azure's error messages, shortened.
var (
	skuNotAvailable = wrong{409, "SkuNotAvailable", "the requested size is currently not available in location westeurope, zones 1", ""}
	regionalQuota   = wrong{409, "OperationNotAllowed", "the operation would exceed the approved Total Regional Cores quota", ""}
	fullSubnet      = wrong{400, "SubnetIsFull", "the subnet has no addresses left", ""}
	allocation      = wrong{0, "AllocationFailed", "there is no capacity for the size in the region", ""}
	zonal           = wrong{0, "ZonalAllocationFailed", "there is no capacity for the size in the zone", ""}
	constrained     = wrong{0, "OverconstrainedAllocationRequest", "there is no capacity within the constraints", ""}
)

// covers C4 C5
func TestCreate(t *testing.T) {
	spot1, spot2 := candidate("Standard_D2s_v5", "westeurope-1", drover.Spot), candidate("Standard_D2ps_v5", "westeurope-1", drover.Spot)
	demand := candidate("Standard_D2s_v5", "westeurope-2", drover.OnDemand)

	t.Run("returns when Azure has accepted the request, and the list shows the rest", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRegion()
			r.makeTime = time.Minute
			c := imitate(t, r, "")
			began := time.Now()
			in, taken := drivertest.Create(t, c, request("one", spot1))
			if time.Since(began) > 0 || in.ID != "one" || in.State != driver.Pending || !taken.Same(spot1) || r.calls["CreateVM"] != 1 {
				t.Errorf("after %v and %v: %+v", time.Since(began), r.calls, in)
			}
			if got := drivertest.Listed(t, c)["one"]; got.State != driver.Pending || got.Failed != nil {
				t.Errorf("%+v", got)
			}
			time.Sleep(time.Minute)
			if got := drivertest.Listed(t, c)["one"]; got.State != driver.Running {
				t.Errorf("%+v", got)
			}
		})
	})
	t.Run("an instance that fails after it was accepted is listed with the reason", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRegion()
			r.makeTime = time.Minute
			r.fails["Standard_D2s_v5 1 spot"], r.fails["Standard_D2s_v5 2 "], r.fails["Standard_D2ps_v5  "] = zonal, allocation, constrained
			c := imitate(t, r, "")
			drivertest.Create(t, c, request("one", spot1))
			drivertest.Create(t, c, request("two", demand))
			drivertest.Create(t, c, request("three", spot2))
			if got := drivertest.Listed(t, c); got["one"].Failed != nil || got["two"].State != driver.Pending {
				t.Errorf("%+v", got)
			}
			time.Sleep(time.Minute)
			got := drivertest.Listed(t, c)
			for name, want := range map[string]struct {
				wrong
				market drover.Market
			}{"one": {zonal, drover.Spot}, "two": {allocation, drover.OnDemand}, "three": {constrained, drover.Spot}} {
				in := got[name]
				if in.State != driver.Stopped || in.Failed == nil {
					t.Fatalf("%s: %+v", name, in)
				}
				message := fmt.Sprintf("create instance %s: %s: %s", name, want.code, want.message)
				if diff := cmp.Diff(&drover.Error{Kind: drover.KindCapacity, Scope: drover.ScopeType, Market: want.market, Message: message}, in.Failed); diff != "" {
					t.Error(diff)
				}
				if err := c.Destroy(t.Context(), name); err != nil {
					t.Error(err)
				}
			}
			if got := drivertest.Listed(t, c); len(got)+len(r.parts) != 0 {
				t.Errorf("left: %v %v", got, r.parts)
			}
		})
	})
	t.Run("requests only the first candidate", func(t *testing.T) {
		r := newRegion()
		in, taken := drivertest.Create(t, imitate(t, r, ""), request("one", spot2, spot1))
		if !taken.Same(spot2) || in.ProviderType != "Standard_D2ps_v5" || in.Zone != "westeurope-1" || in.Market != drover.Spot || in.Addresses.User != "drover" {
			t.Errorf("took %+v: %+v", taken, in)
		}
		r.lacks["Standard_D2s_v5 1 spot"] = skuNotAvailable
		if got := drivertest.Refused(t, imitate(t, r, ""), request("two", spot1, spot2)); got.Kind != drover.KindCapacity || r.calls["CreateVM"] != 2 {
			t.Errorf("%v after %v", got, r.calls)
		}
	})
	t.Run("a refusal names the offering and its market", func(t *testing.T) {
		for _, tt := range []struct {
			name  string
			lacks map[string]wrong
			cores map[string]int64
			asked driver.Candidate
			want  drover.Error
		}{
			{"capacity", map[string]wrong{"Standard_D2s_v5 1 ": skuNotAvailable}, nil, spot1, drover.Error{Kind: drover.KindCapacity, Scope: drover.ScopeType, Market: drover.Spot}},
			{"the quota of spot", nil, map[string]int64{spotQuota: 1}, spot2, drover.Error{Kind: drover.KindQuota, Scope: drover.ScopeQuotaGroup, Market: drover.Spot}},
			{"the quota of a family", nil, map[string]int64{"standardDSv5Family": 1}, demand, drover.Error{Kind: drover.KindQuota, Scope: drover.ScopeQuotaGroup, Market: drover.OnDemand}},
			{"the quota of the region", map[string]wrong{"  on_demand": regionalQuota}, nil, demand, drover.Error{Kind: drover.KindQuota, Scope: drover.ScopeAll, Market: drover.OnDemand}},
			{"a full subnet", map[string]wrong{"  ": fullSubnet}, nil, spot1, drover.Error{Kind: drover.KindCapacity, Scope: drover.ScopeSubnet}},
			{"an unknown type", nil, nil, candidate("Standard_X", "westeurope-1", drover.Spot), drover.Error{Kind: drover.KindInvalid}},
		} {
			r := newRegion()
			if tt.lacks != nil {
				r.lacks = tt.lacks
			}
			if tt.cores != nil {
				r.cores = tt.cores
			}
			for _, keys := range []string{"", "list_types: false, types: [{name: a}]"} { // from known quotas, and from Azure's refusal
				t.Log(tt.name)
				drivertest.RefusedAs(t, imitate(t, r, keys), request("one", tt.asked), tt.want)
			}
		}
	})
	t.Run("a type that is larger than its whole quota is refused without a call", func(t *testing.T) {
		r := newRegion()
		r.cores[spotQuota] = 1
		c := imitate(t, r, "")
		if got := drivertest.Refused(t, c, request("one", spot1)); got.Kind != drover.KindQuota || got.Hint == "" || r.calls["CreateVM"] != 0 {
			t.Errorf("%v after %v", got, r.calls)
		}
		r = newRegion()
		r.broken["ListQuotas"] = wrong{status: 403}
		c = imitate(t, r, "")
		drivertest.Create(t, c, request("one", spot1))
		drivertest.Create(t, c, request("two", spot1))
		if r.calls["ListQuotas"] != 1 {
			t.Errorf("quotas that cannot be read were requested %d times", r.calls["ListQuotas"])
		}
	})
	t.Run("vCPUs returned to a quota can be used again", func(t *testing.T) {
		r := newRegion()
		r.cores[spotQuota] = 2
		drivertest.FreesQuota(t, imitate(t, r, ""), request, spot1)
	})
	t.Run("a repeated name with other candidates returns the existing instance", func(t *testing.T) {
		c := imitate(t, newRegion(), "")
		drivertest.Create(t, c, request("one", spot1))
		again, taken := drivertest.Create(t, c, request("one", demand))
		if again.ID != "one" || !taken.Same(spot1) || again.ProviderType != "Standard_D2s_v5" {
			t.Errorf("got %+v, %+v", again, taken)
		}
	})
	t.Run("another fleet's instance with that name is left alone", func(t *testing.T) {
		r := newRegion()
		other, err := open(t.Context(), options(t, "other", "", t.TempDir()), outside{r, &azfake.TokenCredential{}})
		drivertest.Must(t, err)
		theirs := request("one")
		theirs.Tags[driver.TagFleet] = "other"
		drivertest.Create(t, other, theirs)
		drivertest.RefusedAs(t, imitate(t, r, ""), request("one"), drover.Error{Kind: drover.KindInvalid})
	})
	t.Run("an impossible request is refused without a call", func(t *testing.T) {
		r := newRegion()
		bad := []driver.CreateRequest{request("a b"), request("one", candidate("Standard_D2s_v5", "northeurope-1", drover.Spot))}
		for _, template := range []string{`{"propertees": {}}`, `{"properties": []}`, `{"properties": {"licenseType": 1}}`, `{"name": "x"}`, `{"properties": {"diagnosticsProfile": {"boot": true}}}`, `{"location": "x"}`, `{"properties": {"priority": "Spot"}}`,
			`{"properties": {"hardwareProfile": {"vmSize": "x"}}}`} {
			one := request("one")
			one.Template = template
			bad = append(bad, one)
		}
		drivertest.Impossible(t, imitate(t, r, ""), request, maxUserData, bad...)
		if len(r.calls) > 0 {
			t.Errorf("calls: %v", r.calls)
		}
	})
	t.Run("a missing image or network is invalid, at once or in the list", func(t *testing.T) {
		r, missing := newRegion(), wrong{404, "ResourceNotFound", "the subnet was not found", ""}
		r.lacks["Standard_D2s_v5  "], r.fails["Standard_D2ps_v5  "] = missing, missing
		c := imitate(t, r, "")
		drivertest.RefusedAs(t, c, request("one", demand), drover.Error{Kind: drover.KindInvalid})
		drivertest.Create(t, c, request("two", spot2))
		if got := drivertest.Listed(t, c)["two"]; got.Failed == nil || got.Failed.Kind != drover.KindInvalid {
			t.Errorf("%+v", got)
		}
	})
	t.Run("an existing instance that disappears before it is read is a transient error", func(t *testing.T) {
		r := newRegion()
		r.broken["CreateVM"] = wrong{412, "PreconditionFailed", "the precondition was not met", ""}
		drivertest.RefusedAs(t, imitate(t, r, ""), request("one"), drover.Error{Kind: drover.KindTransient})
	})
	t.Run("an error is returned at once: the SDK retries nothing", func(t *testing.T) {
		for code, want := range map[string]drover.ErrorKind{"TooManyRequests": drover.KindRateLimit, "AuthorizationFailed": drover.KindAuthentication, "InternalServerError": drover.KindTransient} {
			r := newRegion()
			r.broken["CreateVM"] = wrong{map[drover.ErrorKind]int{drover.KindRateLimit: 429, drover.KindAuthentication: 403, drover.KindTransient: 500}[want], code, "no", "11"}
			began := time.Now()
			got := drivertest.Refused(t, imitate(t, r, ""), request("one"))
			if got.Kind != want || r.calls["CreateVM"] != 1 || time.Since(began) > 5*time.Second || want == drover.KindRateLimit && got.RetryAt < drover.TimeOf(began.Add(10*time.Second)) {
				t.Errorf("%s in %d calls: %+v", code, r.calls["CreateVM"], got)
			}
		}
	})
	t.Run("missing credentials are an error with a hint", func(t *testing.T) {
		who := &azfake.TokenCredential{}
		who.SetError(errors.New("nobody is logged in"))
		c, err := open(t.Context(), options(t, "fleet", "", t.TempDir()), outside{newRegion(), who})
		drivertest.Must(t, err)
		if got := drivertest.Refused(t, c.(*cloud), request("one")); got.Kind != drover.KindAuthentication || got.Hint == "" {
			t.Errorf("%+v", got)
		}
	})
}

// asked returns the JSON of the create call without the parts that differ each time. It checks that the custom data is
// the request's, and that interfaces and addresses are tagged with the current time.
func asked(t *testing.T, r *region, of driver.CreateRequest) object {
	t.Helper()
	m := r.vms[of.Name]
	if m == nil {
		t.Fatalf("there is no instance %s", of.Name)
	}
	system := at(m.asked, "properties.osProfile").(object)
	if text, err := base64.StdEncoding.DecodeString(system["customData"].(string)); err != nil || string(text) != kit.UserData(of).Reveal() {
		t.Errorf("%v: %s", err, text)
	}
	delete(system, "customData")
	nic := at(m.asked, "properties.networkProfile.networkInterfaceConfigurations.0")
	for _, part := range []any{nic, at(nic, "properties.ipConfigurations.0.properties.publicIPAddressConfiguration")} {
		if tags, ok := at(part, "tags").(object); ok {
			if made := madeAt(map[string]string{tagMade: tags[tagMade].(string)}); time.Since(made.Std()) > time.Minute {
				t.Errorf("made at %v", made)
			}
			delete(tags, tagMade)
		}
	}
	return m.asked
}

// expect compares an object with JSON.
func expect(t *testing.T, want string, got object) {
	t.Helper()
	var wanted object
	drivertest.Must(t, json.Unmarshal([]byte(want), &wanted))
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Error(diff)
	}
}

func TestRequestedInstance(t *testing.T) {
	const tags = `"tags": {"drover-fleet": "fleet", "drover-name": "one"}`
	const linux = `"linuxConfiguration": {"disablePasswordAuthentication": true, "ssh": {"publicKeys": [{"keyData": "` + drivertest.LoginKey + `", "path": "/home/USER/.ssh/authorized_keys"}]}}`
	t.Run("by default, all parts are deleted with the instance and have its tags, and there is no password", func(t *testing.T) {
		r, one := newRegion(), request("one")
		one.Disk = 30*drover.GiB + 1
		drivertest.Create(t, imitate(t, r, ""), one)
		expect(t, `{"location": "westeurope", "zones": ["1"], `+tags+`, "properties": {
			"hardwareProfile": {"vmSize": "Standard_D2s_v5"},
			"storageProfile": {
				"imageReference": {"publisher": "Debian", "offer": "debian-12", "sku": "12-gen2", "version": "latest"},
				"osDisk": {"createOption": "FromImage", "deleteOption": "Delete", "caching": "ReadWrite", "diskSizeGB": 31, "managedDisk": {"storageAccountType": "StandardSSD_LRS"}}
			},
			"osProfile": {"computerName": "one", "adminUsername": "drover", `+strings.Replace(linux, "USER", "drover", 1)+`},
			"networkProfile": {"networkApiVersion": "2022-11-01", "networkInterfaceConfigurations": [{"name": "one", `+tags+`, "properties": {
				"primary": true, "deleteOption": "Delete", "enableAcceleratedNetworking": false, "ipConfigurations": [{"name": "one", "properties": {
					"primary": true, "subnet": {"id": "/subscriptions/sub/resourceGroups/group/providers/Microsoft.Network/virtualNetworks/net/subnets/default"}
				}}]
			}}]}
		}}`, asked(t, r, one))
	})
	t.Run("a spot instance is deleted on eviction and costs at most the on-demand price, or what the template says", func(t *testing.T) {
		for template, most := range map[string]string{"": "-1", `{"properties": {"billingProfile": {"maxPrice": 0.5}}}`: "0.5"} {
			r, one := newRegion(), request("one", candidate("Standard_D2s_v5", "westeurope", drover.Spot))
			one.Template = template
			drivertest.Create(t, imitate(t, r, ""), one)
			vm := asked(t, r, one)
			p := vm["properties"].(object)
			expect(t, `{"priority": "Spot", "evictionPolicy": "Delete", "billingProfile": {"maxPrice": `+most+`}}`,
				object{"priority": p["priority"], "evictionPolicy": p["evictionPolicy"], "billingProfile": p["billingProfile"]})
			if zones, has := vm["zones"]; has {
				t.Errorf("zones: %v", zones)
			}
		}
	})
	t.Run("follows the configuration and the template", func(t *testing.T) {
		r := newRegion()
		c := imitate(t, r, `security_group: open, public_address: true, accelerated_networking: true, identity: /id, admin_user: ops, tags: {team: a},
			volume: {type: Premium_LRS, encryption_set: /set}, volumes: [{size: 100Gi, type: UltraSSD_LRS}]`)
		one := request("one")
		one.Candidates[0].Image = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/galleries/g/images/i"
		one.Template = `{"plan": {"name": "p"}, "identity": {"type": "SystemAssigned", "userAssignedIdentities": {"/other": {}}},
			"properties": {"licenseType": "RHEL_BYOS", "hardwareProfile": {"vmSizeProperties": {"vCPUsPerCore": 1}}}}`
		drivertest.Create(t, c, one)
		tags := strings.Replace(tags, "}", `, "team": "a"}`, 1)
		expect(t, `{"location": "westeurope", "zones": ["1"], "plan": {"name": "p"}, "identity": {"type": "UserAssigned", "userAssignedIdentities": {"/id": {}}}, `+tags+`, "properties": {
			"licenseType": "RHEL_BYOS", "hardwareProfile": {"vmSize": "Standard_D2s_v5", "vmSizeProperties": {"vCPUsPerCore": 1}},
			"storageProfile": {
				"imageReference": {"id": "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/galleries/g/images/i"},
				"osDisk": {"createOption": "FromImage", "deleteOption": "Delete", "caching": "ReadWrite", "managedDisk": {"storageAccountType": "Premium_LRS", "diskEncryptionSet": {"id": "/set"}}},
				"dataDisks": [{"lun": 0, "createOption": "Empty", "deleteOption": "Delete", "diskSizeGB": 100, "managedDisk": {"storageAccountType": "UltraSSD_LRS"}}]
			},
			"osProfile": {"computerName": "one", "adminUsername": "ops", `+strings.Replace(linux, "USER", "ops", 1)+`},
			"networkProfile": {"networkApiVersion": "2022-11-01", "networkInterfaceConfigurations": [{"name": "one", `+tags+`, "properties": {
				"primary": true, "deleteOption": "Delete", "enableAcceleratedNetworking": true,
				"networkSecurityGroup": {"id": "/subscriptions/sub/resourceGroups/group/providers/Microsoft.Network/networkSecurityGroups/open"},
				"ipConfigurations": [{"name": "one", "properties": {
					"primary": true, "subnet": {"id": "/subscriptions/sub/resourceGroups/group/providers/Microsoft.Network/virtualNetworks/net/subnets/default"},
					"publicIPAddressConfiguration": {"name": "one", `+tags+`, "sku": {"name": "Standard"}, "properties": {"deleteOption": "Delete", "publicIPAllocationMethod": "Static"}}
				}}]
			}}]}
		}}`, asked(t, r, one))
		if got := drivertest.Listed(t, c)["one"]; got.Addresses.User != "ops" || got.Addresses.Public != "192.0.2.1" {
			t.Errorf("%+v", got)
		}
	})
}
