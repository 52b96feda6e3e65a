package drivertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"drover"
	"drover/driver"
)

// pastTime is how far back the requested prices go.
const pastTime = 24 * time.Hour

func checkPrices(ctx context.Context, t *trial) error {
	historian, remembers := driver.As[driver.PriceHistorian](t.cloud)
	if !remembers {
		return skip("this driver knows only current prices")
	}
	all, err := t.cloud.Offerings(ctx)
	if err != nil {
		return err
	}
	since := drover.TimeOf(time.Now().Add(-pastTime))
	var errs []error
	for _, m := range []drover.Market{drover.OnDemand, drover.Spot} {
		at := slices.IndexFunc(all, func(o drover.Offering) bool { return o.Market == m })
		if at < 0 {
			continue
		}
		points, err := historian.PriceHistory(ctx, all[at].Type.ProviderType, all[at].Zone, m, since)
		if err == nil {
			err = wantPrices(points)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s in %s, %s: %w", all[at].Type.Name, all[at].Zone, m, err))
		}
	}
	return errors.Join(errs...)
}

// wantPrices returns nil if a price history is not empty and has each change once, newest first.
func wantPrices(points []driver.PricePoint) error {
	switch {
	case len(points) == 0:
		return errors.New("the price history is empty")
	case !slices.Equal(points, driver.SortPrices(points)):
		return fmt.Errorf("the prices are not sorted from newest to oldest, or one is repeated: %v", points)
	case slices.ContainsFunc(points, func(p driver.PricePoint) bool { return p.Price < 0 || p.From == 0 }):
		return fmt.Errorf("a price is negative, or its start time is missing: %v", points)
	}
	return nil
}

func checkNoImage(ctx context.Context, t *trial) error {
	finder, can := driver.As[driver.ImageFinder](t.cloud)
	if !can {
		return skip("this driver does not look up images")
	}
	const name = "drover-has-no-such-image"
	found, err := finder.FindImages(ctx, name, "")
	switch {
	case err != nil:
		return fmt.Errorf("looking up a nonexistent image: %w", err)
	case len(found) == 1 && found[0].ID == name:
		return skip("this driver passes image ids on unchecked")
	case len(found) > 0:
		return fmt.Errorf("found a nonexistent image: %v", found)
	}
	return nil
}

// checkShared creates an instance with each of two controllers of a fleet, and ends the fleet.
func checkShared(ctx context.Context, t *trial) error {
	sweeper, can := driver.As[driver.Reaper](t.cloud)
	if !can {
		return skip("this driver creates only instances")
	}
	if _, err := t.one(ctx); err != nil {
		return err
	}
	first, err := t.shared(ctx, sweeper)
	if err != nil {
		return err
	}
	if err := t.asAnother(ctx, func() error { _, err := t.one(ctx); return err }); err != nil {
		return err
	}
	second, err := t.shared(ctx, sweeper)
	if err != nil {
		return err
	}
	if !slices.Equal(first, second) {
		return fmt.Errorf("the fleet's next controller did not reuse the shared resources: they were %v and are now %v", first, second)
	}
	return t.endFleet(ctx, sweeper)
}

// asAnother does something as another controller of the fleet.
func (t *trial) asAnother(ctx context.Context, do func() error) error {
	mine := t.cloud
	defer func() { t.cloud = mine }()
	other, err := t.open(ctx, t.Fleet)
	if err != nil {
		return fmt.Errorf("open again: %w", err)
	}
	t.cloud = other
	return errors.Join(do(), other.Close())
}

// shared returns what the fleet's instances share, sorted. Every leftover must have the fleet's tag.
func (t *trial) shared(ctx context.Context, sweeper driver.Reaper) (ids []string, err error) {
	all, err := sweeper.Leftovers(ctx, t.Fleet)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if s.Kind == "" || s.ID == "" || s.Tags[driver.TagFleet] != t.Fleet {
			return nil, fmt.Errorf("this leftover resource does not name fleet %s as its owner: %+v", t.Fleet, s)
		}
		if s.Shared {
			ids = append(ids, s.Kind+" "+s.ID)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// endFleet destroys all instances, and then everything that is left.
func (t *trial) endFleet(ctx context.Context, sweeper driver.Reaper) error {
	all, err := t.listed(ctx, t.fleetTags(), 2) // wait until both are listed
	if err != nil {
		return err
	}
	for id := range all {
		if err := t.cloud.Destroy(ctx, id); err != nil {
			return fmt.Errorf("destroy: %w", err)
		}
	}
	if _, err := t.listed(ctx, t.fleetTags(), 0); err != nil {
		return err
	}
	return t.eventually(ctx, "the resources that the fleet's instances shared are removed", func(ctx context.Context) (bool, error) {
		if _, err := driver.Reap(ctx, t.cloud, t.Fleet, drover.TimeOf(time.Now()), driver.Ended); err != nil {
			return false, err
		}
		left, err := sweeper.Leftovers(ctx, t.Fleet)
		return len(left) == 0, err
	})
}

func checkStopStart(ctx context.Context, t *trial) error {
	starter, can := driver.As[driver.Starter](t.cloud)
	if !can {
		return skip("this driver cannot stop and start instances")
	}
	if len(t.Request.Candidates) == 0 { // some clouds cannot stop spot instances
		if err := t.cheapest(ctx, drover.OnDemand); err != nil {
			return err
		}
	}
	in, err := t.one(ctx)
	if err != nil {
		return err
	}
	for _, step := range []struct {
		name string
		call func(context.Context, string) error
		want driver.State
	}{{"stop", starter.Stop, driver.Stopped}, {"start", starter.Start, driver.Running}} {
		if err := t.eventually(ctx, step.name+" is accepted", func(ctx context.Context) (bool, error) {
			err := step.call(ctx, in.ID)
			if err != nil && drover.KindOf(err) == drover.KindTransient {
				return false, nil // it is still booting
			}
			return err == nil, err
		}); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		what := fmt.Sprintf("the instance is %s after the call %s", step.want, step.name)
		if _, err := t.untilListed(ctx, what, t.fleetTags(), func(all map[string]driver.Instance) (bool, error) {
			return all[in.ID].State == step.want, nil
		}); err != nil {
			return err
		}
		if err := t.describedAs(ctx, in.ID, step.want); err != nil {
			return err
		}
	}
	if !t.NoLogin {
		_, err = t.letIn(ctx, in)
	}
	return err
}

func checkGrowDisk(ctx context.Context, t *trial) error {
	grower, can := driver.As[driver.DiskGrower](t.cloud)
	if !can {
		return skip("this driver cannot grow volumes")
	}
	in, err := t.one(ctx)
	if err != nil {
		return err
	}
	size := max(t.Request.Disk, 30*drover.GiB) + drover.GiB
	for _, step := range []string{"growing its volume", "growing it again"} {
		if err := t.eventually(ctx, step+" is accepted", func(ctx context.Context) (bool, error) {
			err := grower.GrowDisk(ctx, in.ID, size)
			if err != nil && drover.KindOf(err) == drover.KindTransient {
				return false, nil // it is still booting
			}
			return err == nil, err
		}); err != nil {
			return fmt.Errorf("%s: %w", step, err)
		}
	}
	if err := t.cloud.Destroy(ctx, in.ID); err != nil {
		return err
	}
	return t.eventually(ctx, "growing the volume of an instance that is gone fails because it is not found", func(ctx context.Context) (bool, error) {
		err := grower.GrowDisk(ctx, in.ID, size)
		return err != nil && drover.KindOf(err) == drover.KindNotFound, nil
	})
}
