package notice

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"drover"
)

// gce queries the metadata server for preemption, which leaves the instance 30 seconds, and for termination because of
// host maintenance, which leaves it at least a minute. For preemption it uses a request that the server answers on a
// change, so that no time is lost.
type gce struct {
	metadata
	etag                   string // of the last answer about preemption
	preempted, maintenance custom
}

// NewGCE returns the source for Google Compute Engine instances, whose metadata server is at the base URL.
func NewGCE(base string) (Source, error) {
	m, err := newMetadata(base)
	return &gce{metadata: m}, err
}

const (
	gcePath       = "/computeMetadata/v1/instance/"
	gcePreempted  = "preempted"
	gceEvent      = "maintenance-event"
	gceTerminates = "TERMINATE_ON_HOST_MAINTENANCE"

	gcePreemptionWarning  = 30 * time.Second
	gceMaintenanceWarning = time.Minute
	// gceWait is how many seconds the server waits for a change before it answers; then Notice queries maintenance.
	gceWait = "5"
)

// Pause returns a short time: the server does the waiting, and each of the 30 seconds counts.
func (g *gce) Pause() time.Duration { return time.Second }

// Notice waits a while for a preemption, then queries maintenance.
func (g *gce) Notice(ctx context.Context) (*drover.Notice, error) {
	said, err := g.awaitPreemption(ctx)
	if err != nil {
		return nil, err
	}
	cause := ""
	if said == "TRUE" {
		cause = "preempted"
	}
	if n := g.preempted.notice(cause, gcePreemptionWarning); n != nil {
		return n, nil
	}
	if said, _, err = g.value(ctx, gceEvent, ""); err != nil {
		return nil, err
	}
	if said == gceTerminates {
		cause = "terminated for host maintenance"
	}
	return g.maintenance.notice(cause, gceMaintenanceWarning), nil
}

func (g *gce) awaitPreemption(ctx context.Context) (said string, err error) {
	query := ""
	if g.etag != "" {
		query = "?wait_for_change=true&timeout_sec=" + gceWait + "&last_etag=" + url.QueryEscape(g.etag)
	}
	said, etag, err := g.value(ctx, gcePreempted, query)
	g.etag = etag
	return said, err
}

// value queries one value. It accepts only an answer with the metadata server's own header.
func (g *gce) value(ctx context.Context, name, query string) (said, etag string, err error) {
	a, err := g.ask(ctx, 2*askTimeout, "GET", gcePath+name+query, "Metadata-Flavor", "Google")
	switch {
	case err != nil:
		return "", "", err
	case a.status != 200:
		return "", "", a.refused(name)
	case a.header.Get("Metadata-Flavor") != "Google":
		return "", "", errors.New("the server that answered is not the metadata server")
	}
	return strings.TrimSpace(string(a.body)), a.header.Get("ETag"), nil
}
