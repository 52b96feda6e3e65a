package middleware

import (
	"context"
	"log/slog"
	"maps"
	"sync"

	"drover"
	"drover/driver"
	"drover/internal/logkey"
)

// forgetAfter is how many lists in a row must omit an instance before FleetCloud forgets that it belonged to its fleet.
const forgetAfter = 1000

// FleetCloud is a Cloud that sees and touches only one fleet's instances, even if others use the account.
type FleetCloud struct {
	driver.Cloud
	fleet string

	mu    sync.Mutex
	log   *slog.Logger   // where the next list logs what others own; nil: it does not; guarded by mu
	later *slog.Logger   // where a later list does so, since the first has failed; guarded by mu
	again bool           // the next list is the last to do so; guarded by mu
	lists int            // guarded by mu
	seen  map[string]int // the number of the last list that had an instance of this fleet, by id; guarded by mu
}

// ForFleet wraps a cloud for a fleet.
func ForFleet(c driver.Cloud, fleet string) *FleetCloud {
	return &FleetCloud{Cloud: c, fleet: fleet, seen: map[string]int{}}
}

// LogOthers makes the next list, and only that one, cover the whole account and log how much of it others own. If that
// fails, one more list tries it after a successful list of the fleet: the cloud may have been down, or the account may
// be too large to list.
func (o *FleetCloud) LogOthers(log *slog.Logger) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.log = log
}

// Unwrap returns the cloud without the filter.
func (o *FleetCloud) Unwrap() driver.Cloud { return o.Cloud }

// Create refuses an instance without the fleet's tag: nobody could find it again.
func (o *FleetCloud) Create(ctx context.Context, r driver.CreateRequest) (driver.Instance, driver.Candidate, error) {
	if r.Tags[driver.TagFleet] != o.fleet {
		return driver.Instance{}, driver.Candidate{}, drover.Errorf(drover.KindInvalid, "create instance %s: its tags do not name fleet %s", r.Name, o.fleet)
	}
	in, taken, err := o.Cloud.Create(ctx, r)
	if err == nil {
		o.Adopt(in.ID)
	}
	return in, taken, err
}

// List returns the fleet's instances with all the tags, each once.
func (o *FleetCloud) List(ctx context.Context, tags map[string]string) ([]driver.Instance, error) {
	wanted := maps.Clone(tags)
	if wanted == nil {
		wanted = map[string]string{}
	}
	wanted[driver.TagFleet] = o.fleet
	asked, log := wanted, o.takeLog()
	if log != nil {
		asked = nil
	}
	all, err := o.Cloud.List(ctx, asked)
	o.noteOthers(log, err)
	if err != nil {
		return nil, err
	}
	if log != nil {
		o.tellOthers(log, all)
	}
	ours := make([]driver.Instance, 0, len(all))
	met := map[string]bool{}
	for _, in := range all {
		if !met[in.ID] && in.Bears(wanted) {
			met[in.ID] = true
			ours = append(ours, in)
		}
	}
	o.remember(ours)
	return ours, nil
}

// takeLog returns where to log what others own, for one list only.
func (o *FleetCloud) takeLog() *slog.Logger {
	o.mu.Lock()
	defer o.mu.Unlock()
	log := o.log
	o.log = nil
	return log
}

// noteOthers decides, after a list, whether another list logs what others own. If this list was to do so, log is not
// nil.
func (o *FleetCloud) noteOthers(log *slog.Logger, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case log != nil && err != nil && o.again:
		log.Info("any other instances in this account are unknown, since the account cannot be listed in full", logkey.Error, err)
	case log != nil && err != nil:
		o.later = log
	case log == nil && err == nil && o.later != nil:
		o.log, o.later, o.again = o.later, nil, true
	}
}

// tellOthers logs how many instances are not the fleet's, without naming them.
func (o *FleetCloud) tellOthers(log *slog.Logger, all []driver.Instance) {
	fleets := map[string]string{} // by id
	for _, in := range all {
		fleets[in.ID] = in.Tags[driver.TagFleet]
	}
	others, untagged := 0, 0
	for _, fleet := range fleets {
		switch fleet {
		case o.fleet:
		case "":
			untagged++
		default:
			others++
		}
	}
	if others+untagged > 0 {
		log.Info("this account contains instances that do not belong to the fleet; they are left alone", logkey.OfOtherFleets, others, logkey.OfNoFleet, untagged)
	}
}

// Describe returns KindForbidden for an instance of another fleet, and for one without a fleet tag that was never seen
// in this fleet. An instance with the fleet's tag may be touched from then on, even if no list contained it: lists lag,
// and after a restart there was none.
func (o *FleetCloud) Describe(ctx context.Context, id string) (driver.Instance, error) {
	d, can := driver.As[driver.Describer](o.Cloud)
	if !can {
		return driver.Instance{}, drover.Errorf(drover.KindUnsupported, "describe instance %s: this cloud does not support that", id)
	}
	in, err := d.Describe(ctx, id)
	if err != nil {
		return driver.Instance{Ended: in.Ended}, err
	}
	switch in.Tags[driver.TagFleet] {
	case o.fleet:
		o.Adopt(id)
	case "":
		err = o.check("describe", id)
	default:
		err = drover.Errorf(drover.KindForbidden, "describe instance %s: it belongs to another fleet", id)
	}
	if err != nil {
		return driver.Instance{}, err
	}
	return in, nil
}

// Destroy returns KindForbidden for an instance that was never seen in the fleet.
func (o *FleetCloud) Destroy(ctx context.Context, id string) error {
	if err := o.check("destroy", id); err != nil {
		return err
	}
	return o.Cloud.Destroy(ctx, id)
}

// SetTags returns KindForbidden for an instance that was never seen in the fleet.
func (o *FleetCloud) SetTags(ctx context.Context, id string, tags map[string]string) error {
	if err := o.check("tag", id); err != nil {
		return err
	}
	return o.Cloud.SetTags(ctx, id, tags)
}

// Start is refused as Destroy is.
func (o *FleetCloud) Start(ctx context.Context, id string) error {
	return o.touch(ctx, "start", id, driver.Starter.Start)
}

// Stop is refused as Destroy is.
func (o *FleetCloud) Stop(ctx context.Context, id string) error {
	return o.touch(ctx, "stop", id, driver.Starter.Stop)
}

func (o *FleetCloud) touch(ctx context.Context, doing, id string, do func(driver.Starter, context.Context, string) error) error {
	s, can := driver.As[driver.Starter](o.Cloud)
	if !can {
		return drover.Errorf(drover.KindUnsupported, "%s instance %s: this cloud does not support that", doing, id)
	}
	if err := o.check(doing, id); err != nil {
		return err
	}
	return do(s, ctx, id)
}

// GrowDisk is refused as Destroy is.
func (o *FleetCloud) GrowDisk(ctx context.Context, id string, size drover.Bytes) error {
	g, can := driver.As[driver.DiskGrower](o.Cloud)
	if !can {
		return drover.Errorf(drover.KindUnsupported, "grow the disk of instance %s: this cloud does not support that", id)
	}
	if err := o.check("grow the disk of", id); err != nil {
		return err
	}
	return g.GrowDisk(ctx, id, size)
}

// Adopt lets the fleet touch an instance, because a person or a record states that it is the fleet's.
func (o *FleetCloud) Adopt(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen[id] = o.lists
}

func (o *FleetCloud) check(doing, id string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, ok := o.seen[id]; !ok {
		return drover.Errorf(drover.KindForbidden, "%s instance %s: it has never been seen in fleet %s", doing, id, o.fleet)
	}
	return nil
}

// remember records the instances just listed, and forgets those that have been absent for a long time, to bound memory.
func (o *FleetCloud) remember(ours []driver.Instance) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lists++
	for _, in := range ours {
		o.seen[in.ID] = o.lists
	}
	maps.DeleteFunc(o.seen, func(_ string, last int) bool { return o.lists-last > forgetAfter })
}
