package azure

import (
	"testing"
	"time"

	"drover/driver"
	"drover/driver/drivertest"
)

func TestAThousandInstances(t *testing.T) {
	r := newRegion()
	drivertest.Thousand(t, func(t *testing.T) drivertest.Crowded {
		r.throttle, r.makeTime, r.endTime, r.latency, r.pageSize = true, time.Minute, time.Minute, 300*time.Millisecond, 100
		return drivertest.Crowded{
			Cloud: imitate(t, r, "public_address: true"), Request: func(name string) driver.CreateRequest { return request(name) },
			Calls: r.calls, Refused: r.refused, AtOnce: 10, Destroys: 1000,
		}
	})
	if len(r.parts) > 0 {
		t.Errorf("%d parts are left", len(r.parts))
	}
}

// covers L18
func TestNoCallIsRetried(t *testing.T) {
	drivertest.Once(t, newRegion(), request("one"), func(t *testing.T, n *drivertest.Network) driver.Cloud { return imitate(t, n, "") })
}
