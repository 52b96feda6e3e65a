package web

import (
	"cmp"
	"context"
	"net/url"
	"strings"

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

// mention is an event's text with its reason, around the name of its job or instance, which is a link.
type mention struct{ Before, Name, To, After string }

func mentionIn(e drover.Event) mention {
	text := e.Text
	if e.Reason != nil && !strings.Contains(text, e.Reason.Text) {
		text += ": " + e.Reason.Text
	}
	m := mention{Before: text, Name: e.Instance, To: "/instances/" + url.PathEscape(e.Instance)}
	if e.Job != nil {
		m.Name, m.To = "job "+e.Job.String(), "/jobs/"+e.Job.String()
		if _, after, named := strings.Cut(text, "job "); named {
			name, _, _ := strings.Cut(after, " ")
			m.Name = "job " + strings.TrimRight(name, ":")
		}
	}
	if before, after, found := strings.Cut(text, m.Name); found && m.Name != "" {
		m.Before, m.After = before, after
	} else {
		m.Before += " "
	}
	return m
}
