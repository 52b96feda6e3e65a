package gce

import (
	"testing"
	"time"

	"drover/driver"
	"drover/driver/drivertest"
)

func TestAThousandInstances(t *testing.T) {
	f := newFake()
	drivertest.Thousand(t, func(t *testing.T) drivertest.Crowded {
		f.throttle, f.bootTime, f.latency, f.opTime, f.pageSize = true, time.Minute, 300*time.Millisecond, 5*time.Second, 500
		return drivertest.Crowded{
			Cloud: imitate(t, f, ""), Request: func(name string) driver.CreateRequest { return requestFor(name) },
			Calls: f.calls, Refused: f.refused, AtOnce: 50, Destroys: 50,
		}
	})
}
