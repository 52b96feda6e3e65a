package web

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"time"

	"drover"
	"drover/internal/backoff"
)

// How often a live part is rendered.
const (
	period    = time.Second // at most
	share     = 100         // the pause is at least this many times as long as rendering took
	keepAlive = 15 * time.Second
)

// stillHere is an event without data, so that a page with nothing new can tell that it is still connected.
const stillHere = "event: still\n\n"

// stream sends the live part of a page whenever it has changed.
func (h *Handler) stream(w http.ResponseWriter, r *request, p *page) error {
	done, err := h.streams.begin(r.who.User)
	if err != nil {
		return err
	}
	defer done()
	beginEvents(w)
	var last []byte
	sent := time.Now()
	for {
		began := time.Now()
		if r.now = began; !r.now.Before(r.until) {
			return nil // the browser reconnects, and gets the error then
		}
		made, err := h.livePart(r, p)
		if err != nil {
			return nil
		}
		switch {
		case len(made) == 0:
		case !bytes.Equal(made, last):
			err = sendMessage(w, made)
			last, sent = made, time.Now()
		case time.Since(sent) > keepAlive:
			_, err = io.WriteString(w, stillHere)
			sent = time.Now()
		}
		if err == nil {
			err = http.NewResponseController(w).Flush()
		}
		if err != nil || backoff.For(r.Context(), max(period, share*time.Since(began))) != nil {
			return nil
		}
	}
}

// livePart renders the live part of a page. It shows an error in its place, except the end of a session. An error that
// will pass makes nothing: the page keeps what it shows and what was typed into its forms, and notices if this lasts.
func (h *Handler) livePart(r *request, p *page) ([]byte, error) {
	var made bytes.Buffer
	data, err := p.load(h, r.Context(), r)
	switch {
	case r.Context().Err() != nil:
		return nil, r.Context().Err()
	case drover.KindOf(err) == drover.KindAuthentication:
		return nil, err
	case drover.KindOf(err) == drover.KindRateLimit, drover.KindOf(err) == drover.KindTransient:
		return nil, nil
	case err != nil:
		err = h.pages["error"].write(&made, "live", h.frame(r, p, drover.AsError(err, drover.KindInternal)))
	default:
		err = p.write(&made, "part", h.frame(r, p, data))
	}
	return made.Bytes(), err
}

func beginEvents(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // a proxy must not buffer a slow stream
	w.WriteHeader(http.StatusOK)
}

// sendMessage sends a message of several lines of HTML. A carriage return would end a line of the stream as well.
func sendMessage(w io.Writer, text []byte) error {
	var b bytes.Buffer
	for line := range bytes.Lines(bytes.ReplaceAll(text, []byte("\r"), []byte("&#13;"))) {
		fmt.Fprintf(&b, "data: %s\n", bytes.TrimRight(line, "\n"))
	}
	b.WriteByte('\n')
	_, err := b.WriteTo(w)
	return err
}
