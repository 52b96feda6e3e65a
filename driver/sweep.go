package driver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"drover"
)

// Stray is a resource beside the instances of a cloud that belongs to a fleet and that no instance owns: a volume, a network interface, an
// address that outlived its instance; or, if it is shared, something that the fleet's instances have in common, such as a key pair.
type Stray struct {
	Kind    string // in the cloud's words, such as "volume"
	ID      string
	Tags    map[string]string // TagFleet among them; where a cloud tags no such thing, its driver reads it from the name
	Created drover.Time       // 0 if the cloud does not say: then it goes only with its fleet
	Shared  bool              // of use to every instance of the fleet, so it goes when the last one has gone
}

// Sweeper is a Cloud in which something can be left over.
type Sweeper interface {
	// Strays lists what is left over of a fleet, and what its instances share, also while it has instances: Sweep decides what may go. What an instance owns, or will own once it has come to be,
	// is none, as far as the cloud can tell.
	Strays(ctx context.Context, fleet string) ([]Stray, error)

	// Remove takes a stray away. What is gone already, or has an owner after all, is no error.
	Remove(ctx context.Context, s Stray) error
}

// strayAge is how old a stray has to be before it is taken away while its fleet may live: a cloud makes an instance's parts before the instance.
const strayAge = time.Hour

// Life is what is known of a fleet whose leftovers are taken away.
type Life int

// The lives of a fleet, and what goes in each.
const (
	Living  Life = iota // what is older than an hour, and nothing that is shared
	Unheard             // it has no instances, and nothing says that somebody looks after it: what is older than an hour
	Ended               // all of it
)

// Sweep takes away what is left over of a fleet in a cloud that is a Sweeper, and returns what it took. What one stray fails at does not stop
// the others.
func Sweep(ctx context.Context, c Cloud, fleet string, now drover.Time, life Life) (swept []Stray, err error) {
	sweeper, ok := As[Sweeper](c)
	if !ok || fleet == "" {
		return nil, nil
	}
	all, err := sweeper.Strays(ctx, fleet)
	if err != nil {
		return nil, fmt.Errorf("looking for what fleet %s left over: %w", fleet, err)
	}
	for _, s := range all {
		old := s.Created != 0 && now.Sub(s.Created) >= strayAge
		if s.Tags[TagFleet] != fleet || life != Ended && !old || life == Living && s.Shared {
			continue
		}
		if failed := sweeper.Remove(ctx, s); failed != nil {
			err = errors.Join(err, fmt.Errorf("taking away %s %s: %w", s.Kind, s.ID, failed))
			continue
		}
		swept = append(swept, s)
	}
	return swept, err
}
