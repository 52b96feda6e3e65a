package simulate

import "time"

// sample is the fleet and the queue at one moment, or on average over a while.
type sample struct {
	instances float64 // that are paid
	queued    float64 // jobs
	used      float64 // vCPUs of jobs that run
	had       float64 // vCPUs of instances that are paid
	hourly    float64 // their prices together, USD
}

func (s *sample) plus(o sample, weight float64) {
	s.instances += o.instances * weight
	s.queued += o.queued * weight
	s.used += o.used * weight
	s.had += o.had * weight
	s.hourly += o.hourly * weight
}

// maxBins is how many spans of time a series has at most. When a simulation outlasts them, every two become one, so that a year is held in as
// little as an hour.
const maxBins = 1024

// series adds up samples over spans of equal width: sample times seconds.
type series struct {
	width time.Duration
	bins  []sample
}

// add has a sample hold from one time after the beginning to another.
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
