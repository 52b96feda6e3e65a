package notice

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"drover"
)

// azure queries scheduled events. The answer has the events of all instances in a scale set or availability set, so
// this instance's are selected by its name. They are not acknowledged: that would make them happen at once.
type azure struct {
	metadata
	name string // this instance's name; empty until known
}

// NewAzure returns the source for Azure instances, whose metadata server is at the base URL.
func NewAzure(base string) (Source, error) {
	m, err := newMetadata(base)
	return &azure{metadata: m}, err
}

const (
	azureNamePath   = "/metadata/instance/compute/name?api-version=2021-02-01&format=text"
	azureEventsPath = "/metadata/scheduledevents?api-version=2020-07-01"
	// azureTimeout is long since the first request enables the service for the instance, which takes up to two minutes.
	azureTimeout = 130 * time.Second
)

// azureEvent is one scheduled event.
type azureEvent struct {
	EventType string
	NotBefore string // RFC 1123, empty once it has begun
	Resources []string
}

// Pause returns usualPause.
func (z *azure) Pause() time.Duration { return usualPause }

// Notice queries the server once.
func (z *azure) Notice(ctx context.Context) (*drover.Notice, error) {
	if z.name == "" {
		a, err := z.ask(ctx, askTimeout, "GET", azureNamePath, "Metadata", "true")
		if err != nil {
			return nil, err
		}
		if z.name = strings.TrimSpace(string(a.body)); a.status != 200 || z.name == "" {
			z.name = ""
			return nil, a.refused("the instance's name")
		}
	}
	a, err := z.ask(ctx, azureTimeout, "GET", azureEventsPath, "Metadata", "true")
	if err != nil {
		return nil, err
	}
	if a.status != 200 {
		return nil, a.refused("scheduled events")
	}
	var said struct{ Events []azureEvent }
	if err := json.Unmarshal(a.body, &said); err != nil {
		return nil, fmt.Errorf("reading the scheduled events: %w", err)
	}
	return z.pick(said.Events), nil
}

// pick returns the notice of the soonest event that removes this instance; nil if there is none.
func (z *azure) pick(events []azureEvent) (n *drover.Notice) {
	for _, e := range events {
		mine := slices.ContainsFunc(e.Resources, func(r string) bool { return strings.EqualFold(r, z.name) })
		if !mine || e.EventType != "Preempt" && e.EventType != "Terminate" {
			continue
		}
		found := drover.Notice{Cause: "scheduled event: " + strings.ToLower(e.EventType)}
		if t, err := time.Parse(time.RFC1123, e.NotBefore); err == nil {
			found.Deadline = drover.TimeOf(t)
		}
		if n == nil || found.Deadline < n.Deadline {
			n = &found
		}
	}
	return n
}
