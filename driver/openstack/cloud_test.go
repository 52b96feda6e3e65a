package openstack

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"drover"
	"drover/driver"
	"drover/driver/drivertest"
)

// debian is an image's id.
const debian = "22222222-2222-2222-2222-222222222222"

// imitate opens the fake as a cloud with this configuration.
func imitate(t testing.TB, f http.RoundTripper, keys string) *cloud {
	t.Helper()
	return imitateIn(t, f, keys, t.TempDir())
}

func imitateIn(t testing.TB, f http.RoundTripper, keys, folder string) *cloud {
	t.Helper()
	isolate(t, "http://fake")
	c, err := open(options(t, "fleet", keys, folder), f)
	drivertest.Must(t, err)
	return c.(*cloud)
}

func options(t testing.TB, fleet, keys, folder string) driver.Options {
	t.Helper()
	return drivertest.Options(t, "os", "openstack", fleet, keys, folder)
}

// isolate ensures that only the credentials of the cloud at this address are used.
func isolate(t testing.TB, url string) {
	for _, unset := range variables {
		t.Setenv(unset, "")
	}
	for k, v := range map[string]string{
		"OS_CLOUD": "", "OS_CLIENT_CONFIG_FILE": t.TempDir() + "/none.yaml", "OS_REGION_NAME": "", "OS_INTERFACE": "", "OS_CACERT": "", "OS_CERT": "", "OS_KEY": "",
		"OS_AUTH_URL": url + "/identity/v3", "OS_USERNAME": "drover", "OS_PASSWORD": "secret", "OS_PROJECT_NAME": "lab",
		"OS_USER_DOMAIN_NAME": "Default", "OS_PROJECT_DOMAIN_ID": "default",
	} {
		t.Setenv(k, v)
	}
}

// request requests one instance of the smallest flavor, unless candidates are given.
func request(name string, candidates ...driver.Candidate) driver.CreateRequest {
	if len(candidates) == 0 {
		candidates = []driver.Candidate{candidate("m1.small", "nova")}
	}
	return drivertest.Request(name, debian, candidates...)
}

func candidate(flavor, zone string) driver.Candidate {
	return driver.Candidate{ProviderType: flavor, Zone: zone, Market: drover.OnDemand}
}

// TestConformance runs the suite against the fake, over a real connection, with pages of two, with the newest and the
// oldest version, and with instances that boot from volumes.
// covers C1 C2 C11
func TestConformance(t *testing.T) {
	for _, tt := range []struct {
		name, keys string
		newest     int
	}{{"2.96", "", 96}, {"2.96 with volumes", "boot_from: volume", 96}, {"without microversions", "", 0}} {
		t.Run("Nova "+tt.name, func(t *testing.T) {
			f := newFake()
			f.newest, f.pageSize, f.buildTime, f.endTime = tt.newest, 2, 20*time.Millisecond, 10*time.Millisecond
			f.instances, f.cores = 50, 50
			server := httptest.NewServer(f)
			t.Cleanup(server.Close)
			isolate(t, server.URL)
			folder := t.TempDir()
			drivertest.Run(t, drivertest.Harness{
				Open: func(ctx context.Context, fleet string) (driver.Cloud, error) {
					return Open(ctx, options(t, fleet, tt.keys, folder))
				},
				Images: map[drover.Arch]string{"": "debian-12-*"},
				Fleet:  "check", Patience: 10 * time.Second, Many: 5, NoLogin: true,
			})
			for id, s := range f.servers {
				if s.ended.IsZero() {
					t.Errorf("instance %s is left over", id)
				}
			}
		})
	}
}

// covers C2
func TestNode(t *testing.T) {
	drivertest.Node(t, imitate(t, newFake(), ""), driver.Instance{ID: "9d0e3f5c", Zone: "nova"}, "openstack:///9d0e3f5c")
}
