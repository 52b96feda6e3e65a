package openstack

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

// TestAThousandInstances makes, lists, tags and destroys a thousand instances, and counts.
func TestAThousandInstances(t *testing.T) {
	const n = 1000
	began := time.Now()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.instances, f.cores, f.latency, f.buildTime, f.endTime, f.tokenTime = n, n, 300*time.Millisecond, time.Minute, 5*time.Second, time.Hour
		c := imitate(t, f, "")
		phase := func(name string, do func()) {
			start, before := time.Now(), maps.Clone(f.calls)
			do()
			var made string
			for _, call := range slices.Sorted(maps.Keys(f.calls)) {
				if more := f.calls[call] - before[call]; more > 0 {
					made += fmt.Sprintf(" %d %s,", more, call)
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
		time.Sleep(time.Minute)
		phase("listed", func() { all = listed(t, c) })
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
			together(n, 50, func(i int) { within(t, func() error { return c.Destroy(t.Context(), ids[i]) }) })
		})
		if f.calls["POST servers"] != n || f.calls["DELETE servers"] != n || f.calls["PUT servers/metadata"] != n || f.calls["POST auth/tokens"] != 1 {
			t.Errorf("%v", f.calls)
		}
		time.Sleep(time.Minute)
		if left := listed(t, c); len(left) > 0 {
			t.Errorf("%d are left", len(left))
		}
	})
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("in %v of real time, %d MiB from the system, the cloud included", time.Since(began).Round(time.Millisecond), m.Sys>>20)
}

// TestACloudThatIsAskedTooOften holds everybody to so many calls a second, as what stands before a cloud may do: none is made again before the
// time that it named.
func TestACloudThatIsAskedTooOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.instances, f.cores = 100, 100
		var last time.Time
		early := 0
		f.broken["POST servers"] = func() *answer {
			now := time.Now()
			if wait := 2*time.Second - now.Sub(last); wait > 0 {
				early++
				return &answer{status: 429, header: map[string][]string{"Retry-After": {fmt.Sprint(int(wait.Seconds()) + 1)}}}
			}
			last = now
			return nil
		}
		c := imitate(t, f, "")
		for i := range 20 {
			within(t, func() error { _, _, err := c.Create(t.Context(), request(fmt.Sprint("one-", i))); return err })
		}
		if len(f.servers) != 20 || early != 19 {
			t.Errorf("%d servers, %d calls too early", len(f.servers), early)
		}
	})
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
