package drover

import (
	"errors"
	"fmt"
)

// ErrorKind classifies an error by what can be done about it. The list is closed; new kinds are added only at its end.
type ErrorKind string

// The kinds of error. The first eight are what a cloud's answer can mean (see package driver).
const (
	KindTransient      ErrorKind = "transient"      // try again later; the outcome of the call may be unknown
	KindQuota          ErrorKind = "quota"          // the account's quota for this is used up
	KindCapacity       ErrorKind = "capacity"       // the cloud has no more of this
	KindRateLimit      ErrorKind = "rate_limit"     // too many calls; RetryAt says when the next may be made
	KindUnsupported    ErrorKind = "unsupported"    // this cloud, zone or driver cannot do it, ever
	KindAuthentication ErrorKind = "authentication" // the credentials were not accepted
	KindNotFound       ErrorKind = "not_found"
	KindInvalid        ErrorKind = "invalid" // the request is wrong; repeating it is useless
	KindUnreachable    ErrorKind = "unreachable"
	KindForbidden      ErrorKind = "forbidden"
	KindConflict       ErrorKind = "conflict"
	KindHostKey        ErrorKind = "host_key" // an instance did not prove its identity
	KindInternal       ErrorKind = "internal"
)

// outcomes maps each kind to the HTTP status and the exit code that a client sees.
var outcomes = map[ErrorKind]struct{ http, exit int }{
	KindTransient:      {503, 3},
	KindQuota:          {429, 1},
	KindCapacity:       {503, 1},
	KindRateLimit:      {429, 3},
	KindUnsupported:    {422, 2},
	KindAuthentication: {401, 4},
	KindNotFound:       {404, 2},
	KindInvalid:        {400, 2},
	KindUnreachable:    {502, 3},
	KindForbidden:      {403, 4},
	KindConflict:       {409, 2},
	KindHostKey:        {502, 3},
	KindInternal:       {500, 1},
}

// HTTPStatus is the status code of an API reply with this kind of error.
func (k ErrorKind) HTTPStatus() int {
	if o, ok := outcomes[k]; ok {
		return o.http
	}
	return 500
}

// ExitCode is the exit code of a command that ends with this kind of error.
func (k ErrorKind) ExitCode() int {
	if o, ok := outcomes[k]; ok {
		return o.exit
	}
	return 1
}

// Scope is how much a quota or capacity error covers.
type Scope string

// The scopes of an error, from narrow to wide. An error whose scope is not known covers everything, for a short while.
const (
	ScopeType       Scope = "type"        // this instance type in this zone and market
	ScopeQuotaGroup Scope = "quota_group" // all types that share its quota
	ScopeSubnet     Scope = "subnet"
	ScopeZone       Scope = "zone"
	ScopeAll        Scope = "all"
)

// Error is an error with a kind. Message says what we were doing and what went wrong, in lower case; Hint, if there is
// one, says what the reader can do next.
type Error struct {
	Kind    ErrorKind `json:"kind"`
	Scope   Scope     `json:"scope,omitempty"`  // of quota and capacity
	Market  Market    `json:"market,omitempty"` // for quota and capacity errors; empty: both
	RetryAt Time      `json:"retry_at,omitempty"`
	Message string    `json:"message"`
	Hint    string    `json:"hint,omitempty"`
}

// Error returns the message alone. Code that shows the error to a person adds the hint.
func (e *Error) Error() string { return e.Message }

// Explained returns the message and, after a semicolon, the hint if there is one.
func (e *Error) Explained() string {
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + "; " + e.Hint
}

// Errorf makes an Error of the given kind.
func Errorf(kind ErrorKind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// WithHint returns a copy of e that tells the reader what to do next.
func (e *Error) WithHint(format string, args ...any) *Error {
	c := *e
	c.Hint = fmt.Sprintf(format, args...)
	return &c
}

// AsError finds the Error in the chain of err, which must not be nil. Any other error becomes one of the given kind,
// with err's text.
func AsError(err error, otherwise ErrorKind) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		if e.Message == err.Error() {
			return e
		}
		c := *e
		c.Message = err.Error()
		return &c
	}
	return &Error{Kind: otherwise, Message: err.Error()}
}

// KindOf is the kind of err: KindInternal for an error without one, empty for nil.
func KindOf(err error) ErrorKind {
	if err == nil {
		return ""
	}
	return AsError(err, KindInternal).Kind
}
