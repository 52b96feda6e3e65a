package web

import (
	"bytes"
	"context"
	"fmt"
	"html"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

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

// logs shows the end of a log. While the job goes on, the first piece of followLog replaces it.
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
	last, cut, err := end(log)
	p.Text, p.Cut = shownLog(last), cut
	return p, err
}

// linesShown is how many lines of a failed job's log its page shows.
const linesShown = 10

// lastLines returns the last lines of what an attempt wrote to standard error or, if that is nothing, to standard output.
// They only illustrate why it failed, so no error keeps the page from being shown.
func lastLines(ctx context.Context, r *request, id drover.JobID, attempt int) string {
	for _, stream := range []drover.Stream{drover.Stderr, drover.Stdout} {
		log, err := r.svc.Logs(ctx, drover.LogRequest{Job: id, Stream: stream, Attempt: attempt})
		if err != nil {
			return ""
		}
		last, _, err := end(log)
		log.Close()
		lines := bytes.Split(bytes.TrimSpace(last[max(0, len(last)-longLine):]), []byte("\n"))
		if text := shownLog(bytes.Join(lines[max(0, len(lines)-linesShown):], []byte("\n"))); text != "" && err == nil {
			return text
		}
	}
	return ""
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
func end(from io.Reader) (last []byte, cut bool, err error) {
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
			return nil, false, err
		}
	}
	return fromLine(last, cut), cut, nil
}

func fromLine(text []byte, cut bool) []byte {
	if at := bytes.IndexByte(text, '\n'); cut && at >= 0 {
		return text[at+1:]
	}
	return text
}

// Text that only a terminal makes sense of. A string such as a title ends with its line at the latest, so that an
// unfinished one hides no more.
var (
	sequence    = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]?|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[ -/]*[0-~]?)`)
	overwritten = regexp.MustCompile(`[^\n]*\r+([^\r\n])`)
)

// shownLog makes untrusted text readable and safe to show: it leaves out sequences such as colours, and what a carriage
// return has overwritten, and replaces invalid UTF-8 and other characters that control a terminal.
func shownLog(text []byte) string {
	shown := sequence.ReplaceAllString(strings.ToValidUTF8(string(text), "\uFFFD"), "")
	return drover.SanitizeLines(strings.ReplaceAll(overwritten.ReplaceAllString(shown, "$1"), "\r", ""))
}

// Where the pieces of a followed log belong on the page.
const (
	firstPlace = `hx-target="#log" hx-swap="innerHTML"`
	nextPlace  = `hx-target="#unended" hx-swap="outerHTML"`
)

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
	ctx, cancel := context.WithDeadline(r.Context(), r.until)
	defer cancel()
	log, err := r.svc.Logs(ctx, ask)
	if err != nil {
		return err
	}
	defer log.Close()
	beginEvents(w)
	return sendLog(ctx, w, log, func() (final bool, err error) {
		job, err := r.svc.Job(ctx, id)
		if err != nil {
			return false, err
		}
		var made bytes.Buffer
		if err := h.pages["/jobs/{id}/logs"].made.ExecuteTemplate(&made, "progress", job); err != nil {
			return false, err
		}
		return job.State.Final(), sendMessage(w, made.Bytes())
	})
}

// sendLog sends a log in pieces until it ends or nobody reads. The first replaces what the page shows, each further one
// the last line if that had not ended. It sends the job's progress with the first piece, with the first output and at
// the end.
func sendLog(ctx context.Context, w http.ResponseWriter, log io.Reader, progress func() (final bool, err error)) error {
	pieces := make(chan []byte)
	go readPieces(ctx, log, pieces)
	place, cut, started := firstPlace, false, false
	var held []byte
	grown := false // held is more than the last line that was sent
	due := time.NewTimer(gather)
	for more := true; more; {
		var piece []byte
		select {
		case <-ctx.Done():
			return nil
		case piece, more = <-pieces:
			if !grown {
				due.Reset(gather)
			}
			held, grown = append(held, piece...), true
			if over := len(held) - logShown; over > 0 {
				held, cut = append(held[:0], held[over:]...), true
			}
			if more {
				continue
			}
		case <-due.C:
		}
		if place == firstPlace || len(held) > 0 && !started {
			if _, err := progress(); err != nil {
				return nil
			}
			started = len(held) > 0
		}
		ended, line := lines(fromLine(held, cut))
		if cut {
			ended = append([]byte(leftOut), ended...)
		}
		if err := sendPiece(w, ended, line, place, grown); err != nil {
			return nil // nobody reads
		}
		place, cut, grown, held = nextPlace, false, false, append(held[:0], line...)
		due.Reset(keepAlive)
	}
	if final, err := progress(); !final || err != nil {
		return nil // the browser reconnects
	}
	fmt.Fprint(w, "event: end\ndata: end\n\n")
	return http.NewResponseController(w).Flush()
}

// leftOut stands for output that came too fast to be shown.
const leftOut = "[some output is left out here; download all to see it]\n"

// longLine is the length from which on a line counts as ended, so that it is not sent again and again.
const longLine = 4 << 10

// lines splits a log into what stays as it is and the last line, without what that has overwritten: its rest can change
// how it is shown.
func lines(text []byte) (ended, line []byte) {
	at := bytes.LastIndexByte(text, '\n') + 1
	line = text[at:]
	line = line[bytes.LastIndexByte(bytes.TrimRight(line, "\r"), '\r')+1:]
	if len(line) > longLine {
		at = withoutPart(text)
		return text[:at], text[at:]
	}
	return text[:at], line
}

// withoutPart returns the length of a text without an incomplete character at its end.
func withoutPart(text []byte) int {
	for at := len(text) - 1; at >= max(0, len(text)-utf8.UTFMax); at-- {
		if utf8.RuneStart(text[at]) {
			if utf8.FullRune(text[at:]) {
				break
			}
			return at
		}
	}
	return len(text)
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

func sendPiece(w http.ResponseWriter, ended, line []byte, place string, grown bool) (err error) {
	if grown || place == firstPlace {
		err = sendMessage(w, fmt.Appendf(nil, `<hx-partial %s><span>%s</span><span id="unended">%s</span></hx-partial>`,
			place, html.EscapeString(shownLog(ended)), html.EscapeString(shownLog(line))))
	} else {
		_, err = io.WriteString(w, stillHere)
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
	if _, err := io.Copy(w, from); err != nil {
		panic(http.ErrAbortHandler)
	}
	return nil
}
