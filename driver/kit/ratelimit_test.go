package kit_test

import (
	"testing"
	"time"

	"drover"
	"drover/driver/kit"
)

func TestRateLimiter(t *testing.T) {
	now := time.Unix(1000, 0)
	rates := map[string]kit.Rate{"start": {Burst: 5, PerSecond: 2}}
	b := kit.NewRateLimiter(rates, 1)
	take := func(at time.Time) (n int) {
		for b.Take(at, 1, "start") == nil {
			n++
		}
		return n
	}
	for _, step := range []struct {
		after time.Duration
		want  int
	}{{0, 5}, {499 * time.Millisecond, 0}, {time.Millisecond, 1}, {time.Second, 2}, {time.Hour, 5}} {
		now = now.Add(step.after)
		if got := take(now); got != step.want {
			t.Errorf("after %v: %d calls, want %d", step.after, got, step.want)
		}
	}
	e := drover.AsError(b.Take(now, 1, "start"), "")
	if e.Kind != drover.KindRateLimit || e.RetryAt != drover.TimeOf(now.Add(500*time.Millisecond)) {
		t.Errorf("%+v", e)
	}
	if b.Take(e.RetryAt.Std(), 1, "start") != nil {
		t.Error("a call is refused at its retry time")
	}
	if b.Take(now, 1, "another") != nil {
		t.Error("a call without a rate is refused")
	}
	b = kit.NewRateLimiter(rates, 3)
	if got := take(now); got != 15 {
		t.Errorf("three times the rate allows %d calls", got)
	}
}

func TestTakeSeveralTokens(t *testing.T) {
	now := time.Unix(1000, 0)
	b := kit.NewRateLimiter(map[string]kit.Rate{"end": {Burst: 10, PerSecond: 2}, "keys": {Burst: 1, PerMinute: 5}}, 1)
	for _, step := range []struct {
		call string
		n    int
		wait time.Duration // 0: Take succeeds
	}{{"end", 8, 0}, {"end", 4, time.Second}, {"end", 2, 0}, {"end", 10, 5 * time.Second}, {"keys", 1, 0}, {"keys", 1, 12 * time.Second}} {
		err := b.Take(now, step.n, step.call)
		var told drover.Time
		if err != nil {
			told = drover.AsError(err, "").RetryAt
		}
		if want := drover.TimeOf(now.Add(step.wait)); (err == nil) != (step.wait == 0) || err != nil && told != want {
			t.Errorf("%d for %s: %v", step.n, step.call, err)
		}
	}
}

func TestTakeFromSeveralBuckets(t *testing.T) {
	now := time.Unix(1000, 0)
	b := kit.NewRateLimiter(map[string]kit.Rate{"any": {Burst: 3, PerSecond: 1}, "keys": {Burst: 1, PerSecond: 1}}, 1)
	both := []string{"any", "keys", "unknown"}
	if err := b.Take(now, 1, both...); err != nil {
		t.Error(err)
	}
	for range 9 {
		if drover.KindOf(b.Take(now, 1, both...)) != drover.KindRateLimit {
			t.Error("a second key was allowed")
		}
	}
	if err := b.Take(now, 2, "any"); err != nil {
		t.Errorf("a refused call used up tokens: %v", err)
	}
}
