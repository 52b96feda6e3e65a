package local

import (
	"context"
	"math"
	"math/rand/v2"
	"net/netip"
	"time"

	"drover/driver"
	"drover/driver/middleware"
)

// faults is the cloud's bad luck. The zero configuration has none.
type faults struct{ config faultConfig }

// ofCalls is what goes wrong with calls, whatever they are about.
func (c faultConfig) ofCalls() middleware.Faults {
	return middleware.Faults{Seed: c.Seed, Calls: map[middleware.Method]middleware.Trouble{
		middleware.MethodCreate:  {Delay: c.Latency.Create, Fail: c.ErrorRate.Create},
		middleware.MethodList:    {Delay: c.Latency.List, Fail: c.ErrorRate.List},
		middleware.MethodDestroy: {Delay: c.Latency.Destroy, Fail: c.ErrorRate.Destroy},
	}}
}

// chance is the dice of one event: the same seed and event always throw the same.
func (f *faults) chance(what, which string) *rand.Rand {
	return middleware.Chance(f.config.Seed, what, which)
}

// neverBoots says whether SSH will never answer on the instance of this name.
func (f *faults) neverBoots(name string) bool {
	return f.config.BootFailures > 0 && f.chance("boot", name).Float64() < f.config.BootFailures
}

// lifetime is how long the instance of this name lives, 0 for as long as it is let. It is distributed as lifetimes without memory are.
func (f *faults) lifetime(name string) time.Duration {
	if f.config.SuddenDeath == 0 {
		return 0
	}
	u := f.chance("death", name).Float64()
	return max(1, time.Duration(-math.Log(1-u)*float64(f.config.SuddenDeath)))
}

// announced is where an instance that listens at an address is said to be. With another host part, what stands between carries the connections
// from there, or does with them as it likes.
func (f *faults) announced(address netip.AddrPort) string {
	if f.config.Announce.IsValid() {
		address = netip.AddrPortFrom(f.config.Announce, address.Port())
	}
	return address.String()
}

// outOf says whether the cloud has no more of a candidate, so long after it was opened.
func (f *faults) outOf(c driver.Candidate, age time.Duration) bool {
	for _, s := range f.config.Capacity {
		if (s.Type == "" || s.Type == c.ProviderType) && (s.Zone == "" || s.Zone == c.Zone) &&
			(s.Market == "" || s.Market == c.Market) && (s.For == 0 || age < s.For) {
			return true
		}
	}
	return false
}

// pause waits, or returns the context's error if that ends first.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
