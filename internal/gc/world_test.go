package gc

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"drover"
	"drover/driver"
)

var seeds = flag.Int("seeds", 200, "how many modelled clouds to try")

// unluckyCloud is a cloud that created some of its instances twice, loses destroys, and lists ended instances for a
// while.
type unluckyCloud struct {
	driver.Cloud
	dice *rand.Rand
	vms  []*unluckyVM
}

type unluckyVM struct {
	id, name string
	wanted   bool      // a controller looks after it
	ended    time.Time // zero: it lives
	listed   time.Time // until when it is listed after its end
}

func newUnluckyCloud(seed uint64) *unluckyCloud {
	c := &unluckyCloud{dice: rand.New(rand.NewPCG(seed, 1))}
	for i := range 1 + c.dice.IntN(20) {
		vm := &unluckyVM{id: fmt.Sprintf("i-%d", i), name: fmt.Sprintf("lab-%d", i), wanted: c.dice.IntN(3) == 0}
		if i > 0 && c.dice.IntN(3) == 0 {
			vm.name = c.vms[i-1].name
		}
		c.vms = append(c.vms, vm)
	}
	return c
}

func (c *unluckyCloud) within(most time.Duration) time.Duration {
	return time.Duration(c.dice.Int64N(int64(most)))
}

func (c *unluckyCloud) Destroy(_ context.Context, id string) error {
	time.Sleep(c.within(time.Second))
	for _, vm := range c.vms {
		if done := c.dice.IntN(4) > 0; vm.id == id && vm.ended.IsZero() && done {
			vm.ended = time.Now()
			vm.listed = vm.ended.Add(c.within(5 * time.Minute))
		}
	}
	return nil
}

func (c *unluckyCloud) List(context.Context, map[string]string) (list []driver.Instance, err error) {
	time.Sleep(c.within(time.Second))
	for _, vm := range c.vms {
		if vm.ended.IsZero() || time.Now().Before(vm.listed) {
			list = append(list, driver.Instance{ID: vm.id, Tags: map[string]string{driver.TagFleet: "lab", driver.TagName: vm.name}})
		}
	}
	return list, nil
}

func TestWhateverACloudDoesNoStrayIsLeft(t *testing.T) {
	for seed := range uint64(*seeds) {
		synctest.Test(t, func(t *testing.T) {
			c := newUnluckyCloud(seed)
			var strays []*Stray
			for _, vm := range c.vms {
				if !vm.wanted {
					strays = append(strays, &Stray{Name: vm.name, Cloud: "here", ProviderID: vm.id})
				}
			}
			if err := DestroyStrays(t.Context(), c, "lab", slices.Clone(strays)); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
			for _, vm := range c.vms {
				if vm.ended.IsZero() != vm.wanted {
					t.Errorf("seed %d: %s (%s) lives: %v, is wanted: %v", seed, vm.id, vm.name, vm.ended.IsZero(), vm.wanted)
				}
			}
			for _, s := range strays {
				if !s.Destroyed {
					t.Errorf("seed %d: %v is not reported as destroyed", seed, s)
				}
			}
		})
		if t.Failed() {
			return
		}
	}
}

// TestAnInstanceThatNeverDisappears expects an error that names the instance, in time.
func TestAnInstanceThatNeverDisappears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &unluckyCloud{dice: rand.New(rand.NewPCG(1, 1)), vms: []*unluckyVM{{id: "i-1", name: "lab-1", ended: time.Now(), listed: time.Now().Add(time.Hour)}}}
		began, strays := time.Now(), []*Stray{{Name: "lab-1", Cloud: "here", ProviderID: "i-1"}}
		err := DestroyStrays(t.Context(), c, "lab", slices.Clone(strays))
		if drover.KindOf(err) != drover.KindTransient || strays[0].Destroyed || time.Since(began) > destroyTime+time.Minute {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}
