package fleet

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"drover"
)

// Check compares all derived data with the State, and returns the first difference. need returns what an attempt
// occupies. Tests call it after each event; its cost is linear in the fleet.
func (f *Fleet) Check(need func(*Attempt) drover.Resources) error {
	if len(f.byName) != len(f.members) {
		return fmt.Errorf("%d instances have %d different names", len(f.members), len(f.byName))
	}
	live := 0
	for _, in := range f.members {
		if err := f.checkLoad(in, need); err != nil {
			return fmt.Errorf("instance %s: %w", in.Name, err)
		}
		live += len(in.Load)
	}
	if live != len(f.attempts) {
		return fmt.Errorf("%d attempts are live, but %d are on instances", len(f.attempts), live)
	}
	if err := f.checkIndex(); err != nil {
		return err
	}
	return f.checkCensus()
}

// checkLoad adds up an instance's attempts and reservations.
func (f *Fleet) checkLoad(in *Member, need func(*Attempt) drover.Resources) error {
	used, reserved := drover.Resources{}, drover.Resources{}
	for _, a := range in.Load {
		if f.attempts[a.ID.Job] != a {
			return fmt.Errorf("job %v has two live attempts", a.ID.Job)
		}
		used = used.Plus(need(a), 1)
	}
	for _, r := range in.Reservations {
		if r.Count <= 0 {
			return fmt.Errorf("it has a reservation for %d elements", r.Count)
		}
		reserved = reserved.Plus(r.Group.Shape.Need, r.Count)
	}
	used.Arch, reserved.Arch = in.Resources.Arch, in.Resources.Arch
	switch {
	case in.slots != 0:
		return fmt.Errorf("%d temporary reservations remain after placement", in.slots)
	case in.Free.Plus(used, 1) != in.Resources:
		return fmt.Errorf("its total is %+v, which is not the sum of %+v free and %+v used", in.Resources, in.Free, used)
	case in.Room.Plus(reserved, 1) != in.Expanded():
		return fmt.Errorf("its total is %+v, which is not the sum of %+v free and %+v reserved", in.Expanded(), in.Room, reserved)
	case in.State == drover.InstanceIdle && len(in.Load) > 0, in.State == drover.InstanceRunning && len(in.Load) == 0:
		return fmt.Errorf("it is %s, but has %d attempts", in.State, len(in.Load))
	}
	return nil
}

// checkIndex compares the index with a rebuilt one.
func (f *Fleet) checkIndex() error {
	r, fresh := f.Index(), Index{}
	inCloud, provided := map[string]int{}, map[providerKey][]*Member{}
	for _, in := range f.members {
		inCloud[in.Cloud]++
		key := providerKey{in.Cloud, in.ProviderID}
		provided[key] = append(provided[key], in)
		was := in.on
		in.on = indexEntry{}
		fresh.update(in)
		in.on = was
	}
	for _, list := range []struct {
		name       string
		kept, anew []*Member
	}{
		{"ready", r.Ready, fresh.Ready}, {"roomy", r.Roomy, fresh.Roomy}, {"unheard", r.Unheard, fresh.Unheard}, {"coming", r.Coming, fresh.Coming}, {"reserved", r.Reserved, fresh.Reserved},
		{"creating", r.Creating, fresh.Creating}, {"idle", r.Idle, fresh.Idle}, {"ending", r.Ending, fresh.Ending}, {"reclaimed", r.Reclaimed, fresh.Reclaimed}, {"unsettled", r.Unsettled, fresh.Unsettled},
	} {
		if !slices.Equal(slices.SortedFunc(slices.Values(list.kept), ByID), slices.SortedFunc(slices.Values(list.anew), ByID)) {
			return fmt.Errorf("%d instances are listed as %s, but %d should be", len(list.kept), list.name, len(list.anew))
		}
	}
	if !reflect.DeepEqual(f.inCloud, inCloud) {
		return fmt.Errorf("the index has instances in clouds %v, but they are in %v", f.inCloud, inCloud)
	}
	if !reflect.DeepEqual(f.provided, provided) {
		return fmt.Errorf("the %d provider IDs by which instances are found are not the %d that they have", len(f.provided), len(provided))
	}
	shown := 0
	for _, d := range f.departed {
		if d.Shown != nil {
			shown++
		}
	}
	if f.shown != shown {
		return fmt.Errorf("%d departed instances count as shown by a list, but %d are", f.shown, shown)
	}
	return nil
}

// checkCensus compares the census with a new one.
func (f *Fleet) checkCensus() error {
	kept, fresh := f.Census(), Census{}
	for _, in := range f.members {
		was := in.counted
		in.counted = counted{}
		fresh.count(in)
		in.counted = was
	}
	kinds := func(c *Census) map[kindKey][2]int {
		of := map[kindKey][2]int{}
		for _, k := range c.Kinds {
			of[k.key] = [2]int{k.Len(), k.Takers}
		}
		return of
	}
	if !reflect.DeepEqual(kinds(kept), kinds(&fresh)) || !slices.Equal(kept.Creating, fresh.Creating) || !slices.Equal(kept.withLosses, fresh.withLosses) {
		return errors.New("the cached counts do not match a recount")
	}
	if len(kept.owned)+len(fresh.owned) > 0 && !reflect.DeepEqual(kept.owned, fresh.owned) {
		return errors.New("the instance counts per owner do not match a recount")
	}
	return nil
}
