package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"

	"drover"
	"drover/internal/backoff"
)

const (
	firstPause = 200 * time.Millisecond // before reconnecting
	lastPause  = 10 * time.Second
	silence    = 3 * keepAlive // a stream of events that is silent this long is dead
	maxEvent   = 1 << 20       // bytes of a line, and about as many of an event
)

// Events follows events. After an interruption it reconnects and continues after the last event that it received; the
// controller reports events dropped meanwhile in Missed. Only the first connection must succeed at once.
func (c *Client) Events(ctx context.Context, f drover.EventFilter) iter.Seq2[drover.Event, error] {
	return func(yield func(drover.Event, error) bool) {
		w := &watcher{client: c, filter: f, yield: yield, pause: firstPause}
		for first := true; ; first = false {
			err := w.follow(ctx)
			switch {
			case w.done || ctx.Err() != nil:
				return
			case !passing(err) || first && !w.connected || f.Recent:
				yield(drover.Event{}, err)
				return
			}
			backoff.For(ctx, w.pause)
			w.pause = min(2*w.pause, lastPause)
		}
	}
}

// passing reports whether reconnecting may help.
func passing(err error) bool {
	kind := drover.KindOf(err)
	return kind == drover.KindUnreachable || kind == drover.KindTransient || kind == drover.KindRateLimit
}

// watcher follows events over one connection after the other.
type watcher struct {
	client    *Client
	filter    drover.EventFilter // After is the last event's id
	yield     func(drover.Event, error) bool
	pause     time.Duration
	connected bool
	done      bool // no more events will come
}

// follow yields the events of one connection. Its error is how the connection ended, unless w is done.
func (w *watcher) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	q := call{path: []string{"events"}, query: eventQuery(w.filter)}
	if w.filter.After != "" && w.connected {
		q.header = http.Header{"Last-Event-Id": {w.filter.After}}
	}
	answer, err := w.client.openOnce(ctx, q)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	w.connected = true

	deaf := time.AfterFunc(silence, cancel)
	defer deaf.Stop()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, maxEvent)
	var m sseMessage
	for lines.Scan() {
		deaf.Reset(silence)
		if !m.add(lines.Text()) {
			if len(m.data) > maxEvent {
				return w.client.unreachable(context.Background(), bufio.ErrTooLong)
			}
			continue
		}
		if err := w.take(m); err != nil || w.done {
			return err
		}
		m = sseMessage{}
	}
	err = lines.Err()
	if err == nil || errors.Is(err, context.Canceled) {
		err = io.ErrUnexpectedEOF
	}
	return w.client.unreachable(context.Background(), err)
}

// take yields the event in a message.
func (w *watcher) take(m sseMessage) error {
	switch {
	case m.kind == "end":
		w.done = true
		return nil
	case m.kind == "error":
		var p problem
		if err := json.Unmarshal(m.data, &p); err != nil {
			return w.client.unreachable(context.Background(), fmt.Errorf("reading an error: %w", err))
		}
		// An error of the service itself is final.
		w.done = true
		w.yield(drover.Event{}, p.asError())
		return nil
	case len(m.data) == 0:
		return nil
	}
	var e drover.Event
	if err := json.Unmarshal(m.data, &e); err != nil {
		return w.client.unreachable(context.Background(), fmt.Errorf("reading an event: %w", err))
	}
	w.pause = firstPause
	if e.ID != "" {
		w.filter.After = e.ID
	}
	w.done = !w.yield(e, nil)
	return nil
}

// sseMessage is a server-sent message, read line by line.
type sseMessage struct {
	kind string
	data []byte
}

// add adds a line, and reports whether it ended the message.
func (m *sseMessage) add(line string) (complete bool) {
	if line == "" {
		return true
	}
	name, value, _ := strings.Cut(line, ":")
	value = strings.TrimPrefix(value, " ")
	switch name {
	case "event":
		m.kind = value
	case "data":
		m.data = append(m.data, value...)
	}
	return false
}
