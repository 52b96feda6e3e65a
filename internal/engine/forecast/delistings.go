package forecast

import (
	"time"

	"drover"
)

// Delisting returns for how long a cloud still lists an instance after accepting its destruction; false if that is
// unknown.
func (f *Forecast) Delisting(cloud string) (time.Duration, bool) {
	s, known := stat(f.delistings, cloud)
	return s.Mean, known
}

// Delisted adds the time between the accepted destruction of an instance and its disappearance from the lists, which
// lies between the last list with it, or the acceptance, and the first without it. The middle counts, so that the
// estimate falls when the first list comes too late.
func (f *Forecast) Delisted(cloud string, accepted, with, without, now drover.Time) {
	last := max(with, accepted)
	f.delistings = See(f.delistings, cloud, last.Sub(accepted)+without.Sub(last)/2, now)
}
