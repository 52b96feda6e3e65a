package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"drover"
)

// logShown is how much of the end of a log a page shows.
const logShown = 64 << 10

// logPage is the end of one output stream of a job.
type logPage struct {
	Job     drover.Job
	Stream  drover.Stream
	Attempt int
	Text    string
	Cut     bool   // the log begins earlier
	Follow  string // the address of the rest while the job goes on
	Raw     string
}

func (p logPage) title() string { return "Log of job " + p.Job.ID.String() }

// logs shows the end of a log, or sends it as it grows. While the job goes on, only the stream has the text, so that
// nothing appears twice; readers without JavaScript get a link to it.
func (h *Handler) logs(ctx context.Context, r *request) (any, error) {
	id, err := jobID(r)
	if err != nil {
		return nil, err
	}
	job, err := r.svc.Job(ctx, id)
	if err != nil {
		return nil, err
	}
	ask, err := logRequest(r, id)
	if err != nil {
		return nil, err
	}
	p := logPage{Job: job, Stream: ask.Stream, Attempt: ask.Attempt, Raw: "/jobs/" + id.String() + "/logs/raw?" + r.URL.RawQuery}
	if !job.State.Final() && ask.Attempt == 0 {
		p.Follow = "/jobs/" + id.String() + "/logs/follow?" + url.Values{"stream": {string(ask.Stream)}}.Encode()
	}
	log, err := r.svc.Logs(ctx, ask)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.Text, p.Cut, err = end(log)
	return p, err
}

// logRequest returns the request in the URL.
func logRequest(r *request, id drover.JobID) (ask drover.LogRequest, err error) {
	q := r.URL.Query()
	ask = drover.LogRequest{Job: id, Stream: drover.Stdout}
	if q.Get("stream") == string(drover.Stderr) {
		ask.Stream = drover.Stderr
	}
	if n := q.Get("attempt"); n != "" {
		if ask.Attempt, err = strconv.Atoi(n); err != nil || ask.Attempt < 0 {
			return ask, drover.Errorf(drover.KindInvalid, "%.20q is not an attempt number", n)
		}
	}
	return ask, nil
}

// end returns the last part of a text, from the beginning of a line on.
func end(from io.Reader) (text string, cut bool, err error) {
	var last []byte
	piece := make([]byte, logShown)
	for {
		n, err := from.Read(piece)
		last = append(last, piece[:n]...)
		if over := len(last) - logShown; over > 0 {
			last, cut = append(last[:0], last[over:]...), true
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return "", false, err
		}
	}
	return shownLog(fromLine(last, cut)), cut, nil
}

func fromLine(text []byte, cut bool) []byte {
	if at := bytes.IndexByte(text, '\n'); cut && at >= 0 {
		return text[at+1:]
	}
	return text
}

// shownLog makes untrusted text safe to show: it replaces invalid UTF-8 and characters that control a terminal.
func shownLog(text []byte) string {
	return drover.SanitizeLines(strings.ReplaceAll(strings.ToValidUTF8(string(text), "\uFFFD"), "\r\n", "\n"))
}

// gather is how long output is gathered before it is sent.
const gather = 150 * time.Millisecond

// followLog sends a log as it grows: first its present end, then what follows.
func (h *Handler) followLog(w http.ResponseWriter, r *request) error {
	id, err := jobID(r)
	if err != nil {
		return err
	}
	ask, err := logRequest(r, id)
	if err != nil {
		return err
	}
	ask.Follow = true
	done, err := h.streams.begin(r.who.User)
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	log, err := r.svc.Logs(ctx, ask)
	if err != nil {
		return err
	}
	defer log.Close()
	beginEvents(w)
	return sendLog(ctx, w, log)
}

// sendLog sends a log in pieces until it ends or nobody reads. The first replaces what the page shows.
func sendLog(ctx context.Context, w http.ResponseWriter, log io.Reader) error {
	pieces := make(chan []byte)
	go readPieces(ctx, log, pieces)
	swap, cut := "innerHTML", false
	var held []byte
	due := time.NewTimer(gather)
	for more := true; more; {
		var piece []byte
		select {
		case <-ctx.Done():
			return nil
		case piece, more = <-pieces:
			if len(held) == 0 {
				due.Reset(gather)
			}
			held = append(held, piece...)
			if over := len(held) - logShown; over > 0 {
				held, cut = append(held[:0], held[over:]...), true
			}
			if more {
				continue
			}
		case <-due.C:
		}
		if err := sendPiece(w, fromLine(held, cut), swap); err != nil {
			return nil // nobody reads
		}
		swap, cut, held = "beforeend", false, held[:0]
		due.Reset(keepAlive)
	}
	fmt.Fprint(w, "event: end\ndata: end\n\n")
	return http.NewResponseController(w).Flush()
}

func readPieces(ctx context.Context, log io.Reader, to chan<- []byte) {
	defer close(to)
	for {
		piece := make([]byte, 32<<10)
		n, err := log.Read(piece)
		select {
		case to <- piece[:n]:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

func sendPiece(w http.ResponseWriter, text []byte, swap string) (err error) {
	if len(text) == 0 && swap == "beforeend" {
		_, err = io.WriteString(w, ": still here\n\n")
	} else {
		err = sendMessage(w, fmt.Appendf(nil, `<hx-partial hx-target="#log" hx-swap="%s"><span>%s</span></hx-partial>`, swap, html.EscapeString(shownLog(text))))
	}
	if err != nil {
		return err
	}
	return http.NewResponseController(w).Flush()
}

// rawLog sends a whole log, unchanged.
func (h *Handler) rawLog(w http.ResponseWriter, r *request) error {
	id, err := jobID(r)
	if err != nil {
		return err
	}
	ask, err := logRequest(r, id)
	if err != nil {
		return err
	}
	log, err := r.svc.Logs(r.Context(), ask)
	if err != nil {
		return err
	}
	return send(w, log, "text/plain; charset=utf-8", "job-"+id.String()+"-"+string(ask.Stream)+".txt")
}

// output sends one of a job's output files. A browser never shows it as a page of the dashboard.
func (h *Handler) output(w http.ResponseWriter, r *request) error {
	id, err := jobID(r)
	if err != nil {
		return err
	}
	name := r.URL.Query().Get("path")
	file, err := r.svc.OpenOutput(r.Context(), id, name, 0)
	if err != nil {
		return err
	}
	return send(w, file, "application/octet-stream", path.Base(name))
}

// send sends a file as a download. If reading fails, it aborts the connection, so that nobody mistakes a part for the
// whole.
func send(w http.ResponseWriter, from io.ReadCloser, kind, name string) error {
	defer from.Close()
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Security-Policy", "sandbox; default-src 'none'")
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	if _, err := io.Copy(w, from); err != nil && !errors.Is(err, context.Canceled) {
		panic(http.ErrAbortHandler)
	}
	return nil
}
