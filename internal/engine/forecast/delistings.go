package forecast

import (
	"slices"
	"time"

	"drover"
)

// Delisting returns for how long a cloud still lists an instance after accepting its destruction; false if that is
// unknown.
func (f *Forecast) Delisting(cloud string) (time.Duration, bool) {
	at, known := slices.BinarySearchFunc(f.delistings, cloud, compareStat)
	if !known {
		return 0, false
	}
	return f.delistings[at].Mean, true
}

// Delisted adds the time between the accepted destruction of an instance and its disappearance from the lists, which
// lies between the last list with it, or the acceptance, and the first without it. The middle counts, so that the
// estimate falls when the first list comes too late.
func (f *Forecast) Delisted(cloud string, accepted, with, without, now drover.Time) {
	took := max(with, accepted).Sub(accepted) + without.Sub(max(with, accepted))/2
	f.delistings = See(f.delistings, cloud, took, now)
}
