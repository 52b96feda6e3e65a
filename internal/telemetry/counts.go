package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"drover"
)

// counts are the metrics of what has happened, by name.
type counts struct {
	counters   map[string]*prometheus.CounterVec
	histograms map[string]*prometheus.HistogramVec
}

// newCounts makes every metric of the table that is counted as it happens.
func newCounts() counts {
	c := counts{map[string]*prometheus.CounterVec{}, map[string]*prometheus.HistogramVec{}}
	for _, m := range table {
		switch {
		case m.ofPresent():
		case m.kind == counter:
			c.counters[m.name] = prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.name, Help: m.help}, m.labels)
		default:
			c.histograms[m.name] = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: m.name, Help: m.help, Buckets: m.buckets}, m.labels)
		}
	}
	return c
}

// begin begins series at 0: those of the metrics without labels, and those of hooks, so that Prometheus sees the first
// failure as an increase.
func (c counts) begin() {
	for _, m := range table {
		switch {
		case m.ofPresent() || len(m.labels) > 0:
		case m.kind == counter:
			c.counters[m.name].WithLabelValues()
		default:
			c.histograms[m.name].WithLabelValues()
		}
	}
	for _, h := range drover.Hooks() {
		c.counters[hooks].WithLabelValues(string(h), ok)
		c.counters[hooks].WithLabelValues(string(h), failed)
	}
}

func (c counts) register(r *prometheus.Registry) {
	for _, v := range c.counters {
		r.MustRegister(v)
	}
	for _, v := range c.histograms {
		r.MustRegister(v)
	}
}

func (c counts) count(name string, labels ...string) { c.add(name, 1, labels...) }

func (c counts) add(name string, n float64, labels ...string) {
	c.counters[name].WithLabelValues(labels...).Add(n)
}

// measure observes a duration. A negative one, after the clock was set back, counts as 0.
func (c counts) measure(name string, took time.Duration, labels ...string) {
	c.histograms[name].WithLabelValues(labels...).Observe(max(0, took.Seconds()))
}
