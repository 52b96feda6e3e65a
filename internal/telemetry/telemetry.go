// Package telemetry exports a fleet's metrics to Prometheus.
//
// There are two kinds of figures. Those of the present (how many instances, what they cost, what waits) are counted on
// request, from one snapshot of the engine, so that they always agree with each other and with the API. Those of what
// has happened (calls, boots, waits) are counted as it happens: the lives of jobs and instances from committed writes,
// so that a crash cannot undo anything counted; the rest from effects and their answers, and from calls to clouds.
//
// One table names every metric, and no label can take a value that is not configured or a word of a closed list: the
// number of time series does not grow with that of jobs or instances. No other package depends on Prometheus, or on
// OpenTelemetry, which optionally receives the lives of jobs as traces.
package telemetry

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Build identifies this program's build.
type Build struct {
	Version, Revision, Go string
}

// Telemetry counts what a controller does, as its observer, and serves the counts over HTTP. Its methods are safe for
// concurrent use.
type Telemetry struct {
	registry *prometheus.Registry
	present  *present
	counts
	lives  lives
	traces *traces // nil: none are sent
}

// New makes the Telemetry of one controller.
func New(b Build) *Telemetry {
	t := &Telemetry{registry: prometheus.NewRegistry(), present: &present{build: b}, counts: newCounts(), lives: lives{known: map[int64]*life{}}}
	t.counts.begin()
	t.counts.register(t.registry)
	t.registry.MustRegister(t.present, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return t
}

// Ask sets the source of the figures of the present. Without one they are left out.
func (t *Telemetry) Ask(source Source) { t.present.ask(source) }

// Refused records whether the configuration's present file was refused.
func (t *Telemetry) Refused(so bool) { t.present.refused.Store(so) }

// scrapeTime is how long one answer may take.
const scrapeTime = 10 * time.Second

// Handler answers scrapes.
func (t *Telemetry) Handler() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: scrapeTime})
}
