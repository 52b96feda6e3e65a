package gc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"drover"
	"drover/driver"
	"drover/internal/backoff"
	"drover/internal/human"
)

// destroyTime is how long the instances of one cloud may take to disappear from its list once they are destroyed.
const destroyTime = 10 * time.Minute

// destroyAll destroys, if that is requested, the strays that the search does not spare. A failure in one cloud or
// instance does not keep it from the others.
func (g *Collector) destroyAll(ctx context.Context, clouds map[string]driver.Cloud, s *search, strays []*Stray) (err error) {
	if !g.Destroy {
		return nil
	}
	byCloud := map[string][]*Stray{}
	for _, one := range strays {
		if s.spared == nil || !s.spared(ctx, *one) {
			byCloud[one.Cloud] = append(byCloud[one.Cloud], one)
		}
	}
	for name, doomed := range byCloud {
		fmt.Fprintf(g.Say, "destroying %s in cloud %s, and waiting until the cloud no longer lists them\n", human.Plural(len(doomed), "instance"), name)
		err = errors.Join(err, DestroyStrays(ctx, clouds[name], s.fleet, doomed))
	}
	return err
}

// DestroyStrays destroys a fleet's instances in one cloud, repeatedly until the cloud's list has none of their ids. It
// uses ids because a cloud that carried out one create call twice has two instances of one name.
func DestroyStrays(ctx context.Context, d driver.Cloud, fleet string, left []*Stray) (err error) {
	ctx, cancel := context.WithTimeout(ctx, destroyTime)
	defer cancel()
	for range backoff.Tries(ctx, 100*time.Millisecond, 10*time.Second) {
		left = slices.DeleteFunc(left, func(s *Stray) bool {
			failed := d.Destroy(ctx, s.ProviderID)
			if failed != nil {
				err = errors.Join(err, fmt.Errorf("destroying %v: %w", s, drover.AsError(failed, drover.KindTransient)))
			}
			return failed != nil
		})
		if len(left) == 0 {
			return err
		}
		list, failed := d.List(ctx, map[string]string{driver.TagFleet: fleet})
		if failed != nil {
			return errors.Join(err, fmt.Errorf("checking whether %v is gone: %w", left[0], failed))
		}
		left = slices.DeleteFunc(left, func(s *Stray) bool {
			s.Destroyed = !slices.ContainsFunc(list, func(in driver.Instance) bool { return in.ID == s.ProviderID })
			return s.Destroyed
		})
		if len(left) == 0 {
			return err
		}
	}
	return errors.Join(err, drover.Errorf(drover.KindTransient, "destroying %v: its cloud accepted the request, but still lists the instance after %v", left[0], destroyTime).
		WithHint("run the same command again"))
}

// sweepStrays removes what the fleet's instances left behind, if destroying is requested.
func (g *Collector) sweepStrays(ctx context.Context, clouds map[string]driver.Cloud, s *search, ended bool) (err error) {
	if !g.Destroy {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(clouds)) {
		swept, failed := driver.Reap(ctx, clouds[name], s.fleet, drover.TimeOf(time.Now()), g.life(ended))
		for _, one := range swept {
			g.Said = true
			fmt.Fprintf(g.Say, "%s: removed %s %s, which was left behind\n", name, drover.Sanitize(one.Kind), drover.Sanitize(one.ID))
		}
		err = errors.Join(err, failed)
	}
	return err
}

// life is the state of a fleet of which nothing is left: ended, as far as that is known.
func (g *Collector) life(ended bool) driver.FleetState {
	switch {
	case !ended:
		return driver.Active
	case g.Blind:
		return driver.Unknown
	}
	return driver.Ended
}
