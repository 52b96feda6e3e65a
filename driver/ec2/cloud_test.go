package ec2

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/driver"
	"drover/driver/drivertest"
	"drover/driver/middleware"
)

// imitate opens the fake as a cloud, with this configuration beside the region.
func imitate(t testing.TB, f aws.HTTPClient, keys string) *cloud {
	t.Helper()
	return imitateIn(t, f, keys, t.TempDir())
}

func imitateIn(t testing.TB, f aws.HTTPClient, keys, folder string) *cloud {
	t.Helper()
	c, err := open(t.Context(), options(t, "fleet", keys, folder), f)
	if err != nil {
		t.Fatal(err)
	}
	return c.(*cloud)
}

func options(t testing.TB, fleet, keys, folder string) driver.Options {
	t.Helper()
	isolate(t)
	return drivertest.Options(t, "aws", "ec2", fleet, "region: us-east-1, "+keys, folder)
}

// isolate sees to it that nobody's credentials are used.
func isolate(t testing.TB) {
	none := t.TempDir() + "/none"
	for k, v := range map[string]string{
		"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_SESSION_TOKEN": "", "AWS_PROFILE": "", "AWS_REGION": "",
		"AWS_CONFIG_FILE": none, "AWS_SHARED_CREDENTIALS_FILE": none, "AWS_EC2_METADATA_DISABLED": "true", "AWS_ENDPOINT_URL": "", "AWS_CA_BUNDLE": "",
	} {
		t.Setenv(k, v)
	}
}

// request asks for one instance of the first type, on demand, unless candidates are given.
func request(name string, candidates ...driver.Candidate) driver.CreateRequest {
	if len(candidates) == 0 {
		candidates = []driver.Candidate{{ProviderType: "m7i.large", Zone: "us-east-1a", Market: drover.OnDemand, Arch: "amd64"}}
	}
	for i := range candidates {
		candidates[i].Image = "ami-debian"
	}
	return driver.CreateRequest{
		Name: name, Candidates: candidates, Tags: map[string]string{driver.TagFleet: "fleet", driver.TagName: name},
		HostKey: drover.NewSecret("-----BEGIN KEY-----\nhost\n-----END KEY-----\n"), PublicKey: "ssh-ed25519 AAAA fleet", Init: drover.NewSecret("#!/bin/sh\ntrue\n"),
	}
}

func candidate(kind, zone string, m drover.Market) driver.Candidate {
	return driver.Candidate{ProviderType: kind, Zone: zone, Market: m}
}

func create(t testing.TB, c *cloud, r driver.CreateRequest) (driver.Instance, driver.Candidate) {
	t.Helper()
	in, taken, err := c.Create(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return in, taken
}

// listed are the instances in the list, of which each is described in the same way.
func listed(t testing.TB, c *cloud) map[string]driver.Instance {
	t.Helper()
	found, err := c.List(t.Context(), map[string]string{driver.TagFleet: "fleet"})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]driver.Instance{}
	for _, in := range found {
		if described, err := c.Describe(t.Context(), in.ID); err != nil || !cmp.Equal(in, described) {
			t.Errorf("listed %+v, described %+v, %v", in, described, err)
		}
		all[in.ID] = in
	}
	return all
}

// TestConformance runs the suite against the fake, over a real connection, with pages of two and answers that are behind.
// covers C1 C2 C3 C11
func TestConformance(t *testing.T) {
	f := newFake()
	f.pageSize, f.lag, f.bootTime = 2, 20*time.Millisecond, 20*time.Millisecond
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	folder := t.TempDir()
	isolate(t)
	drivertest.Run(t, drivertest.Harness{
		Open: func(ctx context.Context, fleet string) (driver.Cloud, error) {
			c, err := open(ctx, options(t, fleet, "endpoint: '"+server.URL+"'", folder), nil)
			if err != nil {
				return nil, err
			}
			return middleware.WithImages(c, map[drover.Arch]string{"": "debian-12-*"}), nil
		},
		Fleet: "check", Patience: 10 * time.Second, NoLogin: true,
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, m := range f.machines {
		if m.ended.IsZero() {
			t.Errorf("instance %s is left over", id)
		}
	}
}

// covers C2
func TestNode(t *testing.T) {
	drivertest.Node(t, imitate(t, newFake(), ""), driver.Instance{ID: "i-1", Zone: "us-east-1a"}, "aws:///us-east-1a/i-1")
}
