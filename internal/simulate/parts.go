package simulate

import (
	"time"

	"drover"
)

// Parts are what the money was for, as `drover cost` tells it apart.
type Parts struct {
	Jobs  float64 `json:"jobs"`  // what jobs had that came to their end, by their vCPUs
	Boot  float64 `json:"boot"`  // until instances were ready
	Idle  float64 `json:"idle"`  // what no job had from then on
	Waste float64 `json:"waste"` // what jobs had that were lost or interrupted
}

// hire is an instance that is paid.
type hire struct {
	offering drover.Offering // as it was when it was rented
	since    drover.Time
	until    drover.Time // it is paid, once it is gone
	tariff   drover.Tariff
	ready    bool
	off      bool          // it is stopped, and costs nothing
	stopped  drover.Time   // when it was last
	rested   time.Duration // how long it was before, in all
	used     float64       // vCPUs, by jobs that run
	counted  drover.Time   // up to when its cost is in parts
	parts    *Parts
}

// ran is how long it was paid as one that runs.
func (h *hire) ran(until drover.Time) time.Duration {
	if h.off {
		until = h.stopped
	}
	return until.Sub(h.since) - h.rested
}

// count puts into parts what the hire cost since that was last done.
func (h *hire) count(now drover.Time) {
	cost := hourly(h.tariff.Price, now.Sub(h.counted))
	h.counted = now
	jobs := cost * h.used / vcpus(h.offering.Type.Resources)
	h.parts.Jobs += jobs
	if h.ready {
		h.parts.Idle += cost - jobs
	} else {
		h.parts.Boot += cost - jobs
	}
}

// lost takes from the jobs' part what an attempt had that came to nothing.
func (h *hire) lost(need drover.Resources, took time.Duration) {
	cost := hourly(h.tariff.Price, took) * vcpus(need) / vcpus(h.offering.Type.Resources)
	h.parts.Jobs -= cost
	h.parts.Waste += cost
}

// hourly is what so long a time costs at a price.
func hourly(price drover.Money, d time.Duration) float64 { return price.USD() * d.Hours() }
