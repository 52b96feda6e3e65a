package notice

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"drover"
)

// gce asks the metadata server whether the instance is preempted, which leaves it 30 seconds, and whether it will be
// terminated for its host's maintenance, which leaves it a minute at least. For the first it waits at the server, so
// that not a second is lost.
type gce struct {
	metadata
	etag                   string // of the last answer about preemption
	preempted, maintenance custom
}

// NewGCE returns the source of instances of Google Compute Engine, whose metadata server is at the base URL.
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
	// gceWait is how long the server holds back an answer that has not changed; then maintenance is looked at.
	gceWait = "5"
)

// Pause is short, since the server is waited at: of 30 seconds each counts.
func (g *gce) Pause() time.Duration { return time.Second }

// Notice waits for a preemption, then asks for maintenance.
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

// value asks for one value. Only an answer that says to be the metadata server's is taken for one.
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
