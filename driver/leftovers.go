package driver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"drover"
)

// Leftover is a resource of a fleet other than an instance: a volume, a network interface or an address that outlived
// its instance; or, if it is shared, something that all of the fleet's instances use, such as a key pair.
type Leftover struct {
	Kind    string // in the cloud's words, such as "volume"
	ID      string
	Tags    map[string]string // including TagFleet; the driver reads it from the name if the cloud does not tag such resources
	Created drover.Time       // 0 if the cloud does not report it: then it is removed only with its fleet
	Shared  bool              // used by every instance of the fleet, so it is removed after the last one
}

// Reaper is a Cloud that may have leftovers.
type Reaper interface {
	// Leftovers lists a fleet's leftovers and what its instances share, even while it has instances: Reap decides what
	// to remove. As far as the cloud can tell, it omits what an instance owns or will own once it exists. If it may not
	// list one kind of leftover, it returns the others together with the error.
	Leftovers(ctx context.Context, fleet string) ([]Leftover, error)

	// Remove removes a leftover. It succeeds if the leftover is already gone or has an owner after all.
	Remove(ctx context.Context, l Leftover) error
}

// leftoverAge is the minimum age at which a leftover of an active fleet is removed: a cloud makes an instance's parts
// before the instance.
const leftoverAge = time.Hour

// FleetState is how much is known about the fleet whose leftovers are removed.
type FleetState int

// The states of a fleet, and what Reap removes in each.
const (
	Active  FleetState = iota // removes what is older than an hour and not shared
	Unknown                   // no instances and no sign of a controller: removes what is older than an hour
	Ended                     // removes everything
)

// Reap removes a fleet's leftovers from a cloud that is a Reaper, and returns what it removed. If a list or a removal
// fails, it continues with the others.
func Reap(ctx context.Context, c Cloud, fleet string, now drover.Time, state FleetState) (reaped []Leftover, err error) {
	reaper, ok := As[Reaper](c)
	if !ok || fleet == "" {
		return nil, nil
	}
	all, err := reaper.Leftovers(ctx, fleet)
	if err != nil {
		err = fmt.Errorf("list leftovers of fleet %s: %w", fleet, err)
	}
	for _, l := range all {
		old := l.Created != 0 && now.Sub(l.Created) >= leftoverAge
		if l.Tags[TagFleet] != fleet || state != Ended && !old || state == Active && l.Shared {
			continue
		}
		if failed := reaper.Remove(ctx, l); failed != nil {
			err = errors.Join(err, fmt.Errorf("remove %s %s: %w", l.Kind, l.ID, failed))
			continue
		}
		reaped = append(reaped, l)
	}
	return reaped, err
}
