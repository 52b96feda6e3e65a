package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"drover"
	"drover/internal/config"
)

// Submit sends the batch in the format of batch files.
func (c *Client) Submit(ctx context.Context, s drover.Submission) (receipt drover.Receipt, err error) {
	text, err := config.EncodeSubmission(s.Batch)
	if err != nil {
		return receipt, err
	}
	q := call{method: http.MethodPost, path: []string{"batches"}, query: url.Values{}, json: json.RawMessage(text)}
	put(q.query, "user", s.Batch.User)
	if s.Key != "" {
		if len(s.Key) > maxKey || strings.ContainsFunc(s.Key, func(r rune) bool { return r < ' ' || r > '~' }) {
			return receipt, drover.Errorf(drover.KindInvalid, "%q is not a valid submission key", cut(s.Key)).WithHint("use at most 255 printable ASCII characters")
		}
		q.header = http.Header{"Idempotency-Key": {s.Key}}
	}
	return answerTo[drover.Receipt](ctx, c, q)
}

// MissingInputs sends as many hashes per request as the controller accepts.
func (c *Client) MissingInputs(ctx context.Context, hashes []string) (missing []string, err error) {
	for part := range slices.Chunk(hashes, maxHashes) {
		var some []string
		if _, err := c.ask(ctx, call{method: http.MethodPost, path: []string{"inputs", "missing"}, json: part}, &some); err != nil {
			return nil, err
		}
		missing = append(missing, some...)
	}
	return missing, nil
}

// PutInput sends contents.
func (c *Client) PutInput(ctx context.Context, hash string, contents io.Reader) error {
	source := &source{Reader: contents}
	answer, err := c.openOnce(ctx, call{method: http.MethodPut, path: []string{"inputs", hash}, body: source, kind: "application/octet-stream"})
	switch {
	case source.err != nil:
		return fmt.Errorf("reading an input: %w", source.err)
	case err != nil:
		return err
	}
	return answer.Body.Close()
}

// source keeps the error of reading its contents, which is not the controller's fault. It hides their Close method,
// which the HTTP client would call.
type source struct {
	io.Reader
	err error
}

// Read reads, and keeps an error.
func (s *source) Read(b []byte) (int, error) {
	n, err := s.Reader.Read(b)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// Jobs requests one page.
func (c *Client) Jobs(ctx context.Context, f drover.JobFilter) (page drover.Page[drover.Job], err error) {
	headers, err := c.ask(ctx, call{path: []string{"jobs"}, query: jobQuery(f)}, &page.Items)
	page.Next = nextOf(headers.Get("Link"))
	return page, err
}

// Job requests one job.
func (c *Client) Job(ctx context.Context, id drover.JobID) (drover.Job, error) {
	return answerTo[drover.Job](ctx, c, call{path: []string{"jobs", id.String()}})
}

// Cancel requests the end of a job.
func (c *Client) Cancel(ctx context.Context, id drover.JobID, reason string) (drover.Job, error) {
	return answerTo[drover.Job](ctx, c, call{method: http.MethodPost, path: []string{"jobs", id.String(), "cancel"}, json: reasonBody{reason}})
}

// Retry requests that a final job be requeued.
func (c *Client) Retry(ctx context.Context, id drover.JobID, reason string) (drover.Job, error) {
	return answerTo[drover.Job](ctx, c, call{method: http.MethodPost, path: []string{"jobs", id.String(), "retry"}, json: reasonBody{reason}})
}

// RetryWith requests that a final job be requeued with its specification in the batch.
func (c *Client) RetryWith(ctx context.Context, id drover.JobID, batch drover.Batch, reason string) (job drover.Job, err error) {
	text, err := config.EncodeSubmission(batch)
	if err != nil {
		return job, err
	}
	body := retryBody{reason, &withBatch{text}}
	return answerTo[drover.Job](ctx, c, call{method: http.MethodPost, path: []string{"jobs", id.String(), "retry"}, json: body})
}

// SetPriority requests another priority for a job.
func (c *Client) SetPriority(ctx context.Context, id drover.JobID, priority int) (drover.Job, error) {
	return answerTo[drover.Job](ctx, c, call{method: http.MethodPatch, path: []string{"jobs", id.String()}, json: priorityBody{priority}})
}

// SetPaused requests that the queue be paused or resumed.
func (c *Client) SetPaused(ctx context.Context, paused bool, reason string) (drover.Status, error) {
	verb := "resume"
	if paused {
		verb = "pause"
	}
	return answerTo[drover.Status](ctx, c, call{method: http.MethodPost, path: []string{"queue", verb}, json: reasonBody{reason}})
}

// Logs reads a stream as it arrives. If the connection breaks, it fails with KindUnreachable; the caller has the Offset
// at which to continue.
func (c *Client) Logs(ctx context.Context, r drover.LogRequest) (io.ReadCloser, error) {
	q := url.Values{}
	put(q, "stream", string(r.Stream))
	put(q, "follow", r.Follow)
	put(q, "attempt", r.Attempt)
	put(q, "offset", r.Offset)
	return c.read(ctx, call{path: []string{"jobs", r.Job.String(), "logs"}, query: q})
}

// Outputs requests the list of files.
func (c *Client) Outputs(ctx context.Context, id drover.JobID) ([]drover.File, error) {
	return answerTo[[]drover.File](ctx, c, call{path: []string{"jobs", id.String(), "outputs"}})
}

// OpenOutput reads a file as it arrives.
func (c *Client) OpenOutput(ctx context.Context, id drover.JobID, path string, from int64) (io.ReadCloser, error) {
	q := call{path: []string{"jobs", id.String(), "outputs", "content"}, query: url.Values{"path": {path}}}
	if from > 0 {
		q.header = http.Header{"Range": {fmt.Sprintf("bytes=%d-", from)}}
	}
	answer, err := c.open(ctx, q)
	if err != nil {
		return nil, err
	}
	if from > 0 && answer.StatusCode != http.StatusPartialContent {
		answer.Body.Close()
		return nil, drover.Errorf(drover.KindInternal, "the controller at %s cannot send part of an output", c.base.String())
	}
	return answer.Body, nil
}

// read makes a call whose answer is read as it arrives.
func (c *Client) read(ctx context.Context, q call) (io.ReadCloser, error) {
	answer, err := c.open(ctx, q)
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}
