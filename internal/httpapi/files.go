package httpapi

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"drover"
	"drover/internal/logkey"
)

type missingInput struct {
	Body []string `maxItems:"10000" doc:"SHA-256 sums, in hex"`
}

func (*missingInput) describe(op *huma.Operation) { op.MaxBodyBytes = maxHashed }

func (h *Handler) missingInputs(ctx context.Context, in *missingInput) (*output[[]string], error) {
	return asList(h.cfg.Service.MissingInputs(ctx, in.Body))
}

type putInputInput struct {
	Hash string `path:"hash" pattern:"^[0-9a-f]{64}$" doc:"SHA-256 of the contents, in hex"`

	contents io.Reader
}

var _ huma.Resolver = (*putInputInput)(nil)

func (*putInputInput) describe(op *huma.Operation) {
	op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		"application/octet-stream": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}},
	}}
	op.DefaultStatus = http.StatusNoContent
}

// Resolve keeps the body, which is not read before.
func (in *putInputInput) Resolve(ctx huma.Context) []error {
	in.contents = ctx.BodyReader()
	return nil
}

func (h *Handler) putInput(ctx context.Context, in *putInputInput) (*struct{}, error) {
	limit := h.cfg.Limits.Input
	contents := &bounded{r: in.contents, left: limit}
	err := h.cfg.Service.PutInput(ctx, in.Hash, contents)
	switch {
	case contents.over:
		return nil, tooLarge(limit)
	case err == nil:
		// Contents that exist already need not be read, but the client must still send all of them.
		_, err = io.Copy(io.Discard, contents)
	}
	return nil, err
}

var errTooLarge = errors.New("over the limit")

// bounded reads at most left bytes, and fails if there are more.
type bounded struct {
	r    io.Reader
	left int64
	over bool
}

// Read reads up to the limit.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		b.over = true
		return 0, errTooLarge
	}
	return n, err
}

func (h *Handler) outputs(ctx context.Context, in *jobInput) (*output[[]drover.File], error) {
	if err := h.mayRead(ctx, in.ID); err != nil {
		return nil, err
	}
	return asList(h.cfg.Service.Outputs(ctx, in.ID))
}

type outputInput struct {
	ID   drover.JobID `path:"id"`
	Path string       `query:"path" required:"true" doc:"a path from the list of outputs"`
}

// contentOutput is written as it is read.
type contentOutput struct{ Body func(huma.Context) }

func (*contentOutput) describe(op *huma.Operation) {
	answers(op, "application/octet-stream", &huma.Schema{Type: huma.TypeString, Format: "binary"})
	text := &huma.Schema{Type: huma.TypeString}
	tag := map[string]*huma.Param{"ETag": {Schema: text}}
	op.Responses["200"].Headers = tag
	op.Responses["206"] = &huma.Response{Description: "the requested bytes", Content: op.Responses["200"].Content, Headers: map[string]*huma.Param{"ETag": {Schema: text}, "Content-Range": {Schema: text}}}
	op.Responses["304"] = &huma.Response{Description: "the file has not changed", Headers: tag}
	op.Parameters = append(op.Parameters,
		&huma.Param{Name: "Range", In: "header", Description: "one range of bytes, such as bytes=8-; a request for several returns the entire file", Schema: text},
		&huma.Param{Name: "If-None-Match", In: "header", Description: "the ETag of an earlier answer, to read the file only if it has changed", Schema: text},
	)
}

func (h *Handler) output(ctx context.Context, in *outputInput) (*contentOutput, error) {
	if err := h.mayRead(ctx, in.ID); err != nil {
		return nil, err
	}
	content, err := h.cfg.Service.OpenOutput(ctx, in.ID, in.Path, 0)
	if err != nil {
		return nil, err
	}
	files, err := h.cfg.Service.Outputs(ctx, in.ID)
	at := slices.IndexFunc(files, func(f drover.File) bool { return f.Path == in.Path })
	if err == nil && at < 0 {
		err = drover.Errorf(drover.KindNotFound, "job %v has no output %.200q", in.ID, in.Path)
	}
	if err != nil {
		return nil, errors.Join(err, content.Close())
	}
	file := &outputFile{svc: h.cfg.Service, job: in.ID, file: files[at], content: content}
	return &contentOutput{func(x huma.Context) {
		defer func() { file.close() }()
		file.ctx = x.Context()
		x.SetHeader("Content-Type", "application/octet-stream")
		x.SetHeader("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(in.Path)}))
		if hash := files[at].Hash; hash != "" {
			x.SetHeader("ETag", `"`+hash+`"`)
		}
		r, w := humago.Unwrap(x)
		if strings.Contains(r.Header.Get("Range"), ",") {
			r.Header.Del("Range") // several parts would be read concurrently with the handler
		}
		checked := &rangeChecked{ResponseWriter: w}
		http.ServeContent(checked, r, "", time.Time{}, file)
		if checked.refused {
			h.refuse(w, newProblem(http.StatusRequestedRangeNotSatisfiable, drover.Errorf(drover.KindInvalid, "the output has no such range of bytes")))
		}
		if file.err != nil {
			h.cfg.Log.Debug("a response was cut short", logkey.Error, file.err)
			panic(http.ErrAbortHandler)
		}
	}}, nil
}

// rangeChecked leaves out http.ServeContent's answer to a range that the file does not have.
type rangeChecked struct {
	http.ResponseWriter
	refused bool
}

// WriteHeader notes the refusal of a range, and passes on any other status.
func (w *rangeChecked) WriteHeader(status int) {
	if w.refused = status == http.StatusRequestedRangeNotSatisfiable; w.refused {
		w.Header().Del("Content-Length")
		w.Header().Del("Content-Disposition")
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write passes on everything but the text of a refusal.
func (w *rangeChecked) Write(p []byte) (int, error) {
	if w.refused {
		return len(p), nil
	}
	return w.ResponseWriter.Write(p)
}

// outputFile is an output that can be read from any byte on, as http.ServeContent requires.
type outputFile struct {
	ctx     context.Context
	svc     drover.Queue
	job     drover.JobID
	file    drover.File
	content io.ReadCloser // from at on; nil if it must be opened there
	at      int64
	err     error // of reading
}

// Seek sets where reading continues.
func (f *outputFile) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += f.at
	case io.SeekEnd:
		offset += f.file.Size
	}
	if offset != f.at {
		f.close()
	}
	f.at = offset
	return offset, nil
}

// Read reads from the current offset.
func (f *outputFile) Read(p []byte) (n int, err error) {
	if err = f.ctx.Err(); err == nil && f.content == nil {
		f.content, err = f.svc.OpenOutput(f.ctx, f.job, f.file.Path, f.at)
	}
	if err == nil {
		n, err = f.content.Read(p)
	}
	if f.at += int64(n); err != nil && (err != io.EOF || f.at < f.file.Size) {
		f.err = err
	}
	return n, err
}

func (f *outputFile) close() {
	if f.content != nil {
		f.content.Close()
		f.content = nil
	}
}
