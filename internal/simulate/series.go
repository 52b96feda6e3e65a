package simulate

import "time"

// sample is the fleet and the queue at one moment, or their averages over a period.
type sample struct {
	instances float64 // being paid
	queued    float64 // jobs
	used      float64 // vCPUs of running jobs
	had       float64 // vCPUs of paid instances
	hourly    float64 // the sum of their prices, USD
}

func (s *sample) plus(o sample, weight float64) {
	s.instances += o.instances * weight
	s.queued += o.queued * weight
	s.used += o.used * weight
	s.had += o.had * weight
	s.hourly += o.hourly * weight
}

// maxBins is the maximum number of periods in a series. When a simulation needs more, each two become one, so that a
// year takes no more memory than an hour.
const maxBins = 1024

// series sums up samples, multiplied by seconds, over periods of equal width.
type series struct {
	width time.Duration
	bins  []sample
}

// add adds a sample that applies between two times since the beginning.
func (s *series) add(from, to time.Duration, what sample) {
	for to > s.width*maxBins {
		s.halve()
	}
	for from < to {
		at := int(from / s.width)
		for len(s.bins) <= at {
			s.bins = append(s.bins, sample{})
		}
		until := min(to, s.width*time.Duration(at+1))
		s.bins[at].plus(what, (until - from).Seconds())
		from = until
	}
}

func (s *series) halve() {
	for i := range (len(s.bins) + 1) / 2 {
		one := s.bins[2*i]
		if 2*i+1 < len(s.bins) {
			one.plus(s.bins[2*i+1], 1)
		}
		s.bins[i] = one
	}
	s.bins = s.bins[:(len(s.bins)+1)/2]
	s.width *= 2
}
