package gce

import (
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"regexp"
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

// covers C5
func TestRefusals(t *testing.T) {
	spot, demand := candidate("n2-standard-2", "us-central1-a", drover.Spot), candidate("n2-standard-2", "us-central1-b", drover.OnDemand)

	t.Run("a late refusal names the offering and its market", func(t *testing.T) {
		for _, tt := range []struct {
			name string
			out  map[string]string
			cpus map[string]int
			as   driver.Candidate
			want drover.Error
		}{
			{"a zone without capacity", map[string]string{"n2-standard-2 us-central1-a ": "ZONE_RESOURCE_POOL_EXHAUSTED"}, nil, spot, drover.Error{Kind: drover.KindCapacity, Scope: drover.ScopeType, Market: drover.Spot}},
			{"a spot market without capacity", map[string]string{"  SPOT": "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"}, nil, spot, drover.Error{Kind: drover.KindCapacity, Scope: drover.ScopeType, Market: drover.Spot}},
			{"a spot quota", nil, map[string]int{"PREEMPTIBLE_CPUS": 1}, spot, drover.Error{Kind: drover.KindQuota, Scope: drover.ScopeQuotaGroup, Market: drover.Spot}},
			{"an on-demand quota", nil, map[string]int{"N2_CPUS": 1}, demand, drover.Error{Kind: drover.KindQuota, Scope: drover.ScopeQuotaGroup, Market: drover.OnDemand}},
			{"a full subnet", map[string]string{" us-central1-a ": "IP_SPACE_EXHAUSTED"}, nil, spot, drover.Error{Kind: drover.KindCapacity, Scope: drover.ScopeSubnet}},
		} {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				f.opTime = 3 * time.Second
				maps.Copy(f.out, tt.out)
				maps.Copy(f.cpus, tt.cpus)
				t.Log(tt.name)
				drivertest.RefusedAs(t, imitate(t, f, ""), requestFor("one", tt.as), tt.want)
				if len(f.instances) > 0 {
					t.Errorf("%s: left %v", tt.name, f.instances)
				}
			})
		}
	})
	t.Run("the wait for a refusal is short", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			f.opTime, f.bootTime = time.Hour, time.Hour
			began := time.Now()
			in, _ := drivertest.Create(t, imitate(t, f, ""), requestFor("one", spot))
			if took := time.Since(began); took != settleTime || in.State != driver.Pending || in.Market != drover.Spot || in.ID != "us-central1-a/one" {
				t.Errorf("after %v: %+v", took, in)
			}
		})
	})
	t.Run("waits that end early are repeated once a second until the refusal", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			f.opTime, f.hurried = 3*time.Second, true
			f.out["  SPOT"] = "STOCKOUT"
			drivertest.RefusedAs(t, imitate(t, f, ""), requestFor("one", spot), drover.Error{Kind: drover.KindCapacity, Scope: drover.ScopeType, Market: drover.Spot})
			if waits := f.calls["compute.zoneOperations.wait"]; waits != 4 {
				t.Errorf("%d calls", waits)
			}
		})
	})
	t.Run("a refused wait does not mean that the instance was refused", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			f.opTime = 3 * time.Second
			c := imitate(t, f, "")
			for _, why := range []wrong{{403, "forbidden", "no", 0}, {400, "invalid", "what", 0}, {409, "", "conflict", 0}, {403, "quotaExceeded", "enough", 0}} {
				f.broken["compute.zoneOperations.wait"] = why
				drivertest.RefusedAs(t, c, requestFor("one"), drover.Error{Kind: drover.KindTransient})
			}
			time.Sleep(f.opTime)
			delete(f.broken, "compute.zoneOperations.wait")
			if in, _ := drivertest.Create(t, c, requestFor("one")); len(f.instances) != 1 || in.ID != "us-central1-a/one" {
				t.Errorf("%+v of %v", in, f.instances)
			}
		})
	})
	t.Run("vCPUs returned to a quota can be used again", func(t *testing.T) {
		f := newFake()
		f.cpus["PREEMPTIBLE_CPUS"] = 2
		drivertest.FreesQuota(t, imitate(t, f, ""), requestFor, spot)
	})
}

func TestImpossibleRequests(t *testing.T) {
	t.Run("an impossible request is refused before the insert call", func(t *testing.T) {
		f := newFake()
		elsewhere := requestFor("one", candidate("n2-standard-2", "us-east1-b", drover.Spot))
		misspelt, forbidden, sneaky, badTag, unknownImage := requestFor("one"), requestFor("one"), requestFor("one"), requestFor("one"), requestFor("one")
		misspelt.Template, forbidden.Template = `{"minCpuPlatfrom": "x"}`, `{"machineType": "x"}`
		sneaky.Candidates[0].ProviderType = "../n2"
		badTag.Tags["A key"] = "x"
		unknownImage.Candidates[0].Image = "projects/debian-cloud/global/images/nothing"
		unknownImage.Disk = drover.GiB
		drivertest.Impossible(t, imitate(t, f, ""), requestFor, maxUserData, elsewhere, requestFor(""), misspelt, forbidden, sneaky, badTag, unknownImage)
		if f.calls["compute.instances.insert"] > 0 {
			t.Errorf("%d calls", f.calls["compute.instances.insert"])
		}
	})
	t.Run("a request for a missing image is invalid", func(t *testing.T) {
		r := requestFor("one")
		r.Candidates[0].Image = "projects/debian-cloud/global/images/nothing"
		drivertest.RefusedAs(t, imitate(t, newFake(), ""), r, drover.Error{Kind: drover.KindInvalid})
	})
	t.Run("a call refused for its rate or its credentials is reported as such and not retried", func(t *testing.T) {
		for _, tt := range []struct {
			broken wrong
			want   drover.ErrorKind
		}{
			{wrong{403, "rateLimitExceeded", "Rate Limit Exceeded", 0}, drover.KindRateLimit}, {wrong{429, "", "slower", 7}, drover.KindRateLimit},
			{wrong{403, "forbidden", "no", 0}, drover.KindAuthentication}, {wrong{401, "", "who", 0}, drover.KindAuthentication}, {wrong{503, "backendError", "later", 0}, drover.KindTransient},
		} {
			f := newFake()
			f.broken["compute.instances.insert"] = tt.broken
			got := drivertest.Refused(t, imitate(t, f, ""), requestFor("one"))
			if got.Kind != tt.want || f.calls["compute.instances.insert"] != 1 || tt.want == drover.KindRateLimit && got.RetryAt <= drover.TimeOf(time.Now()) {
				t.Errorf("%v in %d calls: %+v", tt.broken, f.calls["compute.instances.insert"], got)
			}
		}
	})
}

// TestName checks that a name stands for one instance.
// covers C4
func TestName(t *testing.T) {
	spot := candidate("n2-standard-2", "us-central1-a", drover.Spot)

	t.Run("a repeated name returns the same instance, even after Google has forgotten the request", func(t *testing.T) {
		f := newFake()
		f.bootTime = time.Minute
		c := imitate(t, f, "")
		first, _ := drivertest.Create(t, c, requestFor("one", spot))
		clear(f.requests)
		again, _ := drivertest.Create(t, c, requestFor("one", spot))
		if diff := cmp.Diff(first.Tags, again.Tags); again.ID != first.ID || diff != "" || len(f.instances) != 1 {
			t.Errorf("got %+v: %s", again, diff)
		}
	})
	t.Run("a repeated name returns the same refusal", func(t *testing.T) {
		f := newFake()
		f.out["  SPOT"] = "STOCKOUT"
		c := imitate(t, f, "")
		first := drivertest.Refused(t, c, requestFor("one", spot))
		clear(f.out)
		if again := drivertest.Refused(t, c, requestFor("one", spot)); again.Kind != first.Kind || len(f.instances) > 0 {
			t.Errorf("got %+v", again)
		}
	})
	t.Run("a name whose instance Google could not create for a moment can be created later", func(t *testing.T) {
		for code, want := range map[string]drover.ErrorKind{"INTERNAL_ERROR": drover.KindTransient, "RESOURCE_OPERATION_RATE_EXCEEDED": drover.KindRateLimit} {
			f := newFake()
			f.out["  SPOT"] = code
			c := imitate(t, f, "")
			if err := drivertest.Refused(t, c, requestFor("one", spot)); err.Kind != want {
				t.Errorf("%s: %v", code, err)
			}
			clear(f.out)
			first, _ := drivertest.Create(t, c, requestFor("one", spot))
			if again, _ := drivertest.Create(t, c, requestFor("one", spot)); again.ID != first.ID || len(f.instances) != 1 {
				t.Errorf("%s: %d instances", code, len(f.instances))
			}
		}
	})
	t.Run("another fleet's instance with that name is left alone", func(t *testing.T) {
		f := newFake()
		c := imitate(t, f, "")
		theirs := requestFor("one", spot)
		theirs.Tags = map[string]string{driver.TagFleet: "theirs", driver.TagName: "one"}
		drivertest.Create(t, c, theirs)
		clear(f.requests)
		drivertest.RefusedAs(t, c, requestFor("one", spot), drover.Error{Kind: drover.KindInvalid})
	})
	t.Run("a name that Google rejects is replaced", func(t *testing.T) {
		c := imitate(t, newFake(), "")
		in, _ := drivertest.Create(t, c, requestFor("Lab-"+strings.Repeat("x", 80)))
		if !strings.HasPrefix(in.ID, "us-central1-a/drover-") || in.Tags[driver.TagName] != "Lab-"+strings.Repeat("x", 80) {
			t.Errorf("%+v", in)
		}
	})
}

// body is the part of an insert call that the tests look at.
type body struct {
	Description, Hostname, MinCpuPlatform string
	ShieldedInstanceConfig                thing
	Labels                                map[string]string
	Metadata                              metadata
	Disks                                 []struct {
		Boot, AutoDelete bool
		InitializeParams struct {
			DiskSizeGb            int64 `json:",string"`
			SourceImage, DiskType string
			Labels                map[string]string
		}
	}
	NetworkInterfaces []struct {
		Network, Subnetwork string
		AccessConfigs       []thing
	}
	ServiceAccounts []struct{ Email string }
	Tags            *struct{ Items []string }
	Scheduling      struct {
		ProvisioningModel, InstanceTerminationAction, OnHostMaintenance string
		AutomaticRestart                                                *bool
		MaxRunDuration                                                  *struct {
			Seconds int64 `json:",string"`
		}
	}
}

// inserted returns the body of the only insert call.
func inserted(t *testing.T, f *fake) (in body) {
	t.Helper()
	for _, h := range f.instances {
		text, err := json.Marshal(h.thing)
		drivertest.Must(t, err)
		drivertest.Must(t, json.Unmarshal(text, &in))
		return in
	}
	t.Fatal("no instance was created")
	return in
}

func TestRequestedInstance(t *testing.T) {
	t.Run("by default, nobody else can log in, the disk is deleted with the instance, and it has no credentials", func(t *testing.T) {
		f := newFake()
		r := requestFor("one")
		r.Disk = 30*drover.GiB + 1
		drivertest.Create(t, imitate(t, f, ""), r)
		in := inserted(t, f)
		data := in.Metadata.values()
		for k, want := range map[string]string{"ssh-keys": "drover:" + drivertest.LoginKey, "block-project-ssh-keys": "TRUE", "enable-oslogin": "FALSE", "enable-guest-attributes": "TRUE"} {
			if data[k] != want {
				t.Errorf("%s is %q", k, data[k])
			}
		}
		if !strings.HasPrefix(data["startup-script"], "#!/bin/sh\n") || data["user-data"] != "" {
			t.Errorf("metadata: %v", data)
		}
		boot := in.Disks[0]
		tags := map[string]string{driver.TagFleet: "fleet", driver.TagName: "one"}
		if p := boot.InitializeParams; !boot.Boot || !boot.AutoDelete || p.DiskSizeGb != 31 || p.SourceImage != debian || !strings.HasSuffix(p.DiskType, "/pd-balanced") || !cmp.Equal(p.Labels, tags) {
			t.Errorf("boot disk: %+v %+v", boot, p)
		}
		if nic := in.NetworkInterfaces[0]; nic.Network != "global/networks/default" || len(nic.AccessConfigs) != 1 || len(in.ServiceAccounts) > 0 || in.Tags != nil {
			t.Errorf("%+v", in)
		}
		if s := in.Scheduling; s.ProvisioningModel != "STANDARD" || s.InstanceTerminationAction != "" || s.MaxRunDuration != nil {
			t.Errorf("scheduling: %+v", s)
		}
	})
	t.Run("an interrupted spot instance remains in lists and is not restarted", func(t *testing.T) {
		f := newFake()
		drivertest.Create(t, imitate(t, f, ""), requestFor("one", candidate("n2-standard-2", "us-central1-a", drover.Spot)))
		if s := inserted(t, f).Scheduling; s.ProvisioningModel != "SPOT" || s.InstanceTerminationAction != "STOP" || s.AutomaticRestart == nil || *s.AutomaticRestart {
			t.Errorf("scheduling: %+v", s)
		}
	})
	t.Run("the disk is never smaller than the image", func(t *testing.T) {
		f := newFake()
		r := requestFor("one")
		r.Disk = drover.GiB
		drivertest.Create(t, imitate(t, f, ""), r)
		if got := inserted(t, f).Disks[0].InitializeParams.DiskSizeGb; got != 10 {
			t.Errorf("%d GB", got)
		}
	})
	t.Run("follows the configuration and the template", func(t *testing.T) {
		f := newFake()
		c := imitate(t, f, `subnetwork: jobs, public_address: false, network_tags: [worker], service_account: worker@lab-1.iam.gserviceaccount.com, user: admin, init: cloud-init,
			labels: {team: a}, disk_type: pd-ssd, max_run: 48h`)
		r := requestFor("one", candidate("g2-standard-4", "us-central1-a", drover.Spot))
		r.Template = `{"minCpuPlatform": "Intel Ice Lake", "deletionProtection": true, "shieldedInstanceConfig": {"enableVtpm": false}, "labels": {"kind": "batch", "drover-fleet": "no"}, "metadata": {"items": [{"key": "x", "value": "y"}, {"key": "ssh-keys", "value": "z"}]},
			"disks": [{"source": "projects/lab-1/zones/us-central1-a/disks/data", "mode": "READ_ONLY"}, {"initializeParams": {"diskSizeGb": "50"}}, {"initializeParams": {}, "autoDelete": false}]}`
		drivertest.Create(t, c, r)
		in := inserted(t, f)
		data := in.Metadata.values()
		if nic := in.NetworkInterfaces[0]; nic.Subnetwork != "regions/us-central1/subnetworks/jobs" || len(nic.AccessConfigs) > 0 || nic.Network != "" {
			t.Errorf("network: %+v", nic)
		}
		if data["user-data"] != kit.UserData(r).Reveal() || data["startup-script"] != "" || data["ssh-keys"] != "admin:"+drivertest.LoginKey || data["x"] != "y" {
			t.Errorf("metadata: %v", data)
		}
		if s := in.Scheduling; s.MaxRunDuration.Seconds != 48*3600 || s.InstanceTerminationAction != "DELETE" || s.OnHostMaintenance != "TERMINATE" {
			t.Errorf("scheduling: %+v", s)
		}
		if len(in.Disks) != 4 || in.Disks[1].AutoDelete || !in.Disks[2].AutoDelete || in.Disks[3].AutoDelete || !in.Disks[0].Boot || !strings.HasSuffix(in.Disks[0].InitializeParams.DiskType, "/pd-ssd") || in.Disks[0].InitializeParams.Labels["team"] != "a" {
			t.Errorf("disks: %+v", in.Disks)
		}
		want := map[string]string{"team": "a", "kind": "batch", driver.TagFleet: "fleet", driver.TagName: "one"}
		if diff := cmp.Diff(want, in.Labels); diff != "" || in.MinCpuPlatform != "Intel Ice Lake" || in.ServiceAccounts[0].Email != "worker@lab-1.iam.gserviceaccount.com" || !slices.Equal(in.Tags.Items, []string{"worker"}) {
			t.Errorf("%s: %+v", diff, in)
		}
		if diff := cmp.Diff(thing{"enableVtpm": false}, in.ShieldedInstanceConfig); diff != "" {
			t.Errorf("a template's false for a key that is true by default: %s", diff)
		}
		if is := slices.Collect(maps.Values(f.instances))[0].thing["deletionProtection"]; is != nil {
			t.Errorf("deletionProtection: %v", is)
		}
		if can := c.Capabilities(); can.HostKeys != driver.HostKeysPlanted || can.Init != driver.InitCloud {
			t.Errorf("%+v", can)
		}
	})
	t.Run("fourth-generation types get a disk that they accept, and types with GPUs do not migrate", func(t *testing.T) {
		for name, want := range map[string]string{"c4a-standard-1": "hyperdisk-balanced", "n4-standard-2": "hyperdisk-balanced", "n2d-standard-2": "pd-balanced", "e2-micro": "pd-balanced", "custom": "pd-balanced"} {
			if got := defaultDisk(name); got != want {
				t.Errorf("%s gets %s", name, got)
			}
		}
		for name, want := range map[string]bool{"g2-standard-4": true, "a2-highgpu-1g": true, "h3-standard-88": true, "g1-small": false, "n2-standard-2": false} {
			if stays.MatchString(name) != want {
				t.Errorf("%s stays on its host: %v, want %v", name, !want, want)
			}
		}
	})
}

// covers P7
func TestTemplatesAreFilledIn(t *testing.T) {
	f := newFake()
	c, err := middleware.Customize(imitate(t, f, ""), middleware.Custom{Template: `{"description": "{fleet}/{pool}/{name} in {zone} of {project}", "hostname": "{name}.{zone}.example"}`})
	drivertest.Must(t, err)
	r := requestFor("one")
	r.Tags[driver.TagPool] = "web"
	drivertest.Create(t, c, r)
	if in := inserted(t, f); in.Description != "fleet/web/one in us-central1-a of lab-1" || in.Hostname != "one.us-central1-a.example" {
		t.Errorf("%q, %q", in.Description, in.Hostname)
	}
}

// covers P7
func TestForbiddenTemplates(t *testing.T) {
	for _, raw := range []string{
		`{"minCpuPlatfrom": "x"}`, `{"canIpForward": "yes"}`, `{"disks": [{"initializeParams": {"size": 1}}]}`, `{"labels": {"a": 1}}`, `[]`,
		`{"name": "web-1"}`, `{"machineType": "n1-standard-1"}`, `{"disks": [{"boot": true}]}`, `{"scheduling": {"preemptible": true}}`,
		`{"metadata": {"items": [{"key": "startup-script", "value": "true"}]}}`, `{"metadata": {"items": [{"key": "user-data", "value": "true"}]}}`,
	} {
		r := requestFor("one")
		r.Template = raw
		_, _, err := imitate(t, newFake(), "").Create(t.Context(), r)
		if drover.KindOf(err) != drover.KindInvalid || drover.AsError(err, drover.KindInternal).Hint == "" {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

// TestStartup runs the script that an instance runs at every boot.
// covers K10
func TestStartup(t *testing.T) {
	folder := t.TempDir()
	scripts := []drover.Secret{
		drover.NewSecret("#!/bin/sh\necho 'own: $x \"END\"' >>" + folder + "/log\nexit 3\n"), drover.NewSecret("#!/bin/sh\necho user >>" + folder + "/log\n"),
		drover.NewSecret("#cloud-boothook\n#!/bin/sh\necho boot >>" + folder + "/log\n"),
	}
	for range 2 {
		run := exec.Command("sh", "-c", startup(folder+"/init", scripts))
		if out, err := run.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	out, err := exec.Command("cat", folder+"/log").Output()
	if want := "own: $x \"END\"\nuser\nboot\nboot\n"; string(out) != want || err != nil {
		t.Errorf("%v: %q, want %q", err, out, want)
	}
	if out, _ := exec.Command("ls", folder+"/init").Output(); string(out) != "0.done\n1.done\n" {
		t.Errorf("left: %q", out)
	}
}

// covers C3
func TestLabels(t *testing.T) {
	tags := map[string]string{
		driver.TagFleet: "lab", driver.TagHostKey: "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU", driver.TagPrice: "97000000", driver.TagName: "Lab-1",
		"empty": "", "long": strings.Repeat("é", 100), "marked": "_x_20", "short": strings.Repeat("a", 63),
	}
	written, err := labelsOf(tags)
	drivertest.Must(t, err)
	t.Run("Google accepts every label", func(t *testing.T) {
		for k, v := range written {
			if !labelRules.Key.MatchString(k) || !labelRules.Value.MatchString(v) {
				t.Errorf("%q: %q", k, v)
			}
		}
		if written[driver.TagFleet] != "lab" || written[driver.TagPrice] != "97000000" {
			t.Errorf("a valid value was changed: %v", written)
		}
	})
	t.Run("every label decodes to its tag", func(t *testing.T) {
		if diff := cmp.Diff(tags, labels.Read(written)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("other people's labels are read unchanged", func(t *testing.T) {
		theirs := map[string]string{"a": "_!", "b--2": "c", "c--x": "d", "team--1": "e", "team": "f"}
		got := labels.Read(theirs)
		if got["a"] != "_!" || got["b--2"] != "c" || got["c--x"] != "d" || got["team--1"] != "e" || got["team"] != "f" {
			t.Errorf("%v", got)
		}
	})
	t.Run("tags that cannot be labels are refused", func(t *testing.T) {
		many := map[string]string{}
		for i := range 65 {
			many[fmt.Sprint("k", i)] = "v"
		}
		for _, bad := range []map[string]string{{"A": "b"}, {"a--1": "b"}, {"": "b"}, many} {
			if _, err := labelsOf(bad); drover.KindOf(err) != drover.KindInvalid {
				t.Errorf("%v: %v", bad, err)
			}
		}
	})
}

func TestToken(t *testing.T) {
	c := imitate(t, newFake(), "")
	one, again, other := c.token("one", "insert"), c.token("one", "insert"), c.token("two", "insert")
	if one != again || one == other || !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(one) {
		t.Errorf("%s, %s, %s", one, again, other)
	}
}
