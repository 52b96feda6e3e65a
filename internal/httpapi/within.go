package httpapi

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"drover"
)

// Within makes a Client of a Handler in this process, for pages that are served beside it: they show and do only what
// their reader's token allows.
func Within(h http.Handler, token drover.Secret) *Client {
	c, err := NewClient("http://localhost", token, &http.Client{Transport: within{h}})
	if err != nil {
		panic(err) // the URL is valid
	}
	c.patience = 10 * time.Minute // the caller has a deadline of its own
	return c
}

// within carries requests to a handler of this process, and answers back as they are written.
type within struct{ http.Handler }

// RoundTrip returns once the answer begins.
func (h within) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	in := r.Clone(ctx)
	in.RequestURI, in.Host = r.URL.RequestURI(), r.URL.Host
	if in.Body == nil {
		in.Body = http.NoBody
	}
	reader, writer := io.Pipe()
	a := &innerAnswer{header: http.Header{}, body: writer, begun: make(chan struct{})}
	go h.answer(a, in)
	select {
	case <-a.begun:
	case <-ctx.Done():
		cancel()
		reader.CloseWithError(ctx.Err())
		return nil, ctx.Err()
	}
	return &http.Response{
		Status: http.StatusText(a.status), StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.sent, Body: &innerBody{reader, cancel}, ContentLength: -1, Request: r,
	}, nil
}

// answer runs the handler. One that aborts its answer panics.
func (h within) answer(a *innerAnswer, r *http.Request) {
	defer func() {
		if p := recover(); p != nil {
			a.body.CloseWithError(io.ErrUnexpectedEOF)
		}
		a.WriteHeader(http.StatusOK)
		a.body.Close()
	}()
	h.ServeHTTP(a, r)
}

// innerAnswer is an answer as its handler writes it.
type innerAnswer struct {
	header http.Header
	body   *io.PipeWriter
	once   sync.Once
	begun  chan struct{} // closed once status and sent are set
	status int
	sent   http.Header
}

// Header returns the headers that WriteHeader sends.
func (a *innerAnswer) Header() http.Header { return a.header }

// WriteHeader begins the answer.
func (a *innerAnswer) WriteHeader(status int) {
	a.once.Do(func() {
		a.status, a.sent = status, a.header.Clone()
		close(a.begun)
	})
}

// Write waits until it is read.
func (a *innerAnswer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}

// Flush begins the answer; what is written is read at once anyway.
func (a *innerAnswer) Flush() { a.WriteHeader(http.StatusOK) }

// innerBody is an answer as it is read. Closing it ends the request.
type innerBody struct {
	*io.PipeReader
	cancel context.CancelFunc
}

// Close ends the request.
func (b *innerBody) Close() error {
	b.cancel()
	return b.PipeReader.Close()
}
