package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"drover"
	"drover/internal/logkey"
)

// keepAlive is how often a stream without events sends a sign of life.
const keepAlive = 15 * time.Second

type explainInput struct {
	Subject string `query:"subject" maxLength:"512" doc:"a job, an instance, a cloud, pool/NAME, fleet, or an offering as CLOUD/ZONE/TYPE/MARKET (leave out parts or use patterns to select several); default: the fleet and everything that is waiting"`
}

func (h *Handler) explain(ctx context.Context, in *explainInput) (*output[[]drover.Explanation], error) {
	list, err := h.cfg.Service.Explain(ctx, in.Subject)
	for i := 0; i < len(list) && err == nil; i++ {
		list[i], err = h.explained(ctx, list[i])
	}
	return asList(list, err)
}

func (h *Handler) explainJob(ctx context.Context, in *jobInput) (*output[[]drover.Explanation], error) {
	return h.explain(ctx, &explainInput{in.ID.String()})
}

func (h *Handler) summary(ctx context.Context, _ *struct{}) (*output[drover.Summary], error) {
	sum, err := h.cfg.Service.Summary(ctx)
	if !h.readsAll(drover.IdentityOf(ctx)) {
		sum.Warnings = nil
	}
	return asOutput(sum, err)
}

func (h *Handler) status(ctx context.Context, _ *struct{}) (*output[drover.Status], error) {
	s, err := h.cfg.Service.Status(ctx)
	s.Budgets = h.ownBudgets(ctx, s.Budgets)
	if !h.readsAll(drover.IdentityOf(ctx)) {
		s.Refused = "" // it quotes the configuration
	}
	return asStatus(s, err)
}

// asStatus answers with a summary of the fleet.
func asStatus(s drover.Status, err error) (*output[drover.Status], error) {
	s.Waiting, s.Standing = array(s.Waiting), array(s.Standing)
	return asOutput(s, err)
}

type textOutput struct {
	ContentType string `header:"Content-Type"`
	Body        []byte
}

func (*textOutput) describe(op *huma.Operation) {
	answers(op, "text/plain", &huma.Schema{Type: huma.TypeString})
}

func (h *Handler) live(context.Context, *struct{}) (*textOutput, error) {
	return &textOutput{"text/plain; charset=utf-8", []byte("ok\n")}, nil
}

func (h *Handler) ready(ctx context.Context, in *struct{}) (*textOutput, error) {
	if h.open.Err() != nil {
		return nil, ending()
	}
	if h.cfg.Ready != nil {
		if err := h.cfg.Ready(ctx); err != nil {
			// Callers need no token, so they learn only this much.
			h.cfg.Log.Debug("not ready", logkey.Error, err)
			return nil, drover.Errorf(drover.KindTransient, "the controller is not ready")
		}
	}
	out, err := h.live(ctx, in)
	if err == nil && h.cfg.Notice != nil {
		if text := h.cfg.Notice(); text != "" {
			out.Body = append(out.Body, text+"\n"...)
		}
	}
	return out, err
}

type eventsInput struct {
	LastEventID string       `header:"Last-Event-ID" maxLength:"255" doc:"sent by a browser when it reconnects; overrides after"`
	After       string       `query:"after" maxLength:"255" doc:"only events after the one with this id"`
	Job         drover.JobID `query:"job" doc:"only events about this job, or the elements of this array"`
	Instance    string       `query:"instance" doc:"only events about the instance with this name"`
	Level       string       `query:"level" enum:"debug,info,warn" doc:"the lowest level; default: info"`
	Recent      bool         `query:"recent" doc:"end after the recent events instead of waiting for more"`
	Last        int          `query:"last" minimum:"0" maximum:"10000" doc:"only this many of the recent events, counted from the latest; ignored when the stream continues after an interruption; default: all"`
}

type eventsOutput struct{ Body func(huma.Context) }

func (*eventsOutput) describe(op *huma.Operation) {
	answers(op, "text/event-stream", &huma.Schema{
		Type: huma.TypeString,
		Description: "Each message's data is an event. A message of type error ends the stream with a problem; a message of type end says that there are no more events. " +
			"A stream that ends without either was interrupted; continue it with Last-Event-ID.",
	})
}

func (h *Handler) events(_ context.Context, in *eventsInput) (*eventsOutput, error) {
	f := drover.EventFilter{After: cmp.Or(in.LastEventID, in.After), Job: in.Job, Instance: in.Instance, Level: in.Level, Recent: in.Recent, Last: in.Last}
	if in.LastEventID != "" {
		f.Last = 0 // a stream that continues leaves nothing out
	}
	return &eventsOutput{func(x huma.Context) {
		x.SetHeader("Content-Type", "text/event-stream")
		x.SetStatus(http.StatusOK)
		h.sendEvents(x.Context(), flushing{x.BodyWriter()}, f)
	}}, nil
}

// happening is an event, or the error that ended them.
type happening struct {
	event drover.Event
	err   error
}

// sendEvents writes events until there are no more, the reader leaves, or the Handler closes.
func (h *Handler) sendEvents(ctx context.Context, w io.Writer, f drover.EventFilter) {
	ctx, cancel := context.WithCancel(ctx)
	happenings := make(chan happening)
	go h.watch(ctx, f, happenings)
	defer func() {
		cancel()
		for range happenings { // until watch has ended
		}
	}()
	witness := h.newWitness(ctx)
	beat := time.NewTicker(keepAlive)
	defer beat.Stop()
	err := message(w, ": the events of the fleet\n\n")
	for err == nil {
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
			err = message(w, ": still here\n\n")
		case next, more := <-happenings:
			switch {
			case ctx.Err() != nil:
				return
			case !more:
				_ = message(w, "event: end\ndata: {}\n\n")
				return
			case next.err != nil:
				_ = message(w, "event: error\ndata: "+oneLine(problemOf(h.problem(next.err)))+"\n\n")
				return
			}
			err = message(w, idLine(next.event.ID)+"data: "+oneLine(witness.shown(next.event))+"\n\n")
		}
	}
}

// watch passes on events until there are no more or ctx ends, and then closes the channel.
func (h *Handler) watch(ctx context.Context, f drover.EventFilter, to chan<- happening) {
	defer close(to)
	defer func() {
		if p := recover(); p != nil {
			h.cfg.Log.Error("panic while watching events", logkey.Panic, p, logkey.Stack, string(debug.Stack()))
			select {
			case to <- happening{err: failed()}:
			case <-ctx.Done():
			}
		}
	}()
	for event, err := range h.cfg.Service.Events(ctx, f) {
		select {
		case to <- happening{event, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

func message(w io.Writer, text string) error {
	_, err := io.WriteString(w, text)
	return err
}

func idLine(id string) string {
	if id == "" || strings.ContainsAny(id, "\r\n\x00") {
		return ""
	}
	return "id: " + id + "\n"
}

func oneLine(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("{%q:%q}", "detail", err)
	}
	return string(text)
}

type dumpOutput struct{ Body func(huma.Context) }

func (*dumpOutput) describe(op *huma.Operation) { answers(op, "application/json", &huma.Schema{}) }

func (h *Handler) dump(context.Context, *struct{}) (*dumpOutput, error) {
	return &dumpOutput{func(x huma.Context) {
		w := &begun{Writer: x.BodyWriter()}
		x.SetHeader("Content-Type", "application/json")
		err := h.cfg.Service.Dump(x.Context(), w)
		switch {
		case err != nil && !w.wrote:
			if out, ok := w.Writer.(http.ResponseWriter); ok {
				h.refuse(out, h.problem(err))
			}
		case err != nil:
			h.cfg.Log.Error("a dump cannot be written", logkey.Error, err)
			panic(http.ErrAbortHandler) // a part must not pass for the whole
		}
	}}, nil
}

// begun records whether anything was written.
type begun struct {
	io.Writer
	wrote bool
}

// Write writes, and records that.
func (b *begun) Write(p []byte) (int, error) {
	b.wrote = true
	return b.Writer.Write(p)
}
