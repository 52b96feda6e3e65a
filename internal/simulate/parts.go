package simulate

import (
	"time"

	"drover"
)

// Parts are the categories of costs, as in `drover cost`.
type Parts struct {
	Jobs  float64 `json:"jobs"`  // used by jobs that ended, by their vCPUs
	Boot  float64 `json:"boot"`  // until instances were ready
	Idle  float64 `json:"idle"`  // unused from then on
	Waste float64 `json:"waste"` // used by attempts that were lost or interrupted
}

// hire is an instance that is being paid.
type hire struct {
	offering drover.Offering // when it was rented
	since    drover.Time
	until    drover.Time // when its bill ends, once it is gone
	tariff   drover.Tariff
	ready    bool
	off      bool          // it is stopped and costs nothing
	stopped  drover.Time   // when it was last stopped
	rested   time.Duration // total time it was stopped before
	used     float64       // vCPUs of running jobs
	counted  drover.Time   // the time up to which parts contains its cost
	parts    *Parts
}

// ran returns how long it was paid for running.
func (h *hire) ran(until drover.Time) time.Duration {
	if h.off {
		until = h.stopped
	}
	return until.Sub(h.since) - h.rested
}

// count adds the cost of the hire since the last call to parts.
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

// lost moves the cost of a lost attempt from jobs to waste.
func (h *hire) lost(need drover.Resources, took time.Duration) {
	cost := hourly(h.tariff.Price, took) * vcpus(need) / vcpus(h.offering.Type.Resources)
	h.parts.Jobs -= cost
	h.parts.Waste += cost
}

// hourly returns the cost of a period at an hourly price.
func hourly(price drover.Money, d time.Duration) float64 { return price.USD() * d.Hours() }
