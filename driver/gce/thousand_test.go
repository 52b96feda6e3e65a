package gce

import (
	"fmt"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"
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

// TestAThousandInstances makes, lists, tags and destroys a thousand instances in a project that holds everybody to the default rates. The fake
// refuses what is beyond them: nothing is.
func TestAThousandInstances(t *testing.T) {
	const n = 1000
	began := time.Now()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.throttle, f.bootTime, f.latency, f.opTime = true, time.Minute, 300*time.Millisecond, 5*time.Second
		f.pageSize = 500
		c := imitate(t, f, "")
		phase := func(name string, do func()) {
			start, before := time.Now(), maps.Clone(f.calls)
			do()
			var made string
			for _, call := range slices.Sorted(maps.Keys(f.calls)) {
				if more := f.calls[call] - before[call]; more > 0 {
					made += fmt.Sprintf(" %d %s", more, strings.TrimPrefix(call, "compute."))
				}
			}
			t.Logf("%-8s %8v:%s", name, time.Since(start).Round(time.Second), made)
		}
		all := map[string]driver.Instance{}
		phase("made", func() {
			together(n, 50, func(i int) {
				within(t, func() error { _, _, err := c.Create(t.Context(), requestFor(fmt.Sprint("one-", i))); return err })
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
			together(n, 50, func(i int) {
				within(t, func() error {
					return c.SetTags(t.Context(), ids[i], map[string]string{driver.TagFleet: "fleet", driver.TagIdle: "drain"})
				})
			})
		})
		phase("ended", func() {
			together(n, 50, func(i int) { within(t, func() error { return c.Destroy(t.Context(), ids[i]) }) })
		})
		time.Sleep(2 * time.Minute)
		if left := listed(t, c); len(left) > 0 {
			t.Errorf("%d are left", len(left))
		}
		if len(f.refused) > 0 {
			t.Errorf("beyond the rates: %v", f.refused)
		}
	})
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("in %v of real time, %d MiB from the system, the project included", time.Since(began).Round(time.Millisecond), m.Sys>>20)
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

func TestCollect(t *testing.T) {
	_, err := collect(func(string) ([]int, string, error) { return []int{1}, "again", nil })
	if err == nil {
		t.Error("an answer without an end was taken")
	}
}

// endless is an answer that goes on.
type endless struct{}

func (endless) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{Body: forever{}}, nil
}

type forever struct{}

func (forever) Read(p []byte) (int, error) { return len(p), nil }
func (forever) Close() error               { return nil }

func TestAnswersEnd(t *testing.T) {
	res, err := bounded{endless{}}.RoundTrip(nil)
	if err != nil {
		t.Fatal(err)
	}
	read, buffer := 0, make([]byte, 1<<20)
	for n := 1; n > 0 && read <= 2*maxAnswer; read += n {
		n, _ = res.Body.Read(buffer)
	}
	if read != maxAnswer {
		t.Errorf("%d bytes were read", read)
	}
}
