package drivertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"drover"
	"drover/driver"
)

// crowd is how many calls a check makes at once.
const crowd = 4

func checkCapabilities(_ context.Context, t *trial) error {
	c := t.cloud.Capabilities()
	var errs []error
	if !slices.Contains([]driver.HostKeys{driver.HostKeysPlanted, driver.HostKeysVerified, driver.HostKeysSecret}, c.HostKeys) {
		errs = append(errs, fmt.Errorf("HostKeys has an unknown value: %q", c.HostKeys))
	}
	if !slices.Contains([]driver.PowerOff{driver.PowerOffEnds, driver.PowerOffStops}, c.PowerOff) {
		errs = append(errs, fmt.Errorf("PowerOff has an unknown value: %q", c.PowerOff))
	}
	if !slices.Contains([]driver.Notices{driver.NoNotices, driver.NoticesEC2, driver.NoticesGCE, driver.NoticesAzure, driver.NoticesFile}, c.Notices) {
		errs = append(errs, fmt.Errorf("Notices has an unknown value: %q", c.Notices))
	}
	if !slices.Contains([]driver.Init{"", driver.InitShell, driver.InitBoots, driver.InitCloud}, c.Init) || c.MaxInit < 0 {
		errs = append(errs, fmt.Errorf("Init %q or MaxInit %d is not valid", c.Init, c.MaxInit))
	}
	if _, can := driver.As[driver.Starter](t.cloud); can != c.StopStart {
		errs = append(errs, fmt.Errorf("StopStart (%v) does not match whether the driver implements Starter (%v)", c.StopStart, can))
	}
	if c.StopSaves && !c.StopStart {
		errs = append(errs, errors.New("StopSaves is true, but instances cannot be stopped"))
	}
	if _, can := driver.As[driver.DiskGrower](t.cloud); can != c.GrowDisk {
		errs = append(errs, fmt.Errorf("GrowDisk (%v) does not match whether the driver implements DiskGrower (%v)", c.GrowDisk, can))
	}
	if _, can := driver.As[driver.Describer](t.cloud); can != c.Describe {
		errs = append(errs, fmt.Errorf("Describe (%v) does not match whether the driver implements Describer (%v)", c.Describe, can))
	}
	if c.NodeID != "" && (!strings.Contains(c.NodeID, "://") || !strings.Contains(c.NodeID, "{id}") && !strings.Contains(c.NodeID, "{name}")) {
		errs = append(errs, fmt.Errorf("NodeID is %q, which would give all nodes the same name", c.NodeID))
	}
	return errors.Join(errs...)
}

func checkOfferings(ctx context.Context, t *trial) error {
	all, err := t.cloud.Offerings(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for i, o := range all {
		if o.Type.Name == "" || o.Type.ProviderType == "" || o.Zone == "" || o.Cloud == "" ||
			o.Market != drover.OnDemand && o.Market != drover.Spot || o.Price < 0 ||
			o.Type.Resources.CPU <= 0 || o.Type.Resources.Memory <= 0 || o.Type.Resources.Arch == "" {
			errs = append(errs, fmt.Errorf("incomplete offering: %+v", o))
		}
		if i > 0 && order(all[i-1], o) >= 0 {
			errs = append(errs, fmt.Errorf("%s in %s, %s, must not come before %s in %s, %s", all[i-1].Type.Name, all[i-1].Zone, all[i-1].Market,
				o.Type.Name, o.Zone, o.Market))
		}
	}
	return errors.Join(errs...)
}

func order(a, b drover.Offering) int {
	return cmp.Or(cmp.Compare(a.Type.Name, b.Type.Name), cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.Market, b.Market))
}

func checkCreate(ctx context.Context, t *trial) error {
	r := t.request()
	in, taken, err := t.create(ctx, r)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(r.Candidates, taken.Same) {
		return fmt.Errorf("the cloud chose %v, which is not one of %v", taken, r.Candidates)
	}
	if got := in.Candidate(); !got.Same(taken) {
		return fmt.Errorf("the instance is a %v, but %v was chosen", got, taken)
	}
	if in.ID == "" || !slices.Contains([]driver.State{driver.Pending, driver.Running}, in.State) {
		return fmt.Errorf("the instance has id %q and state %q", in.ID, in.State)
	}
	return wantTags(in, r.Tags)
}

func checkFirstSight(ctx context.Context, t *trial) error {
	r := t.request()
	in, _, err := t.create(ctx, r)
	if err != nil {
		return err
	}
	// Without a filter, the list also contains an instance whose tags come late.
	_, err = t.untilListed(ctx, "the instance is listed", nil, func(all map[string]driver.Instance) (bool, error) {
		seen, ok := all[in.ID]
		if !ok {
			return false, nil
		}
		return true, wantTags(seen, r.Tags)
	})
	return err
}

func checkCreateAgain(ctx context.Context, t *trial) error {
	r := t.request()
	first, _, err := t.create(ctx, r)
	if err != nil {
		return err
	}
	again, _, err := t.create(ctx, r)
	if err != nil {
		return err
	}
	if first.ID != again.ID {
		return fmt.Errorf("two instances have the same name: %s and %s", first.ID, again.ID)
	}
	_, err = t.listed(ctx, r.Tags, 1)
	return err
}

func checkCreateRace(ctx context.Context, t *trial) error {
	r := t.request()
	ids, err := t.together(func(int) (string, error) {
		in, _, err := t.create(ctx, r)
		return in.ID, err
	})
	if err != nil {
		return err
	}
	if len(slices.Compact(ids)) != 1 {
		return fmt.Errorf("several instances have the same name: %v", ids)
	}
	_, err = t.listed(ctx, r.Tags, 1)
	return err
}

// together makes calls at once and returns their answers, sorted, or their errors.
func (t *trial) together(call func(i int) (string, error)) ([]string, error) {
	answers, errs := make([]string, crowd), make([]error, crowd)
	var calls sync.WaitGroup
	for i := range crowd {
		calls.Go(func() { answers[i], errs[i] = call(i) })
	}
	calls.Wait()
	slices.Sort(answers)
	return answers, errors.Join(errs...)
}

func checkImpossible(ctx context.Context, t *trial) error {
	r := t.request()
	r.Candidates = r.Candidates[:1]
	r.Candidates[0].ProviderType = "no-such-type"
	_, _, err := t.create(ctx, r)
	if err := wantKind("creating an instance of an unknown type", err, drover.KindInvalid, drover.KindUnsupported); err != nil {
		return err
	}
	if _, err := t.listed(ctx, r.Tags, 0); err != nil {
		return err
	}
	return t.tidy(ctx)
}

func checkNoCandidates(ctx context.Context, t *trial) error {
	r := t.request()
	r.Candidates = nil
	_, _, err := t.create(ctx, r)
	return wantKind("creating an instance without candidates", err, drover.KindInvalid)
}

func checkListByTags(ctx context.Context, t *trial) error {
	first, second := t.request(), t.request()
	first.Tags[driver.TagPool], second.Tags[driver.TagPool] = "one", "two"
	a, _, errA := t.create(ctx, first)
	b, _, errB := t.create(ctx, second)
	if err := errors.Join(errA, errB); err != nil {
		return err
	}
	both, err := t.listed(ctx, t.fleetTags(), 2)
	if err != nil {
		return err
	}
	if !has(both, a) || !has(both, b) {
		return fmt.Errorf("created %s and %s, listed %s", a.ID, b.ID, told(both))
	}
	_, err = t.listed(ctx, map[string]string{driver.TagFleet: t.Fleet, driver.TagPool: "two"}, 1)
	return err
}

func has(all map[string]driver.Instance, in driver.Instance) bool {
	_, ok := all[in.ID]
	return ok
}

func checkSetTags(ctx context.Context, t *trial) error {
	r := t.request()
	r.Tags[driver.TagPool] = "old"
	in, _, err := t.create(ctx, r)
	if err != nil {
		return err
	}
	next := map[string]string{driver.TagFleet: t.Fleet, driver.TagName: r.Name, driver.TagIdle: string(drover.IdleHold)}
	if err := t.eventually(ctx, "the cloud accepts the new tags", func(ctx context.Context) (bool, error) {
		err := t.cloud.SetTags(ctx, in.ID, next)
		if err != nil && drover.KindOf(err) == drover.KindTransient {
			return false, nil // it is still booting
		}
		return err == nil, err
	}); err != nil {
		return fmt.Errorf("set tags: %w", err)
	}
	_, err = t.untilListed(ctx, "the new tags are listed without the old ones", t.fleetTags(), func(all map[string]driver.Instance) (bool, error) {
		_, old := all[in.ID].Tags[driver.TagPool]
		return all[in.ID].Bears(next) && !old, nil
	})
	return err
}

// gone creates an instance and destroys it.
func (t *trial) gone(ctx context.Context) (driver.Instance, error) {
	r := t.request()
	in, _, err := t.create(ctx, r)
	if err != nil {
		return in, err
	}
	if err := t.cloud.Destroy(ctx, in.ID); err != nil {
		return in, fmt.Errorf("destroy: %w", err)
	}
	_, err = t.listed(ctx, r.Tags, 0)
	return in, err
}

func checkTagGone(ctx context.Context, t *trial) error {
	in, err := t.gone(ctx)
	if err != nil {
		return err
	}
	return wantKind("tagging an instance that is gone", t.cloud.SetTags(ctx, in.ID, t.fleetTags()), drover.KindNotFound)
}

func checkDestroy(ctx context.Context, t *trial) error {
	in, err := t.gone(ctx)
	if err != nil {
		return err
	}
	if err := t.cloud.Destroy(ctx, in.ID); err != nil {
		return fmt.Errorf("destroy again: %w", err)
	}
	return t.tidy(ctx)
}

func checkOtherFleet(ctx context.Context, t *trial) (err error) {
	h := t.Harness
	h.Fleet += "-other"
	other, err := h.begin(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, other.end(context.WithoutCancel(ctx))) }()
	theirs, err := other.one(ctx)
	if err != nil {
		return err
	}
	if _, err := other.listed(ctx, other.fleetTags(), 1); err != nil {
		return err
	}
	if _, err := t.gone(ctx); err != nil {
		return err
	}
	ours, err := t.list(ctx, t.fleetTags())
	if err == nil && has(ours, theirs) {
		err = fmt.Errorf("our list contains the other fleet's %s: listed %s", theirs.ID, told(ours))
	}
	if err != nil {
		return err
	}
	left, err := other.list(ctx, other.fleetTags())
	if err == nil && !has(left, theirs) {
		err = fmt.Errorf("the other fleet's %s was destroyed with ours: listed %s", theirs.ID, told(left))
	}
	return err
}

func checkReopen(ctx context.Context, t *trial) error {
	in, err := t.one(ctx)
	if err != nil {
		return err
	}
	if err := t.cloud.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	again, err := t.open(ctx, t.Fleet)
	if err != nil {
		return fmt.Errorf("open again: %w", err)
	}
	t.cloud = again
	found, err := t.listed(ctx, t.fleetTags(), 1)
	if err == nil && !has(found, in) {
		err = fmt.Errorf("created %s, listed %s", in.ID, told(found))
	}
	return err
}

func checkConcurrency(ctx context.Context, t *trial) error {
	ids, err := t.together(func(int) (string, error) {
		in, err := t.one(ctx)
		if err == nil {
			_, err = t.list(ctx, t.fleetTags())
		}
		return in.ID, err
	})
	if err != nil {
		return err
	}
	if n := len(slices.Compact(slices.Clone(ids))); n != crowd {
		return fmt.Errorf("%d create requests made %d instances", crowd, n)
	}
	if _, err := t.listed(ctx, t.fleetTags(), crowd); err != nil {
		return err
	}
	if _, err := t.together(func(i int) (string, error) { return "", t.cloud.Destroy(ctx, ids[i]) }); err != nil {
		return err
	}
	_, err = t.listed(ctx, t.fleetTags(), 0)
	return err
}

func checkMany(ctx context.Context, t *trial) error {
	if t.Many == 0 {
		return skip("the number of instances to create is not set")
	}
	for range t.Many {
		if _, err := t.one(ctx); err != nil {
			return err
		}
	}
	_, err := t.listed(ctx, t.fleetTags(), t.Many)
	return err
}

func checkContext(ctx context.Context, t *trial) error {
	in, err := t.one(ctx)
	if err != nil {
		return err
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	calls := map[string]func() error{
		"create":   func() error { _, _, err := t.create(ended, t.request()); return err },
		"list":     func() error { _, err := t.cloud.List(ended, t.fleetTags()); return err },
		"set tags": func() error { return t.cloud.SetTags(ended, in.ID, t.fleetTags()) },
		"destroy":  func() error { return t.cloud.Destroy(ended, in.ID) },
	}
	if d, can := driver.As[driver.Describer](t.cloud); can {
		calls["describe"] = func() error { _, err := d.Describe(ended, in.ID); return err }
	}
	for name, call := range calls {
		answer := make(chan error, 1)
		go func() { answer <- call() }()
		if err := t.eventually(ctx, name+" returns", func(context.Context) (bool, error) {
			select {
			case err := <-answer:
				return true, wantEnded(name, err)
			default:
				return false, nil
			}
		}); err != nil {
			return err
		}
	}
	return nil
}

func wantEnded(name string, err error) error {
	if err == nil {
		return fmt.Errorf("%s succeeded although its context had ended", name)
	}
	return nil
}
