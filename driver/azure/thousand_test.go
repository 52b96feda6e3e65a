package azure

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"drover"
	"drover/driver"
)

// within does what a controller does with a call that its driver refuses for its rate: it makes it again at the time that it was told.
func within(t *testing.T, call func() error) {
	for {
		err := call()
		if err == nil {
			return
		}
		e := drover.AsError(err, drover.KindInternal)
		if e.Kind != drover.KindRateLimit {
			t.Error(err)
			return
		}
		time.Sleep(time.Until(e.RetryAt.Std()))
	}
}

// TestAThousandInstances makes, lists, tags and destroys a thousand instances in a region that holds everybody to the published rates. The
// fake refuses what is beyond them: nothing is.
func TestAThousandInstances(t *testing.T) {
	const n = 1000
	began := time.Now()
	synctest.Test(t, func(t *testing.T) {
		r := newRegion()
		r.throttle, r.makeTime, r.endTime, r.latency, r.pageSize = true, time.Minute, time.Minute, 300*time.Millisecond, 100
		c := imitate(t, r, "public_address: true")
		phase := func(name string, do func()) {
			start, before := time.Now(), maps.Clone(r.calls)
			do()
			var made string
			for _, call := range slices.Sorted(maps.Keys(r.calls)) {
				if more := r.calls[call] - before[call]; more > 0 {
					made += fmt.Sprintf(" %d %s", more, call)
				}
			}
			t.Logf("%-8s %8v:%s", name, time.Since(start).Round(time.Second), made)
		}
		all := map[string]driver.Instance{}
		phase("made", func() {
			together(n, 10, func(i int) {
				within(t, func() error { _, _, err := c.Create(t.Context(), request(fmt.Sprint("one-", i))); return err })
			})
		})
		phase("listed", func() {
			within(t, func() error {
				all = listed(t, c)
				return nil
			})
		})
		if len(all) != n {
			t.Fatalf("%d are listed", len(all))
		}
		ids := slices.Collect(maps.Keys(all))
		phase("tagged", func() {
			together(n, 10, func(i int) {
				within(t, func() error {
					return c.SetTags(t.Context(), ids[i], map[string]string{driver.TagFleet: "fleet", driver.TagIdle: "drain"})
				})
			})
		})
		phase("ended", func() {
			together(n, n, func(i int) { within(t, func() error { return c.Destroy(t.Context(), ids[i]) }) })
		})
		time.Sleep(2 * time.Minute)
		if left := listed(t, c); len(left)+len(r.parts) > 0 {
			t.Errorf("%d are left, and %d parts", len(left), len(r.parts))
		}
		if len(r.refused) > 0 {
			t.Errorf("beyond the published rates: %v", r.refused)
		}
	})
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("in %v of real time, %d MiB from the system, the region included", time.Since(began).Round(time.Millisecond), m.Sys>>20)
}

// together does n things, so many at once.
func together(n, at int, do func(i int)) {
	var all sync.WaitGroup
	turns := make(chan struct{}, at)
	for i := range n {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			do(i)
		})
	}
	all.Wait()
}
