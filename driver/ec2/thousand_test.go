package ec2

import (
	"testing"
	"time"

	"drover/driver"
	"drover/driver/drivertest"
)

func TestAThousandInstances(t *testing.T) {
	f := newFake()
	drivertest.Thousand(t, func(t *testing.T) drivertest.Crowded {
		f.throttle, f.bootTime, f.latency = true, time.Minute, 300*time.Millisecond
		return drivertest.Crowded{
			Cloud: imitate(t, f, ""), Request: func(name string) driver.CreateRequest { return request(name) },
			Calls: f.calls, Refused: f.refused, AtOnce: 10, Destroys: 1000,
		}
	})
	if f.calls["TerminateInstances"] > 3 {
		t.Errorf("%d calls to destroy the instances, want at most 3", f.calls["TerminateInstances"])
	}
}

// covers L18
func TestNoCallIsRetried(t *testing.T) {
	drivertest.Once(t, newFake(), request("one"), func(t *testing.T, n *drivertest.Network) driver.Cloud { return imitate(t, n, "") })
}
