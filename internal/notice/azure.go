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

// azure asks for scheduled events. They are those of all instances that belong together (a scale set, an availability
// set), so those of this one are picked by its name. They are not acknowledged: that would bring them on at once.
type azure struct {
	metadata
	name string // this instance's, once known
}

// NewAzure returns the source of instances of Azure, whose metadata server is at the base URL.
func NewAzure(base string) (Source, error) {
	m, err := newMetadata(base)
	return &azure{metadata: m}, err
}

const (
	azureNamePath   = "/metadata/instance/compute/name?api-version=2021-02-01&format=text"
	azureEventsPath = "/metadata/scheduledevents?api-version=2020-07-01"
	// azureTimeout is long since the first question ever has the service switched on for the instance, which takes up
	// to two minutes.
	azureTimeout = 130 * time.Second
)

// azureEvent is one scheduled event.
type azureEvent struct {
	EventType string
	NotBefore string // RFC 1123, empty once it has begun
	Resources []string
}

// Pause is the usual one.
func (z *azure) Pause() time.Duration { return usualPause }

// Notice asks once.
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

// pick is the event that takes this instance away, the soonest of several.
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
