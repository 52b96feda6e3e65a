package ec2

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/driver"
	"drover/driver/drivertest"
	"drover/driver/kit"
)

// covers C4
func TestCreate(t *testing.T) {
	spotA, spotB := candidate("m7i.large", "us-east-1a", drover.Spot), candidate("m7g.large", "us-east-1b", drover.Spot)
	demand := candidate("m7i.large", "us-east-1b", drover.OnDemand)

	t.Run("takes the first available candidate, in one call", func(t *testing.T) {
		f := newFake()
		f.out["m7i.large us-east-1a spot"] = "InsufficientInstanceCapacity"
		in, taken := drivertest.Create(t, imitate(t, f, ""), request("one", spotA, spotB, demand))
		if !taken.Same(spotB) || in.ProviderType != "m7g.large" || in.Zone != "us-east-1b" || in.Market != drover.Spot || in.State != driver.Pending || f.calls["CreateFleet"] != 1 {
			t.Errorf("took %+v in %d calls: %+v", taken, f.calls["CreateFleet"], in)
		}
	})
	t.Run("tries another market if the first has no capacity", func(t *testing.T) {
		f := newFake()
		f.out["  spot"] = "UnfulfillableCapacity"
		_, taken := drivertest.Create(t, imitate(t, f, ""), request("one", spotA, spotB, demand))
		if !taken.Same(demand) || f.calls["CreateFleet"] != 2 {
			t.Errorf("took %+v in %d calls", taken, f.calls["CreateFleet"])
		}
	})
	t.Run("a refusal names the offering and its market", func(t *testing.T) {
		for _, tt := range []struct {
			name       string
			out        map[string]string
			vcpus      map[string]int
			candidates []driver.Candidate
			want       drover.Error
		}{
			{"capacity", map[string]string{"m7i.large  ": "InsufficientInstanceCapacity"}, nil, []driver.Candidate{spotA},
				drover.Error{Kind: drover.KindCapacity, Scope: drover.ScopeType, Market: drover.Spot}},
			{"a spot quota", nil, map[string]int{"L-34B43A08": 1}, []driver.Candidate{spotA, spotB},
				drover.Error{Kind: drover.KindQuota, Scope: drover.ScopeQuotaGroup, Market: drover.Spot}},
			{"an on-demand quota", nil, map[string]int{"L-1216C47A": 1}, []driver.Candidate{demand},
				drover.Error{Kind: drover.KindQuota, Scope: drover.ScopeQuotaGroup, Market: drover.OnDemand}},
			{"a full subnet", map[string]string{" us-east-1a ": "InsufficientFreeAddressesInSubnet"}, nil, []driver.Candidate{spotA},
				drover.Error{Kind: drover.KindCapacity, Scope: drover.ScopeSubnet}},
			{"capacity in one market and quota in the other", map[string]string{"  spot": "UnfulfillableCapacity"}, map[string]int{"L-1216C47A": 1}, []driver.Candidate{spotA, demand},
				drover.Error{Kind: drover.KindCapacity, Scope: drover.ScopeType}},
			{"a type that the zone does not have", map[string]string{"m7i.large us-east-1a ": "Unsupported"}, nil, []driver.Candidate{spotA},
				drover.Error{Kind: drover.KindUnsupported}},
		} {
			f := newFake()
			f.out = tt.out
			if tt.vcpus != nil {
				f.vcpus = tt.vcpus
			}
			t.Log(tt.name)
			drivertest.RefusedAs(t, imitate(t, f, ""), request("one", slices.Clone(tt.candidates)...), tt.want)
		}
	})
	t.Run("vCPUs returned to a quota can be used again", func(t *testing.T) {
		f := newFake()
		f.vcpus["L-34B43A08"] = 2
		drivertest.FreesQuota(t, imitate(t, f, ""), request, spotA)
	})
	t.Run("a repeated name with other candidates returns the existing instance", func(t *testing.T) {
		f := newFake()
		c := imitate(t, f, "")
		first, _ := drivertest.Create(t, c, request("one", spotA))
		again, taken := drivertest.Create(t, c, request("one", demand))
		if again.ID != first.ID || !taken.Same(spotA) {
			t.Errorf("got %+v, %+v", again, taken)
		}
	})
	t.Run("a repeated name is a transient error while the instance is not listed", func(t *testing.T) {
		f := newFake()
		f.lag = 1 << 40
		c := imitate(t, f, "")
		drivertest.Create(t, c, request("one", spotA))
		drivertest.RefusedAs(t, c, request("one", demand), drover.Error{Kind: drover.KindTransient})
	})
	for what, remove := range map[string]func(*fake){
		"a launch template": func(f *fake) { clear(f.templates) },
		"a key pair":        func(f *fake) { clear(f.keys) },
	} {
		t.Run(what+" that somebody deleted is made again", func(t *testing.T) {
			f := newFake()
			c := imitate(t, f, "")
			drivertest.Create(t, c, request("one"))
			remove(f)
			drivertest.RefusedAs(t, c, request("two"), drover.Error{Kind: drover.KindTransient})
			drivertest.Create(t, c, request("two"))
		})
	}
	t.Run("a configured key pair that does not exist is a wrong value", func(t *testing.T) {
		drivertest.RefusedAs(t, imitate(t, newFake(), "key_pair: mine"), request("one"), drover.Error{Kind: drover.KindInvalid})
	})
	t.Run("a name whose instance EC2 could not create for a moment can be created later", func(t *testing.T) {
		for code, want := range map[string]drover.ErrorKind{"InternalError": drover.KindTransient, "RequestLimitExceeded": drover.KindRateLimit} {
			f := newFake()
			c := imitate(t, f, "")
			f.out["m7i.large us-east-1a spot"], f.out["m7g.large us-east-1b spot"] = code, "InsufficientInstanceCapacity"
			_, _, err := c.Create(t.Context(), request("one", spotA, spotB))
			if drover.KindOf(err) != want {
				t.Errorf("%s: %v", code, err)
			}
			clear(f.out)
			first, _ := drivertest.Create(t, c, request("one", spotA, spotB))
			if again, _ := drivertest.Create(t, c, request("one", spotA, spotB)); again.ID != first.ID || len(f.instances) != 1 {
				t.Errorf("%s: %d instances", code, len(f.instances))
			}
		}
	})
	t.Run("an impossible request is refused before anything is created", func(t *testing.T) {
		f := newFake()
		nowhere := request("one", candidate("m7i.large", "us-east-1f", drover.Spot))
		misspelt, forbidden, unknownImage := request("one"), request("one"), request("one")
		misspelt.Template, forbidden.Template = `{"EbsOptimised": true}`, `{"UserData": "x"}`
		unknownImage.Candidates[0].Image = "ami-nobody"
		drivertest.Impossible(t, imitate(t, f, ""), request, maxUserData, request("a b"), nowhere, misspelt, forbidden, unknownImage)
		if len(f.instances)+f.calls["CreateFleet"] > 0 {
			t.Errorf("%d calls", f.calls["CreateFleet"])
		}
	})
	t.Run("a call refused for its rate or its credentials is reported as such", func(t *testing.T) {
		for code, want := range map[string]drover.ErrorKind{"RequestLimitExceeded": drover.KindRateLimit, "UnauthorizedOperation": drover.KindAuthentication, "InternalError": drover.KindTransient} {
			f := newFake()
			f.broken["CreateFleet"] = code
			got := drivertest.Refused(t, imitate(t, f, ""), request("one"))
			if got.Kind != want || f.calls["CreateFleet"] != 1 || want == drover.KindRateLimit && got.RetryAt == 0 {
				t.Errorf("%s in %d calls: %+v", code, f.calls["CreateFleet"], got)
			}
		}
	})
}

// only returns the data of the only launch template, and the override and the call that created the only instance.
func only(t *testing.T, f *fake) (template, override, launch url.Values) {
	t.Helper()
	if len(f.templates) != 1 || len(f.instances) != 1 {
		t.Fatalf("%d templates, %d instances", len(f.templates), len(f.instances))
	}
	for _, in := range f.templates {
		template = under(in, "LaunchTemplateData")
	}
	for _, m := range f.instances {
		override, launch = m.override, m.launch
	}
	return template, override, launch
}

// want compares some values of a call.
func want(t *testing.T, got url.Values, want map[string]string) {
	t.Helper()
	for k, v := range want {
		if got.Get(k) != v {
			t.Errorf("%s is %q, want %q", k, got.Get(k), v)
		}
	}
}

// covers C7
func TestRequestedInstance(t *testing.T) {
	t.Run("by default, metadata needs a token, power-off terminates the instance, and volumes are encrypted and tagged", func(t *testing.T) {
		f := newFake()
		r := request("one")
		r.Disk = 30*drover.GiB + 1
		drivertest.Create(t, imitate(t, f, ""), r)
		template, override, launch := only(t, f)
		want(t, template, map[string]string{"MetadataOptions.HttpTokens": "required", "MetadataOptions.HttpPutResponseHopLimit": "1", "InstanceInitiatedShutdownBehavior": "terminate"})
		want(t, override, map[string]string{"ImageId": "ami-debian", "BlockDeviceMapping.1.DeviceName": "/dev/xvda", "BlockDeviceMapping.1.Ebs.VolumeSize": "31",
			"BlockDeviceMapping.1.Ebs.Encrypted": "true", "BlockDeviceMapping.1.Ebs.DeleteOnTermination": "true", "BlockDeviceMapping.1.Ebs.VolumeType": "gp3"})
		for _, resource := range []string{"instance", "volume"} {
			tags := tagsIn(launch, resource)
			delete(tags, "aws:ec2:fleet-id")
			if diff := cmp.Diff(map[string]string{"Name": "one", driver.TagFleet: "fleet", driver.TagName: "one"}, tags); diff != "" {
				t.Error(resource, diff)
			}
		}
		text, err := base64.StdEncoding.DecodeString(launch.Get("LaunchTemplateConfigs.1.LaunchTemplateSpecification.LaunchTemplateSpecificationUserData"))
		if err != nil || string(text) != kit.UserData(r).Reveal() {
			t.Errorf("%v: %s", err, text)
		}
		if len(f.keys) != 1 || template.Get("KeyName") == "" || f.keys[template.Get("KeyName")][driver.TagFleet] != "fleet" {
			t.Errorf("key pairs: %v", f.keys)
		}
	})
	t.Run("the root volume is never smaller than the image", func(t *testing.T) {
		f := newFake()
		r := request("one")
		r.Disk = drover.GiB
		drivertest.Create(t, imitate(t, f, ""), r)
		_, override, _ := only(t, f)
		want(t, override, map[string]string{"BlockDeviceMapping.1.Ebs.VolumeSize": "8"})
	})
	t.Run("follows the configuration and the template", func(t *testing.T) {
		f := newFake()
		f.keys["mine"] = map[string]string{}
		c := imitate(t, f, `subnets: [subnet-us-east-1a], security_groups: [sg-1, sg-2], public_address: false, instance_profile: worker, key_pair: mine, metadata_hops: 2,
			placement: {group: near}, volume: {type: io2, iops: 500, encrypted: false}, volumes: [{device: /dev/sdf, size: 100Gi, throughput: 200, kms_key: k}], tags: {team: a}, spot_allocation: lowest-price`)
		r := request("one", candidate("m7i.large", "us-east-1a", drover.Spot))
		r.Template = `{"EbsOptimized": true, "MetadataOptions": {"InstanceMetadataTags": "enabled", "HttpTokens": "optional"}, "InstanceInitiatedShutdownBehavior": "stop", "DisableApiTermination": true}`
		drivertest.Create(t, c, r)
		template, override, launch := only(t, f)
		want(t, template, map[string]string{"KeyName": "mine", "IamInstanceProfile.Name": "worker", "Placement.GroupName": "near", "NetworkInterface.1.SecurityGroupId.2": "sg-2",
			"NetworkInterface.1.AssociatePublicIpAddress": "false", "EbsOptimized": "true", "MetadataOptions.InstanceMetadataTags": "enabled",
			"MetadataOptions.HttpTokens": "required", "InstanceInitiatedShutdownBehavior": "terminate", "DisableApiTermination": ""})
		want(t, override, map[string]string{"BlockDeviceMapping.1.Ebs.VolumeType": "io2", "BlockDeviceMapping.1.Ebs.Iops": "500", "BlockDeviceMapping.1.Ebs.Encrypted": "false",
			"BlockDeviceMapping.2.DeviceName": "/dev/sdf", "BlockDeviceMapping.2.Ebs.VolumeSize": "100", "BlockDeviceMapping.2.Ebs.Encrypted": "true", "BlockDeviceMapping.2.Ebs.KmsKeyId": "k"})
		want(t, launch, map[string]string{"SpotOptions.AllocationStrategy": "lowest-price", "SpotOptions.InstanceInterruptionBehavior": "terminate"})
		if tagsIn(launch, "volume")["team"] != "a" || len(f.keys) != 1 {
			t.Errorf("tags %v, key pairs %v", tagsIn(launch, "volume"), f.keys)
		}
	})
	t.Run("shared resources are created once, even by concurrent calls and another controller", func(t *testing.T) {
		f := newFake()
		c, other := imitate(t, f, ""), imitate(t, f, "")
		done := make(chan error)
		for i := range 8 {
			go func() {
				_, _, err := c.Create(t.Context(), request(fmt.Sprint("one-", i)))
				done <- err
			}()
		}
		for range 8 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		drivertest.Create(t, other, request("two"))
		if len(f.templates) != 1 || len(f.keys) != 1 || f.calls["CreateLaunchTemplate"] != 2 || len(f.instances) != 9 {
			t.Errorf("%d templates, %d keys, %d instances, calls %v", len(f.templates), len(f.keys), len(f.instances), f.calls)
		}
	})
}
