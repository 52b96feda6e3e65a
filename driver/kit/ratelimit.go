package kit

import (
	"maps"
	"sync"
	"time"

	"drover"
)

// Rate is a token bucket: its size, and how many tokens it gains a second and a minute.
type Rate struct{ Burst, PerSecond, PerMinute int }

// Rates inverts a table from rates to their calls.
func Rates(all map[Rate][]string) map[string]Rate {
	rates := map[string]Rate{}
	for rate, calls := range all {
		for _, call := range calls {
			rates[call] = rate
		}
	}
	return rates
}

// each is how long one token takes, at a multiple of the rate.
func (r Rate) each(times int) time.Duration {
	return time.Minute / time.Duration((60*r.PerSecond+r.PerMinute)*times)
}

// RateLimiter keeps a driver's calls within the rates that its cloud publishes: it refuses a call beyond them at once,
// and never waits. Others share the account, so the cloud may refuse sooner. It uses the generic cell rate algorithm
// (ITU-T I.371): for each bucket it stores only when it will be full again. A nil RateLimiter has no limits.
type RateLimiter struct {
	rates map[string]Rate
	times int

	mu   sync.Mutex
	full map[string]time.Time // guarded by mu
}

// NewRateLimiter limits calls to rates, each multiplied by times.
func NewRateLimiter(rates map[string]Rate, times int) *RateLimiter {
	return &RateLimiter{rates: rates, times: max(1, times), full: map[string]time.Time{}}
}

// atMost returns n, limited to the size of a rate's bucket.
func (b *RateLimiter) atMost(rate string, n int) int {
	if b == nil {
		return n
	}
	if r, ok := b.rates[rate]; ok {
		return min(n, r.Burst*b.times)
	}
	return n
}

// Take takes n tokens from the bucket of each call, or none at all: then it returns KindRateLimit with the time at
// which they will be available. A call without a rate has no limit; n is at most a bucket's size.
func (b *RateLimiter) Take(now time.Time, n int, calls ...string) error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	then := map[string]time.Time{}
	for _, call := range calls {
		r, ok := b.rates[call]
		if !ok {
			continue
		}
		full := b.full[call]
		if full.Before(now) {
			full = now
		}
		each := r.each(b.times)
		then[call] = full.Add(each * time.Duration(n))
		if room := then[call].Add(-each * time.Duration(r.Burst*b.times)); room.After(now) {
			return &drover.Error{Kind: drover.KindRateLimit, RetryAt: drover.TimeOf(room),
				Message: call + ": the cloud allows no more calls at the moment"}
		}
	}
	maps.Copy(b.full, then)
	return nil
}
