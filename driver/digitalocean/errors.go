package digitalocean

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"drover"
	"drover/driver/kit"

	"github.com/digitalocean/godo"
)

// meaning is what an answer means.
type meaning struct {
	status int    // 0: any
	says   string // a part of the message, in lower case
	kind   drover.ErrorKind
	scope  drover.Scope
	hint   string
}

// meanings are tried in this order. DigitalOcean's codes say no more than the status, so it is the message that tells a full region from a
// word misspelled.
var meanings = []meaning{
	{status: 401, kind: drover.KindAuthentication, hint: "make a new token in DigitalOcean's control panel"},
	{status: 403, kind: drover.KindAuthentication, hint: "give the token the scopes that docs/clouds/digitalocean.md lists"},
	{status: 404, kind: drover.KindNotFound},
	{status: 429, kind: drover.KindRateLimit},
	{status: 422, says: "droplet limit", kind: drover.KindQuota, scope: drover.ScopeAll, hint: "ask DigitalOcean for a higher Droplet limit"},
	{status: 422, says: "currently restricted", kind: drover.KindQuota, scope: drover.ScopeType, hint: "ask DigitalOcean to open this size to the account"},
	{status: 422, says: "image you specified is not available", kind: drover.KindInvalid, hint: "copy the image to the region"},
	{status: 422, says: "size is not available", kind: drover.KindCapacity, scope: drover.ScopeType},
	{status: 422, says: "size is unavailable", kind: drover.KindCapacity, scope: drover.ScopeType},
	{status: 422, says: "region is not available", kind: drover.KindCapacity, scope: drover.ScopeZone},
	{status: 422, says: "high demand", kind: drover.KindCapacity, scope: drover.ScopeZone},
	{status: 422, says: "pending event", kind: drover.KindTransient},
	{status: 422, says: "locked", kind: drover.KindTransient},
	{status: 422, says: unknownKey, kind: drover.KindTransient},
	{status: 422, kind: drover.KindInvalid},
	{status: 400, kind: drover.KindInvalid},
	{kind: drover.KindTransient},
}

// meant is the first of the meanings that an answer fits.
func meant(status int, message string) meaning {
	message = strings.ToLower(message)
	for _, m := range meanings {
		if (m.status == 0 || m.status == status) && strings.Contains(message, m.says) {
			return m
		}
	}
	return meaning{kind: drover.KindTransient}
}

func (m meaning) error(message string) *drover.Error {
	return &drover.Error{Kind: m.kind, Scope: m.scope, Message: message, Hint: m.hint}
}

// failed is what went wrong while something was done; nil if nothing did.
func failed(doing string, err error) error {
	if told, done := kit.Classed(doing, err); done {
		return told
	}
	var answer *godo.ErrorResponse
	if !errors.As(err, &answer) || answer.Response == nil {
		return drover.Errorf(drover.KindTransient, "%s: %v", doing, err)
	}
	e := meant(answer.Response.StatusCode, answer.Message).error(doing + ": " + told(answer))
	if e.Kind == drover.KindRateLimit {
		e.RetryAt = retryAt(answer.Response.Header, time.Now())
	}
	return e
}

// created is what went wrong with a create. Nothing is found there by an id, so what was not found was named wrongly.
func created(doing string, err error) error {
	err = failed(doing, err)
	if !is(err, drover.KindNotFound) {
		return err
	}
	e := *drover.AsError(err, drover.KindInvalid)
	e.Kind = drover.KindInvalid
	return &e
}

// told is an answer for people, with what DigitalOcean's support asks for.
func told(answer *godo.ErrorResponse) string {
	text := strconv.Itoa(answer.Response.StatusCode) + " " + strings.TrimSpace(answer.Message)
	if len(text) > 500 {
		text = text[:500] + "…"
	}
	if answer.RequestID != "" {
		text += " (request " + answer.RequestID + ")"
	}
	return text
}

// retryAt is when a next request may be made. Only what came too fast is told in seconds; what is beyond an hour's worth, by the clock.
func retryAt(h http.Header, now time.Time) drover.Time {
	if wait := kit.RetryAfter(h, now); wait > 0 {
		return drover.TimeOf(now.Add(wait))
	}
	reset, err := strconv.ParseInt(h.Get("Ratelimit-Reset"), 10, 64)
	if err != nil || time.Unix(reset, 0).Before(now) || time.Unix(reset, 0).After(now.Add(time.Hour)) {
		return 0
	}
	return drover.TimeOf(time.Unix(reset, 0))
}

// is says whether an error is of a kind.
func is(err error, kind drover.ErrorKind) bool { return err != nil && drover.KindOf(err) == kind }
