package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"drover"
	"drover/internal/config"
	"drover/internal/logkey"
)

// problem is an error response (RFC 9457). Besides the standard's fields it has all of a drover.Error's.
type problem struct {
	Type    string           `json:"type"`
	Title   string           `json:"title"`
	Status  int              `json:"status"`
	Detail  string           `json:"detail"`
	Kind    drover.ErrorKind `json:"kind"`
	Scope   drover.Scope     `json:"scope,omitempty"`
	Market  drover.Market    `json:"market,omitempty"`
	RetryAt drover.Time      `json:"retry_at,omitempty"`
	Hint    string           `json:"hint,omitempty"`
	Errors  []fault          `json:"errors,omitempty"`

	allow []string // methods, of a 405
}

// fault is one of several things wrong with a request.
type fault struct {
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	Location string `json:"location,omitempty"` // such as query.limit, or body
	Message  string `json:"message"`
	Hint     string `json:"hint,omitempty"`
}

// Error returns the problem in a sentence.
func (p *problem) Error() string { return p.Detail }

// GetStatus returns the answer's status.
func (p *problem) GetStatus() int { return p.Status }

// ContentType returns the content type of problem documents.
func (p *problem) ContentType(string) string { return "application/problem+json" }

// GetHeaders returns the answer's headers.
func (p *problem) GetHeaders() http.Header {
	headers := http.Header{}
	if p.RetryAt != 0 {
		headers.Set("Retry-After", strconv.Itoa(seconds(time.Until(p.RetryAt.Std()))))
	}
	if p.Status == http.StatusUnauthorized {
		headers.Set("WWW-Authenticate", `Bearer realm="drover"`)
	}
	if len(p.allow) > 0 {
		headers.Set("Allow", strings.Join(p.allow, ", "))
	}
	return headers
}

// asError returns the error that the problem was made of. A problem from another server may have no text.
func (p *problem) asError() *drover.Error {
	text := cmp.Or(p.Detail, p.Title, "an error without a message")
	return &drover.Error{Kind: p.Kind, Scope: p.Scope, Market: p.Market, RetryAt: p.RetryAt, Message: text, Hint: p.Hint}
}

// problemOf makes a problem of an error.
func problemOf(err error) *problem {
	var p *problem
	if errors.As(err, &p) {
		return p
	}
	var typed *drover.Error
	if !errors.As(err, &typed) && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		err = ending()
	}
	e := drover.AsError(err, drover.KindInternal)
	p = newProblem(e.Kind.HTTPStatus(), e)
	if faults, ok := errors.AsType[config.Faults](err); ok {
		for _, f := range faults {
			p.Errors = append(p.Errors, fault{Line: f.Line, Column: f.Column, Location: f.File, Message: f.Message, Hint: f.Hint})
		}
	}
	return p
}

func newProblem(status int, e *drover.Error) *problem {
	return &problem{
		Type: "about:blank", Title: http.StatusText(status), Status: status,
		Detail: e.Message, Kind: e.Kind, Scope: e.Scope, Market: e.Market, RetryAt: e.RetryAt, Hint: e.Hint,
	}
}

// noRoute returns the problem of a request without a route, or with a method that its path does not have.
func noRoute(r *http.Request, allowed []string) *problem {
	if len(allowed) == 0 {
		return newProblem(http.StatusNotFound, drover.Errorf(drover.KindNotFound, "the API has no path %s", cut(r.URL.Path)).WithHint("GET /openapi.json lists all paths"))
	}
	p := newProblem(http.StatusMethodNotAllowed, drover.Errorf(drover.KindUnsupported, "%s accepts %s, not %s", cut(r.URL.Path), strings.Join(allowed, ", "), cut(r.Method)))
	p.allow = allowed
	return p
}

// tooLarge returns the problem of a body that is over the limit.
func tooLarge(limit int64) *problem {
	return newProblem(http.StatusRequestEntityTooLarge, drover.Errorf(drover.KindInvalid, "the body is larger than %v", drover.Bytes(limit)))
}

// ofHuma makes a problem of an error that huma found in a request. It does not repeat the request, which may hold
// secrets.
func ofHuma(m *huma.ErrorModel, limit int64) *problem {
	status := m.Status
	switch status {
	case http.StatusRequestEntityTooLarge:
		return tooLarge(limit)
	case http.StatusUnprocessableEntity:
		status = http.StatusBadRequest
	}
	text := m.Detail
	p := newProblem(status, drover.Errorf(kindOf(status), ""))
	for _, e := range m.Errors {
		p.Errors = append(p.Errors, fault{Location: e.Location, Message: e.Message})
		text += fmt.Sprintf("; %s: %s", e.Location, e.Message)
	}
	p.Detail = "the request is not valid: " + text
	return p
}

// kindOf returns the kind of error that a status means when the answer does not name one.
func kindOf(status int) drover.ErrorKind {
	switch status {
	case http.StatusUnauthorized:
		return drover.KindAuthentication
	case http.StatusForbidden:
		return drover.KindForbidden
	case http.StatusNotFound:
		return drover.KindNotFound
	case http.StatusConflict:
		return drover.KindConflict
	case http.StatusTooManyRequests:
		return drover.KindRateLimit
	case http.StatusMethodNotAllowed:
		return drover.KindUnsupported
	case http.StatusRequestTimeout, http.StatusServiceUnavailable:
		return drover.KindTransient
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		return drover.KindUnreachable
	}
	if status >= 500 {
		return drover.KindInternal
	}
	return drover.KindInvalid
}

// problem makes a problem of a Service's error, and logs internal ones.
func (h *Handler) problem(err error) error {
	p := problemOf(err)
	if p.Kind == drover.KindInternal {
		h.cfg.Log.Error("a request failed", logkey.Error, err)
	}
	return p
}

// refuse answers with an error.
func (h *Handler) refuse(w http.ResponseWriter, err error) {
	p := problemOf(err)
	maps.Copy(w.Header(), p.GetHeaders())
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client may be gone
}
