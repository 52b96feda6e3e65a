package ec2

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"drover"
	"drover/driver"
	"drover/driver/drivertest"
)

// imitate opens the fake as a cloud, with these configuration keys in addition to the region.
func imitate(t testing.TB, f aws.HTTPClient, keys string) *cloud {
	t.Helper()
	return imitateIn(t, f, keys, t.TempDir())
}

func imitateIn(t testing.TB, f aws.HTTPClient, keys, folder string) *cloud {
	t.Helper()
	c, err := open(t.Context(), options(t, "fleet", keys, folder), f)
	drivertest.Must(t, err)
	return c.(*cloud)
}

func options(t testing.TB, fleet, keys, folder string) driver.Options {
	t.Helper()
	isolate(t)
	return drivertest.Options(t, "aws", "ec2", fleet, "region: us-east-1, "+keys, folder)
}

// isolate ensures that no real credentials are used.
func isolate(t testing.TB) {
	none := t.TempDir() + "/none"
	for k, v := range map[string]string{
		"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_SESSION_TOKEN": "", "AWS_PROFILE": "", "AWS_REGION": "",
		"AWS_CONFIG_FILE": none, "AWS_SHARED_CREDENTIALS_FILE": none, "AWS_EC2_METADATA_DISABLED": "true", "AWS_ENDPOINT_URL": "", "AWS_CA_BUNDLE": "",
	} {
		t.Setenv(k, v)
	}
}

// request requests one on-demand instance of the first type, unless candidates are given.
func request(name string, candidates ...driver.Candidate) driver.CreateRequest {
	if len(candidates) == 0 {
		candidates = []driver.Candidate{{ProviderType: "m7i.large", Zone: "us-east-1a", Market: drover.OnDemand, Arch: "amd64"}}
	}
	return drivertest.Request(name, "ami-debian", candidates...)
}

func candidate(kind, zone string, m drover.Market) driver.Candidate {
	return driver.Candidate{ProviderType: kind, Zone: zone, Market: m}
}

// TestConformance runs the suite against the fake, over a real connection, with pages of two and answers that lag.
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
			return open(ctx, options(t, fleet, "endpoint: '"+server.URL+"'", folder), nil)
		},
		Images: map[drover.Arch]string{"": "debian-12-*"},
		Fleet:  "check", Patience: 10 * time.Second, NoLogin: true,
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, m := range f.instances {
		if m.ended.IsZero() {
			t.Errorf("instance %s is left over", id)
		}
	}
}

// covers C2
func TestNode(t *testing.T) {
	drivertest.Node(t, imitate(t, newFake(), ""), driver.Instance{ID: "i-1", Zone: "us-east-1a"}, "aws:///us-east-1a/i-1")
}
