package httpapi

import (
	"context"
	"io"
	"net/http"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"drover"
	"drover/internal/logkey"
)

type logsInput struct {
	ID     drover.JobID `path:"id"`
	Stream string       `query:"stream" enum:"stdout,stderr" default:"stdout"`
	Follow bool         `query:"follow" doc:"continue, attempt after attempt, until the job is final"`

	Attempt int   `query:"attempt" minimum:"0" doc:"the attempt with this number, if its output is still kept; 0: the last"`
	Offset  int64 `query:"offset" minimum:"0" doc:"begin at this byte of the attempt's output, for example after a broken connection; exact for output up to 16 MiB"`
}

// logsOutput is written as it is read.
type logsOutput struct{ Body func(huma.Context) }

func (*logsOutput) describe(op *huma.Operation) {
	answers(op, "text/plain", &huma.Schema{Type: huma.TypeString})
}

func (h *Handler) logs(ctx context.Context, in *logsInput) (*logsOutput, error) {
	if err := h.mayRead(ctx, in.ID); err != nil {
		return nil, err
	}
	log, err := h.cfg.Service.Logs(ctx, drover.LogRequest{Job: in.ID, Stream: drover.Stream(in.Stream), Follow: in.Follow, Attempt: in.Attempt, Offset: in.Offset})
	if err != nil {
		return nil, err
	}
	return &logsOutput{func(x huma.Context) {
		x.SetHeader("Content-Type", "text/plain; charset=utf-8")
		h.send(x, log)
	}}, nil
}

// send copies from the reader as data arrives, and closes it. If reading fails, or the Handler closes before the end,
// it aborts the connection, so that nobody mistakes a part for the whole.
func (h *Handler) send(x huma.Context, from io.ReadCloser) {
	closed := sync.OnceFunc(func() { from.Close() })
	defer closed()
	defer context.AfterFunc(x.Context(), closed)() // reading may ignore the context
	x.SetStatus(http.StatusOK)
	w := flushing{x.BodyWriter()}
	w.flush()
	_, err := io.Copy(w, struct{ io.Reader }{from})
	if err != nil || x.Context().Err() != nil {
		h.cfg.Log.Debug("a response was cut short", logkey.Error, err)
		panic(http.ErrAbortHandler)
	}
}

// flushing sends each write at once.
type flushing struct{ io.Writer }

// Write writes and sends.
func (f flushing) Write(b []byte) (int, error) {
	n, err := f.Writer.Write(b)
	if err == nil {
		err = f.flush()
	}
	return n, err
}

func (f flushing) flush() error {
	if w, ok := f.Writer.(interface{ FlushError() error }); ok {
		return w.FlushError()
	}
	return nil
}
