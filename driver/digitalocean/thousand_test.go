package digitalocean

import (
	"testing"
	"time"

	"drover/driver/drivertest"
)

func TestAThousandInstances(t *testing.T) {
	f := newFake(t)
	o := options(t, "token: '${env:FAKE}'", "fleet")
	drivertest.Thousand(t, func(t *testing.T) drivertest.Crowded {
		f.throttle, f.latency, f.pageSize = true, 300*time.Millisecond, perPage
		c, err := open(o, f)
		drivertest.Must(t, err)
		return drivertest.Crowded{Cloud: c, Request: request, Calls: f.calls, Refused: f.refused, AtOnce: 10, Destroys: 50}
	})
	if len(f.tags) > 2 {
		t.Errorf("%d tags are left", len(f.tags))
	}
}
