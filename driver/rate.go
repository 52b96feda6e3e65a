package driver

import (
	"sync"
	"time"

	"drover"
)

// Rate is a token bucket: so many calls at once, then so many a second, and so many more a minute.
type Rate struct{ Burst, PerSecond, PerMinute int }

// each is how long a token takes to come, at so many times the rate.
func (r Rate) each(times int) time.Duration {
	return time.Minute / time.Duration((60*r.PerSecond+r.PerMinute)*times)
}

// Budget keeps a driver's calls within the rates that its cloud publishes: what is beyond is refused here, at once, and never waits. Others
// share the account, so the cloud may refuse sooner. It is the generic cell rate algorithm (ITU-T I.371): of each call it is enough to know
// when its bucket will be full again. None, nil, has no limits.
type Budget struct {
	rates map[string]Rate
	times int

	mu   sync.Mutex
	full map[string]time.Time // guarded by mu
}

// NewBudget is a Budget by rates, each multiplied by times.
func NewBudget(rates map[string]Rate, times int) *Budget {
	return &Budget{rates: rates, times: max(1, times), full: map[string]time.Time{}}
}

// Take takes a token for a call, or is KindRateLimit with the time at which there is one. A call without a rate has no limit.
func (b *Budget) Take(call string, now time.Time) error { return b.TakeMany(call, 1, now) }

// TakeMany takes so many tokens at once, which are no more than the bucket holds, or none.
func (b *Budget) TakeMany(call string, n int, now time.Time) error {
	if b == nil {
		return nil
	}
	r, ok := b.rates[call]
	if !ok {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	each := r.each(b.times)
	cost := each * time.Duration(n)
	full := b.full[call]
	if full.Before(now) {
		full = now
	}
	if room := full.Add(cost).Add(-each * time.Duration(r.Burst*b.times)); room.After(now) {
		return &drover.Error{Kind: drover.KindRateLimit, RetryAt: drover.TimeOf(room),
			Message: call + ": as many calls were made as the cloud allows at once"}
	}
	b.full[call] = full.Add(cost)
	return nil
}
