package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"drover"
)

const (
	patience  = time.Minute // the patience of a Client of another process
	maxAnswer = 1 << 30     // bytes of a JSON answer
)

// Client is a drover.Service that calls a controller over HTTP.
type Client struct {
	// Repeat, if set, makes a call, and may make it again after an error. It is not used for calls that send a file or
	// follow events.
	Repeat func(ctx context.Context, call func() error) error

	base  url.URL
	token drover.Secret
	http  http.Client

	patience time.Duration // for an answer to begin, and for a short one to be complete
}

var _ drover.Service = (*Client)(nil)

// NewClient makes a Client of the controller at a URL. It uses hc, or http.DefaultClient, but follows no redirects, so
// that the token goes only to the intended host. KindInvalid: base is not the URL of a controller, or the token would
// cross a network unencrypted. Plain http is only for this host, under a loopback name; another host needs https, or a
// tunnel that ends here.
func NewClient(base string, token drover.Secret, hc *http.Client) (*Client, error) {
	u, err := url.Parse(strings.TrimRight(base, "/"))
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "":
		return nil, drover.Errorf(drover.KindInvalid, "%q is not the URL of a controller", cut(base)).WithHint("use https://HOST, or http://127.0.0.1:8420 if the controller runs on this host")
	case u.User != nil:
		return nil, drover.Errorf(drover.KindInvalid, "the URL of the controller at %s contains a user name or password", u.Host).WithHint("give the token separately")
	case u.Scheme == "http" && !loopback(u.Hostname()) && token.Reveal() != "":
		return nil, drover.Errorf(drover.KindInvalid, "the token would be sent to %s in plain text", u.Host).
			WithHint("use https://%s, or a tunnel: ssh -L 8420:127.0.0.1:8420 %s", u.Hostname(), u.Hostname())
	}
	if hc == nil {
		hc = http.DefaultClient
	}
	c := &Client{base: *u, token: token, http: *hc, patience: patience}
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c, nil
}

// call is one request to be made.
type call struct {
	method string   // GET, unless given
	path   []string // its parts after /v1, not escaped
	bare   bool     // path is not below /v1
	query  url.Values
	header http.Header
	json   any       // its body, to be encoded; or
	body   io.Reader // its body as it is
	kind   string    // of body
}

// ask makes a call whose answer is short, and decodes it into into, unless that is nil. It returns the answer's
// headers.
func (c *Client) ask(ctx context.Context, q call, into any) (header http.Header, err error) {
	err = c.repeat(ctx, func() error {
		header, err = c.askOnce(ctx, q, into)
		return err
	})
	return header, err
}

func (c *Client) repeat(ctx context.Context, call func() error) error {
	if c.Repeat == nil {
		return call()
	}
	return c.Repeat(ctx, call)
}

func (c *Client) askOnce(ctx context.Context, q call, into any) (http.Header, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.patience, errNoAnswer)
	defer cancel()
	answer, err := c.openOnce(ctx, q)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if into == nil {
		return answer.Header, nil
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxAnswer)).Decode(into); err != nil {
		return nil, c.unreachable(ctx, fmt.Errorf("reading its response: %w", err))
	}
	return answer.Header, nil
}

// answerTo makes a call whose answer is short, and returns it decoded.
func answerTo[T any](ctx context.Context, c *Client, q call) (answer T, err error) {
	_, err = c.ask(ctx, q, &answer)
	return answer, err
}

var errNoAnswer = errors.New("it did not answer in time")

// open makes a call and returns its answer as soon as it begins, if it is a success. Closing its body ends the call.
func (c *Client) open(ctx context.Context, q call) (answer *http.Response, err error) {
	err = c.repeat(ctx, func() error {
		answer, err = c.openOnce(ctx, q)
		return err
	})
	return answer, err
}

func (c *Client) openOnce(ctx context.Context, q call) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	impatience := time.AfterFunc(c.patience, func() { cancel(errNoAnswer) })
	answer, err := c.send(ctx, q, impatience)
	impatience.Stop()
	if err != nil {
		err = c.unreachable(ctx, err)
		cancel(nil)
		return nil, err
	}
	if answer.StatusCode >= 300 {
		defer cancel(nil)
		defer answer.Body.Close()
		return nil, c.refusal(answer)
	}
	answer.Body = &answerBody{ReadCloser: answer.Body, client: c, ctx: ctx, cancel: cancel}
	return answer, nil
}

// send sends a request. It repeats a GET once if the connection broke before there was an answer.
func (c *Client) send(ctx context.Context, q call, impatience *time.Timer) (*http.Response, error) {
	r, err := c.request(ctx, q, impatience)
	if err != nil {
		return nil, err
	}
	answer, err := c.http.Do(r)
	if err != nil && r.Method == http.MethodGet && ctx.Err() == nil && (errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF)) {
		answer, err = c.http.Do(r)
	}
	return answer, err
}

func (c *Client) request(ctx context.Context, q call, impatience *time.Timer) (*http.Request, error) {
	body, kind := q.body, q.kind
	if q.json != nil {
		text, err := json.Marshal(q.json)
		if err != nil {
			return nil, fmt.Errorf("writing a request: %w", err)
		}
		body, kind = bytes.NewReader(text), "application/json"
	}
	if body != nil {
		body = &patientReader{body, impatience}
	}
	u := c.base
	if !q.bare {
		u = *u.JoinPath("v1")
	}
	for _, part := range q.path {
		u = *u.JoinPath(escape(part))
	}
	u.RawQuery = q.query.Encode()
	r, err := http.NewRequestWithContext(ctx, q.method, u.String(), body)
	if err != nil {
		return nil, err
	}
	maps.Copy(r.Header, q.header)
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	if token := c.token.Reveal(); token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return r, nil
}

// escape turns any text into one part of a path. A part of only dots could be a step in the path, and url.PathEscape
// leaves dots as they are.
func escape(part string) string {
	if strings.Trim(part, ".") == "" {
		return strings.ReplaceAll(part, ".", "%2E")
	}
	return url.PathEscape(part)
}

// patientReader restarts the wait for an answer while a body is being sent to the controller.
type patientReader struct {
	io.Reader
	impatience *time.Timer
}

// Read restarts the wait, and reads.
func (p *patientReader) Read(b []byte) (int, error) {
	p.impatience.Reset(patience)
	return p.Reader.Read(b)
}

// answerBody is a body whose errors report that the controller cannot be reached.
type answerBody struct {
	io.ReadCloser
	client *Client
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// Read reads from the body.
func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = b.client.unreachable(b.ctx, fmt.Errorf("its response was cut short: %w", err))
	}
	return n, err
}

// Close ends the call.
func (b *answerBody) Close() error {
	b.cancel(nil)
	return b.ReadCloser.Close()
}

// unreachable returns the error of a call without a complete answer. The end of its context is not the controller's
// fault.
func (c *Client) unreachable(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	switch {
	case cause != nil && !errors.Is(cause, errNoAnswer):
		return fmt.Errorf("calling the controller at %s: %w", c.base.Host, cause)
	case cause != nil:
		err = cause
	}
	if already, ok := errors.AsType[*drover.Error](err); ok {
		return already
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err // without the address, which the message has
	}
	return drover.Errorf(drover.KindUnreachable, "the controller at %s cannot be reached: %v", c.base.String(), err).
		WithHint("is drover serve running, and is this its address?")
}

// refusal returns the error that an answer reports.
func (c *Client) refusal(answer *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxBatch))
	var p problem
	if err == nil && strings.HasPrefix(answer.Header.Get("Content-Type"), "application/problem+json") && json.Unmarshal(text, &p) == nil && p.Kind != "" {
		return p.asError()
	}
	if to := answer.Header.Get("Location"); answer.StatusCode < 400 && to != "" {
		return drover.Errorf(drover.KindInvalid, "the controller at %s redirects to %s", c.base.String(), cut(to)).
			WithHint("if that is the controller, use that address; the token was not sent there")
	}
	if answer.StatusCode == http.StatusRequestEntityTooLarge {
		return drover.Errorf(drover.KindInvalid, "the proxy at %s refuses requests of this size", c.base.String()).
			WithHint("raise its limit; in nginx: client_max_body_size 0")
	}
	return drover.Errorf(kindOf(answer.StatusCode), "%s answered with %s, so it is not a Drover controller", c.base.String(), answer.Status).
		WithHint("check the controller's address")
}
