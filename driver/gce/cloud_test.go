package gce

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"drover"
	"drover/driver"
	"drover/driver/drivertest"
)

const debian = "projects/debian-cloud/global/images/debian-12-bookworm-v20260201"

// imitate opens the fake as a cloud, with these configuration keys in addition to the region.
func imitate(t testing.TB, f http.RoundTripper, keys string) *cloud {
	t.Helper()
	return imitateIn(t, f, keys, t.TempDir())
}

func imitateIn(t testing.TB, f http.RoundTripper, keys, folder string) *cloud {
	t.Helper()
	c, err := open(t.Context(), options(t, "fleet", keys, folder), f)
	drivertest.Must(t, err)
	return c.(*cloud)
}

func options(t testing.TB, fleet, keys, folder string) driver.Options {
	t.Helper()
	t.Setenv("GOOGLE_CLOUD_PROJECT", "")
	return drivertest.Options(t, "google", "gce", fleet, "project: lab-1, region: us-central1, "+keys, folder)
}

// requestFor requests one on-demand instance of the first type, unless candidates are given.
func requestFor(name string, candidates ...driver.Candidate) driver.CreateRequest {
	if len(candidates) == 0 {
		candidates = []driver.Candidate{candidate("n2-standard-2", "us-central1-a", drover.OnDemand)}
	}
	return drivertest.Request(name, debian, candidates...)
}

func candidate(kind, zone string, m drover.Market) driver.Candidate {
	return driver.Candidate{ProviderType: kind, Zone: zone, Market: m, Arch: "amd64"}
}

// redirected sends every request to one server.
type redirected struct{ to *url.URL }

func (r redirected) RoundTrip(in *http.Request) (*http.Response, error) {
	out := in.Clone(in.Context())
	out.URL.Scheme, out.URL.Host = r.to.Scheme, r.to.Host
	return http.DefaultTransport.RoundTrip(out)
}

// TestConformance runs the suite against the fake, over a real connection, with pages of two and answers that lag.
// covers C1 C2 C3 C11
func TestConformance(t *testing.T) {
	f := newFake()
	f.pageSize, f.lag, f.bootTime, f.opTime = 2, 20*time.Millisecond, 20*time.Millisecond, 5*time.Millisecond
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	to, err := url.Parse(server.URL)
	drivertest.Must(t, err)
	folder := t.TempDir()
	o := options(t, "", "", folder)
	drivertest.Run(t, drivertest.Harness{
		Open: func(ctx context.Context, fleet string) (driver.Cloud, error) {
			o := o
			o.Fleet = fleet
			return open(ctx, o, redirected{to})
		},
		Images: map[drover.Arch]string{"": "debian-cloud/family/debian-12", "arm64": "debian-cloud/family/debian-12-arm64"},
		Fleet:  "check", Patience: 10 * time.Second, NoLogin: true, Many: 5,
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, h := range f.instances {
		if h.ended.IsZero() {
			t.Errorf("instance %s is left over", id)
		}
	}
}

// covers C2
func TestNode(t *testing.T) {
	drivertest.Node(t, imitate(t, newFake(), ""), driver.Instance{ID: "us-central1-a/lab-1", Zone: "us-central1-a"}, "gce://lab-1/us-central1-a/lab-1")
}
