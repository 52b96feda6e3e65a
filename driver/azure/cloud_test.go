package azure

import (
	"context"
	"testing"
	"time"

	azfake "github.com/Azure/azure-sdk-for-go/sdk/azcore/fake"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"drover"
	"drover/driver"
	"drover/driver/drivertest"
)

const (
	place = "subscription: sub, location: westeurope, resource_group: group, subnet: net/default"
	image = "Debian:debian-12:12-gen2:latest"
)

// imitate opens the region as a cloud, with these configuration keys in addition to the place.
func imitate(t testing.TB, r policy.Transporter, keys string) *cloud {
	t.Helper()
	return imitateIn(t, r, keys, t.TempDir())
}

func imitateIn(t testing.TB, r policy.Transporter, keys, folder string) *cloud {
	t.Helper()
	c, err := open(t.Context(), options(t, "fleet", keys, folder), outside{r, &azfake.TokenCredential{}})
	drivertest.Must(t, err)
	return c.(*cloud)
}

func options(t testing.TB, fleet, keys, folder string) driver.Options {
	t.Helper()
	t.Setenv("AZURE_SUBSCRIPTION_ID", "")
	t.Setenv("AZURE_CONFIG_DIR", folder)
	return drivertest.Options(t, "azure", "azure", fleet, place+", "+keys, folder)
}

// request returns a request for one instance of the first type, on demand, unless candidates are given.
func request(name string, candidates ...driver.Candidate) driver.CreateRequest {
	if len(candidates) == 0 {
		candidates = []driver.Candidate{candidate("Standard_D2s_v5", "westeurope-1", drover.OnDemand)}
	}
	return drivertest.Request(name, image, candidates...)
}

func candidate(kind, zone string, m drover.Market) driver.Candidate {
	return driver.Candidate{ProviderType: kind, Zone: zone, Market: m}
}

// TestConformance runs the suite against a region in memory, with pages of two and answers that lag.
// covers C1 C2 C3 L30
func TestConformance(t *testing.T) {
	r := newRegion()
	r.pageSize, r.lag, r.makeTime, r.endTime = 2, 20*time.Millisecond, 20*time.Millisecond, 20*time.Millisecond
	folder := t.TempDir()
	drivertest.Run(t, drivertest.Harness{
		Open: func(ctx context.Context, fleet string) (driver.Cloud, error) {
			return open(ctx, options(t, fleet, "public_address: true, volumes: [{size: 10Gi}]", folder), outside{r, &azfake.TokenCredential{}})
		},
		Images: map[drover.Arch]string{"": image},
		Fleet:  "check", Patience: 10 * time.Second, NoLogin: true, Many: 5,
	})
	time.Sleep(r.endTime)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settle()
	if len(r.vms)+len(r.parts) > 0 {
		t.Errorf("left over: %v %v", r.vms, r.parts)
	}
}

// covers C2
func TestNode(t *testing.T) {
	drivertest.Node(t, imitate(t, newRegion(), ""), driver.Instance{ID: "lab-1", Zone: "westeurope-1"}, "azure:///subscriptions/sub/resourceGroups/group/providers/Microsoft.Compute/virtualMachines/lab-1")
}
