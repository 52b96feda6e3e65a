package openstack

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"drover"
	"drover/driver"
	"drover/driver/drivertest"
)

func TestAThousandInstances(t *testing.T) {
	const most = 1000
	f := newFake()
	n := drivertest.Thousand(t, func(t *testing.T) drivertest.Crowded {
		f.instances, f.cores, f.latency, f.buildTime, f.endTime, f.tokenTime = most, most, 300*time.Millisecond, time.Minute, 5*time.Second, time.Hour
		return drivertest.Crowded{
			Cloud: imitate(t, f, ""), Request: func(name string) driver.CreateRequest { return request(name) },
			Calls: f.calls, AtOnce: 10, Destroys: 50, Boot: time.Minute,
		}
	})
	if f.calls["POST servers"] != n || f.calls["DELETE servers"] != n || f.calls["PUT servers/metadata"] != n || f.calls["POST auth/tokens"] != 1 {
		t.Errorf("%v", f.calls)
	}
}

// TestRateLimit makes the cloud refuse create calls that come too soon, as a proxy in front of a cloud may: the driver
// reports when the next call may be made, and does not retry.
func TestRateLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		var last time.Time
		f.broken["POST servers"] = func() *answer {
			if wait := 2*time.Second - time.Since(last); wait > 0 {
				return &answer{status: 429, header: map[string][]string{"Retry-After": {fmt.Sprint(int(wait.Seconds()) + 1)}}}
			}
			last = time.Now()
			return nil
		}
		c := imitate(t, f, "")
		for i := range 5 {
			r := request(fmt.Sprint("one-", i))
			_, _, err := c.Create(t.Context(), r)
			for err != nil && drover.KindOf(err) == drover.KindRateLimit {
				time.Sleep(time.Until(drover.AsError(err, "").RetryAt.Std()))
				_, _, err = c.Create(t.Context(), r)
			}
			drivertest.Must(t, err)
		}
		if len(f.servers) != 5 || f.calls["POST servers"] != 9 {
			t.Errorf("%d servers after %d calls", len(f.servers), f.calls["POST servers"])
		}
	})
}

// covers L18
func TestNoCallIsRetried(t *testing.T) {
	drivertest.Once(t, newFake(), request("one"), func(t *testing.T, n *drivertest.Network) driver.Cloud { return imitate(t, n, "") })
}
