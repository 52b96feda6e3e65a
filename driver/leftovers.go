package driver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"drover"
)

// Leftover is a resource beside the instances of a cloud that belongs to a fleet and that no instance owns: a volume, a network interface, an
// address that outlived its instance; or, if it is shared, something that the fleet's instances have in common, such as a key pair.
type Leftover struct {
	Kind    string // in the cloud's words, such as "volume"
	ID      string
	Tags    map[string]string // TagFleet among them; where a cloud tags no such thing, its driver reads it from the name
	Created drover.Time       // 0 if the cloud does not say: then it goes only with its fleet
	Shared  bool              // of use to every instance of the fleet, so it goes when the last one has gone
}

// Reaper is a Cloud in which something can be left over.
type Reaper interface {
	// Leftovers lists what is left over of a fleet, and what its instances share, also while it has instances: Reap decides what may go. What an
	// instance owns, or will own once it has come to be, is none, as far as the cloud can tell.
	Leftovers(ctx context.Context, fleet string) ([]Leftover, error)

	// Remove takes a leftover away. What is gone already, or has an owner after all, is no error.
	Remove(ctx context.Context, l Leftover) error
}

// leftoverAge is how old a leftover has to be before it is taken away while its fleet may live: a cloud makes an instance's parts before the instance.
const leftoverAge = time.Hour

// FleetState is what is known of a fleet whose leftovers are taken away.
type FleetState int

// The states of a fleet, and what goes in each.
const (
	Active  FleetState = iota // what is older than an hour, and nothing that is shared
	Unknown                   // it has no instances, and nothing says that somebody looks after it: what is older than an hour
	Ended                     // all of it
)

// Reap takes away what is left over of a fleet in a cloud that is a Reaper, and returns what it took. What one leftover fails at does not stop
// the others.
func Reap(ctx context.Context, c Cloud, fleet string, now drover.Time, state FleetState) (reaped []Leftover, err error) {
	reaper, ok := As[Reaper](c)
	if !ok || fleet == "" {
		return nil, nil
	}
	all, err := reaper.Leftovers(ctx, fleet)
	if err != nil {
		return nil, fmt.Errorf("look for what fleet %s left over: %w", fleet, err)
	}
	for _, l := range all {
		old := l.Created != 0 && now.Sub(l.Created) >= leftoverAge
		if l.Tags[TagFleet] != fleet || state != Ended && !old || state == Active && l.Shared {
			continue
		}
		if failed := reaper.Remove(ctx, l); failed != nil {
			err = errors.Join(err, fmt.Errorf("take away %s %s: %w", l.Kind, l.ID, failed))
			continue
		}
		reaped = append(reaped, l)
	}
	return reaped, err
}
