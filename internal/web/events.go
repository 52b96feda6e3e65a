package web

import (
	"context"

	"drover"
)

// eventsShown is how many events a page has.
const eventsShown = 200

type eventList struct {
	Level  string
	Levels []string
	Events []drover.Event
}

func (h *Handler) events(ctx context.Context, r *request) (any, error) {
	list := eventList{Level: r.URL.Query().Get("level"), Levels: []string{"debug", "info", "warn"}}
	if list.Level == "" {
		list.Level = "info"
	}
	var err error
	list.Events, err = lastEvents(ctx, r, drover.EventFilter{Level: list.Level, Last: eventsShown})
	return list, err
}
