package web

import (
	"cmp"
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
	list := eventList{Level: cmp.Or(r.URL.Query().Get("level"), "info"), Levels: []string{"debug", "info", "warn"}}
	var err error
	list.Events, err = lastEvents(ctx, r, drover.EventFilter{Level: list.Level, Last: eventsShown})
	return list, err
}
