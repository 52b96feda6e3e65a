package httpapi

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

func TestLimitersForget(t *testing.T) {
	l, now, slow := newLimiters(), time.Now(), Rate{PerSecond: 0.001, Burst: 1}
	if l.take("first", slow, now) > 0 || l.take("first", slow, now) == 0 {
		t.Fatal("not exactly one call is allowed")
	}
	for i := range 3 * maxTable {
		l.take(fmt.Sprint(i), slow, now)
	}
	if len(l.byKey) != maxTable || l.recent.Len() != maxTable {
		t.Errorf("%d and %d are remembered, want %d", len(l.byKey), l.recent.Len(), maxTable)
	}
	if l.take("first", slow, now) > 0 {
		t.Error("a forgotten caller does not start with a full allowance")
	}
}

func TestAddresses(t *testing.T) {
	for remote, want := range map[string]string{
		"10.0.0.1:1234": "10.0.0.1", "[2001:db8:1:2:3::4]:1": "2001:db8:1:2::/64", "[::ffff:10.0.0.1]:1": "::ffff:10.0.0.1", "instance": "instance",
	} {
		if got := addressKey(remote); got != want {
			t.Errorf("%s counts as %s, want %s", remote, got, want)
		}
	}
}

func TestRoom(t *testing.T) {
	r := newRoom(3)
	release, err := r.take("ada", 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.take("bob", 2); err == nil {
		t.Error("more was taken than there is")
	}
	release()
	release()
	if _, err := r.take("ada", 3); err != nil {
		t.Errorf("released room is not available: %v", err)
	}
	if _, err := r.take("bob", 1); err == nil {
		t.Error("a second release gave room back again")
	}
	r = newRoom(4 * memoryAtMost)
	if _, err := r.take("ada", memoryAtMost); err != nil {
		t.Fatal(err)
	}
	if _, err := r.take("ada", 1); err == nil {
		t.Error("one user can take more than the largest batch needs")
	}
	if _, err := r.take("bob", memoryAtMost); err != nil {
		t.Errorf("there is no room for another user: %v", err)
	}
}

func TestBatchesTakeTheMemoryTheyMayNeed(t *testing.T) {
	for _, c := range []struct {
		path         string
		length, want int64
	}{
		{"/v1/batches", 1000, 512_000},
		{"/v1/batches", 1 << 20, 64 << 20},
		{"/v1/batches", maxBatch, 128 << 20},
		{"/v1/batches", 1 << 62, 128 << 20},
		{"/v1/batches", -1, 128 << 20}, // its length is unknown
		{"/v1/tokens", 1000, 0},
	} {
		if got := (route{path: c.path}).body(&http.Request{ContentLength: c.length}); got != c.want {
			t.Errorf("%d bytes sent to %s take %d, want %d", c.length, c.path, got, c.want)
		}
	}
}
