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

// ofCalls returns the faults that affect calls in general.
func (f faultConfig) ofCalls() middleware.Faults {
	return middleware.Faults{Seed: f.Seed, Calls: map[middleware.Method]middleware.Trouble{
		middleware.MethodCreate:  {Delay: f.Latency.Create, Fail: f.ErrorRate.Create},
		middleware.MethodList:    {Delay: f.Latency.List, Fail: f.ErrorRate.List},
		middleware.MethodDestroy: {Delay: f.Latency.Destroy, Fail: f.ErrorRate.Destroy},
	}}
}

// neverBoots reports whether SSH never answers on the instance with this name.
func (f faultConfig) neverBoots(name string) bool {
	return f.BootFailures > 0 && middleware.Chance(f.Seed, "boot", name).Float64() < f.BootFailures
}

// lifetime returns how long the instance with this name lives; 0: no limit. Lifetimes have an exponential distribution.
func (f faultConfig) lifetime(name string) time.Duration {
	if f.SuddenDeath == 0 {
		return 0
	}
	u := middleware.Chance(f.Seed, "death", name).Float64()
	return max(1, time.Duration(-math.Log(1-u)*float64(f.SuddenDeath)))
}

// announced returns the reported address of an instance that listens at an address. With another host part, a proxy
// there can forward the connections, or disturb them.
func (f faultConfig) announced(address netip.AddrPort) string {
	if f.Announce.IsValid() {
		address = netip.AddrPortFrom(f.Announce, address.Port())
	}
	return address.String()
}

// outOf reports whether the cloud has run out of a candidate at this time since it was opened.
func (f faultConfig) outOf(c driver.Candidate, age time.Duration) bool {
	for _, s := range f.Capacity {
		if (s.Type == "" || s.Type == c.ProviderType) && (s.Zone == "" || s.Zone == c.Zone) &&
			(s.Market == "" || s.Market == c.Market) && (s.For == 0 || age < s.For) {
			return true
		}
	}
	return false
}

// The files of an instance that does not run and yet is not gone: its cloud took it back, or it powered itself off
// where that only stops it. Until it is destroyed it is listed as stopped.
const (
	noticesFile = "notices" // the cloud's notice to the instance, as the runner reads it; with it the instance is listed as reclaimed
	stoppedFile = "stopped"
	upFile      = "up"
)

// remains reports whether a dead instance is still to be listed.
func remains(path string) bool {
	said, err := os.Stat(filepath.Join(path, stoppedFile))
	return has(path, noticesFile) || err == nil && said.Size() > 0
}

func has(path, name string) bool {
	_, err := os.Stat(filepath.Join(path, name))
	return !errors.Is(err, fs.ErrNotExist)
}

// lookAtRemains ends whatever is left of a dead instance and reads its description. The fleet's lock is held.
func (c *cloud) lookAtRemains(ctx context.Context, fleet, path string) (driver.Instance, error) {
	if err := processes.EndAll(ctx, func() ([]int, error) { return processes.WithMarker(marked(path)) }); err != nil {
		return driver.Instance{}, err
	}
	c.reap()
	in, err := readInstance(fleet, path)
	in.State = driver.Stopped
	return in, err
}

// fate is what the cloud will do to an instance.
type fate struct {
	Lifetime time.Duration `json:"lifetime"` // after this time it dies; 0: no limit
	Reclaim  time.Duration `json:"reclaim"`  // after this time it gets the notice that the cloud takes it back; 0: never
	Notice   time.Duration `json:"notice"`   // this much later it is taken back; 0: at once
	Stops    bool          `json:"stops"`    // a power-off only stops it
}

// fateOf draws the fate of the instance with this name.
func (f faultConfig) fateOf(name string) fate {
	r := f.Reclaim
	fate := fate{Lifetime: f.lifetime(name), Stops: f.PowerOff == driver.PowerOffStops}
	if r.After > 0 && (r.Fraction == 0 || middleware.Chance(f.Seed, "reclaim", name).Float64() < r.Fraction) {
		fate.Reclaim, fate.Notice = r.After, r.Notice
	}
	return fate
}

// unfold waits until the instance must die, or until ctx ends because the guest has ended. It returns false if the
// instance never must die.
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
			n := drover.Notice{Cause: "a configured fault", Deadline: drover.TimeOf(time.Now().Add(f.Notice))}
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
