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
		t.Fatal("one call, and only one, is allowed")
	}
	for i := range 3 * maxTable {
		l.take(fmt.Sprint(i), slow, now)
	}
	if len(l.byKey) != maxTable || l.recent.Len() != maxTable {
		t.Errorf("%d and %d are remembered, at most %d may be", len(l.byKey), l.recent.Len(), maxTable)
	}
	if l.take("first", slow, now) > 0 {
		t.Error("who was forgotten does not begin anew")
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
		t.Error("there is room for more than there is")
	}
	release()
	release()
	if _, err := r.take("ada", 3); err != nil {
		t.Errorf("what was given back is not there: %v", err)
	}
	if _, err := r.take("bob", 1); err == nil {
		t.Error("it was given back twice")
	}
	r = newRoom(4 * memoryAtMost)
	if _, err := r.take("ada", memoryAtMost); err != nil {
		t.Fatal(err)
	}
	if _, err := r.take("ada", 1); err == nil {
		t.Error("one user has room for more than the largest batch takes")
	}
	if _, err := r.take("bob", memoryAtMost); err != nil {
		t.Errorf("another has no room beside: %v", err)
	}
}

func TestABatchTakesRoomByTheMemoryThatItMayNeed(t *testing.T) {
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
			t.Errorf("%d bytes to %s take %d, want %d", c.length, c.path, got, c.want)
		}
	}
}
