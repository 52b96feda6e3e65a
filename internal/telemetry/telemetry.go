// Package telemetry tells Prometheus how a fleet does.
//
// There are two sorts of figures. Those of the present (how many instances, what they cost, what waits) are counted
// when they are asked for, from one snapshot of the engine, so that they always agree with each other and with what the
// API says. Those of what has happened (calls, boots, waits) are counted as it happens: the lives of jobs and instances
// from what was written down, so that nothing is counted which a crash could undo, the rest from effects and their
// answers, and from calls to clouds.
//
// One table names every metric, and no label can take a value that is not configured or a word of a closed list: the
// number of time series does not grow with that of jobs or instances. No other package knows of Prometheus, nor of
// OpenTelemetry, to which the lives of jobs are told as traces where that is wanted.
package telemetry

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Build is what this program is.
type Build struct {
	Version, Revision, Go string
}

// Telemetry counts what a controller does, as its observer, and tells it over HTTP. Its methods are safe for concurrent
// use.
type Telemetry struct {
	registry *prometheus.Registry
	present  *present
	counts
	lives  lives
	traces *traces // nil: none are wanted
}

// New makes the Telemetry of one controller.
func New(b Build) *Telemetry {
	t := &Telemetry{registry: prometheus.NewRegistry(), present: &present{build: b}, counts: newCounts(), lives: lives{known: map[int64]*life{}}}
	t.counts.register(t.registry)
	t.registry.MustRegister(t.present, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return t
}

// Ask has the figures of the present come from a source. Without one they are left out.
func (t *Telemetry) Ask(source Source) { t.present.ask(source) }

// Refused notes whether the configuration's file, as it is now, was refused.
func (t *Telemetry) Refused(so bool) { t.present.refused.Store(so) }

// scrapeTime is how long one answer may take.
const scrapeTime = 10 * time.Second

// Handler answers scrapes.
func (t *Telemetry) Handler() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: scrapeTime})
}
