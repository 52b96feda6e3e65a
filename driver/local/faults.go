package local

import (
	"context"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"sync/atomic"
	"time"

	"drover"
	"drover/driver"
)

// faults is the cloud's bad luck. The zero configuration has none.
type faults struct {
	config                faultConfig
	create, list, destroy trouble
}

// trouble is the lot of one kind of call.
type trouble struct {
	name  string
	delay time.Duration
	rate  float64
	calls atomic.Uint64
}

func newFaults(c faultConfig) *faults {
	f := &faults{config: c}
	f.create.name, f.create.delay, f.create.rate = "create", c.Latency.Create, c.ErrorRate.Create
	f.list.name, f.list.delay, f.list.rate = "list", c.Latency.List, c.ErrorRate.List
	f.destroy.name, f.destroy.delay, f.destroy.rate = "destroy", c.Latency.Destroy, c.ErrorRate.Destroy
	return f
}

// meet holds up one call for as long as was asked for, and says whether it comes to nothing.
func (f *faults) meet(ctx context.Context, t *trouble) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if t.delay > 0 {
		if err := pause(ctx, t.delay); err != nil {
			return err
		}
	}
	n := t.calls.Add(1)
	if t.rate > 0 && f.chance(t.name, strconv.FormatUint(n, 10)).Float64() < t.rate {
		return drover.Errorf(drover.KindTransient, "%s: the cloud was asked to fail this call", t.name)
	}
	return nil
}

// chance is the dice of one event: the same seed and event always throw the same.
func (f *faults) chance(what, which string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(what + "/" + which))
	return rand.New(rand.NewPCG(f.config.Seed, h.Sum64()))
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
