package local

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"drover"
	"drover/driver"
	"drover/driver/middleware"
	"drover/internal/atomicfile"
	"drover/internal/backoff"
	"drover/internal/processes"
)

// ofCalls is what goes wrong with calls, whatever they are about.
func (f faultConfig) ofCalls() middleware.Faults {
	return middleware.Faults{Seed: f.Seed, Calls: map[middleware.Method]middleware.Trouble{
		middleware.MethodCreate:  {Delay: f.Latency.Create, Fail: f.ErrorRate.Create},
		middleware.MethodList:    {Delay: f.Latency.List, Fail: f.ErrorRate.List},
		middleware.MethodDestroy: {Delay: f.Latency.Destroy, Fail: f.ErrorRate.Destroy},
	}}
}

// neverBoots says whether SSH will never answer on the instance of this name.
func (f faultConfig) neverBoots(name string) bool {
	return f.BootFailures > 0 && middleware.Chance(f.Seed, "boot", name).Float64() < f.BootFailures
}

// lifetime is how long the instance of this name lives, 0 for as long as it is let. It is distributed as lifetimes
// without memory are.
func (f faultConfig) lifetime(name string) time.Duration {
	if f.SuddenDeath == 0 {
		return 0
	}
	u := middleware.Chance(f.Seed, "death", name).Float64()
	return max(1, time.Duration(-math.Log(1-u)*float64(f.SuddenDeath)))
}

// announced is where an instance that listens at an address is said to be. With another host part, what stands between
// carries the connections from there, or does with them as it likes.
func (f faultConfig) announced(address netip.AddrPort) string {
	if f.Announce.IsValid() {
		address = netip.AddrPortFrom(f.Announce, address.Port())
	}
	return address.String()
}

// outOf says whether the cloud has no more of a candidate, so long after it was opened.
func (f faultConfig) outOf(c driver.Candidate, age time.Duration) bool {
	for _, s := range f.Capacity {
		if (s.Type == "" || s.Type == c.ProviderType) && (s.Zone == "" || s.Zone == c.Zone) &&
			(s.Market == "" || s.Market == c.Market) && (s.For == 0 || age < s.For) {
			return true
		}
	}
	return false
}

// The files by which an instance is known that does not run and yet is not gone: its cloud took it back, or it powered
// itself off where that only stops it. Until it is destroyed it is listed as stopped.
const (
	noticesFile = "notices" // what the cloud says to the instance, as the runner reads it; with it the instance is listed as reclaimed
	stoppedFile = "stopped"
	upFile      = "up"
)

// remains reports whether a dead instance is one to be listed nevertheless.
func remains(path string) bool {
	said, err := os.Stat(filepath.Join(path, stoppedFile))
	return has(path, noticesFile) || err == nil && said.Size() > 0
}

func has(path, name string) bool {
	_, err := os.Stat(filepath.Join(path, name))
	return !errors.Is(err, fs.ErrNotExist)
}

// lookAtRemains ends whatever is left of a dead instance and reads what there is to say of it. The fleet's lock is
// held.
func (c *cloud) lookAtRemains(ctx context.Context, fleet, path string) (driver.Instance, error) {
	if err := processes.EndAll(ctx, func() ([]int, error) { return processes.WithMarker(marked(path)) }); err != nil {
		return driver.Instance{}, err
	}
	c.reap()
	in, err := readInstance(fleet, path)
	in.State = driver.Stopped
	return in, err
}

// fate is what the cloud has in store for an instance.
type fate struct {
	Lifetime time.Duration `json:"lifetime"` // then it dies; 0: as long as it is let
	Reclaim  time.Duration `json:"reclaim"`  // then it is told that the cloud takes it back; 0: never
	Notice   time.Duration `json:"notice"`   // and this much later it is taken; 0: at once
	Stops    bool          `json:"stops"`    // powered off it is only stopped
}

// fateOf draws the fate of the instance of this name.
func (f faultConfig) fateOf(name string) fate {
	r := f.Reclaim
	fate := fate{Lifetime: f.lifetime(name), Stops: f.PowerOff == driver.PowerOffStops}
	if r.After > 0 && (r.Fraction == 0 || middleware.Chance(f.Seed, "reclaim", name).Float64() < r.Fraction) {
		fate.Reclaim, fate.Notice = r.After, r.Notice
	}
	return fate
}

// unfold waits until the instance must die, which a guest that has ended need not wait for. It returns false if it
// never must.
func (f fate) unfold(ctx context.Context, folder string) (dies bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if f.Lifetime > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, f.Lifetime)
		defer stop()
	}
	if f.Reclaim > 0 {
		if backoff.For(ctx, f.Reclaim) == nil {
			n := drover.Notice{Cause: "its configured faults", Deadline: drover.TimeOf(time.Now().Add(f.Notice))}
			if err := atomicfile.WriteJSON(filepath.Join(folder, noticesFile), n); err != nil {
				return false, err
			}
		}
		if backoff.For(ctx, f.Notice) == nil {
			return true, nil
		}
	}
	<-ctx.Done()
	return errors.Is(ctx.Err(), context.DeadlineExceeded), nil
}
