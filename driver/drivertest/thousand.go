package drivertest

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"drover"
	"drover/driver"
	"drover/driver/middleware"
)

// Crowded is a fake of a cloud that counts its calls and enforces the rates that the real one publishes.
type Crowded struct {
	Cloud    driver.Cloud
	Request  func(name string) driver.CreateRequest // its tags name the fleet
	Calls    map[string]int                         // how often each was made, counted by the fake
	Refused  map[string]int                         // how often each was made beyond the rates, counted by the fake
	AtOnce   int                                    // how many creates, or taggings, run at once
	Destroys int                                    // how many destroys run at once
	Boot     time.Duration                          // until an instance can be tagged
}

// Thousand creates, lists, tags and destroys a thousand instances. Like a controller, it repeats each call when its
// driver says so. It logs the calls and the time of each phase and returns the number of instances. The test passes if
// all were created and destroyed, and no call exceeded the rates. The fake is opened in a bubble of synctest: its times
// are modelled. In short mode there are a hundred.
func Thousand(t *testing.T, open func(*testing.T) Crowded) (n int) {
	if n = 1000; testing.Short() {
		n = 100
	}
	began := time.Now()
	synctest.Test(t, func(t *testing.T) { open(t).thousand(t, n) })
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("took %v of real time and %d MiB of system memory, including the fake", time.Since(began).Round(time.Millisecond), m.Sys>>20)
	return n
}

func (c Crowded) thousand(t *testing.T, n int) {
	var ids []string
	c.phase(t, "made", func() {
		each(n, c.AtOnce, func(i int) {
			persist(t, func() error { _, _, err := c.Cloud.Create(t.Context(), c.Request(fmt.Sprint("one-", i))); return err })
		})
	})
	time.Sleep(c.Boot)
	c.phase(t, "listed", func() { ids = c.list(t) })
	if len(ids) != n {
		t.Fatalf("%d instances are listed", len(ids))
	}
	c.phase(t, "tagged", func() {
		tags := maps.Clone(c.Request("").Tags)
		delete(tags, driver.TagName)
		tags[driver.TagIdle] = "drain"
		each(n, c.AtOnce, func(i int) {
			persist(t, func() error { return c.Cloud.SetTags(t.Context(), ids[i], tags) })
		})
	})
	c.phase(t, "destroyed", func() {
		each(n, c.Destroys, func(i int) { persist(t, func() error { return c.Cloud.Destroy(t.Context(), ids[i]) }) })
	})
	time.Sleep(2 * time.Minute)
	if left := c.list(t); len(left) > 0 {
		t.Errorf("%d instances are left", len(left))
	}
	if len(c.Refused) > 0 {
		t.Errorf("calls beyond the published rates: %v", c.Refused)
	}
}

// phase logs the calls and the time that something takes.
func (c Crowded) phase(t *testing.T, name string, do func()) {
	start, before := time.Now(), maps.Clone(c.Calls)
	do()
	var made []string
	for _, call := range slices.Sorted(maps.Keys(c.Calls)) {
		if more := c.Calls[call] - before[call]; more > 0 {
			made = append(made, fmt.Sprint(more, " ", call))
		}
	}
	t.Logf("%-9s %8v: %s", name, time.Since(start).Round(100*time.Millisecond), strings.Join(made, ", "))
}

// list returns the ids of the fleet's instances, each once.
func (c Crowded) list(t *testing.T) (ids []string) {
	own := middleware.ForFleet(c.Cloud, c.Request("").Tags[driver.TagFleet])
	persist(t, func() error {
		all, err := own.List(t.Context(), nil)
		for _, in := range all {
			ids = append(ids, in.ID)
		}
		return err
	})
	return ids
}

// persist repeats a call that is refused for its rate, at the time that the error names.
func persist(t *testing.T, call func() error) {
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

// each calls do n times, this many at once.
func each(n, at int, do func(i int)) {
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
