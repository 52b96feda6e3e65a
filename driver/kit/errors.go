package kit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"drover"
)

// Answer is a cloud's answer to a call that it refused, or its error for something that it could not make.
type Answer struct {
	Status  int    // of HTTP; 0: none
	Code    string // empty: none
	Message string
	Retry   time.Duration // the wait that the cloud requests; 0: none
}

// Foreign404 is the answer to read from a 404 response without the cloud's own error. It is transient and does not mean
// that something is gone: it may be from a proxy that has not found the cloud.
func Foreign404(cloud string) Answer {
	return Answer{Message: "HTTP 404 without an error message from " + cloud}
}

// maxMessage is how many bytes of a cloud's message are passed on.
const maxMessage = 500

// String formats the answer for people.
func (a Answer) String() string {
	code := a.Code
	if code == "" && a.Status != 0 {
		code = fmt.Sprint("HTTP ", a.Status)
	}
	words := strings.TrimSpace(a.Message)
	if len(words) > maxMessage {
		words = strings.ToValidUTF8(words[:maxMessage], "") + "…"
	}
	words = cmp.Or(words, http.StatusText(a.Status), "the cloud gave no details")
	if code == "" {
		return words
	}
	return code + ": " + words
}

// Row classifies an answer.
type Row struct {
	Says   string // CODE or STATUS, then optionally ": WORDS" that the message contains; * matches any text, ignoring case
	Kind   drover.ErrorKind
	Scope  drover.Scope
	Market bool   // it concerns only the requested market, as types and quota groups always do
	Hint   string // what a person can do about it; empty: the hint for its kind
}

// fits reports whether the row matches the answer.
func (r Row) fits(a Answer) bool {
	code, words, _ := strings.Cut(strings.ToLower(r.Says), ": ")
	if status, err := strconv.Atoi(code); err == nil {
		return status == a.Status && MatchGlob("*"+words+"*", strings.ToLower(a.Message))
	}
	return MatchGlob(code, strings.ToLower(a.Code)) && MatchGlob("*"+words+"*", strings.ToLower(a.Message))
}

// Rows are part of a table.
type Rows []Row

// Means makes a row for each answer of one class.
func Means(kind drover.ErrorKind, scope drover.Scope, says ...string) (rows Rows) {
	for _, text := range says {
		rows = append(rows, Row{Says: text, Kind: kind, Scope: scope})
	}
	return rows
}

// OfMarket limits the rows to the requested market.
func (rows Rows) OfMarket() Rows {
	for i := range rows {
		rows[i].Market = true
	}
	return rows
}

// WithHint sets the hint of all rows.
func (rows Rows) WithHint(hint string) Rows {
	for i := range rows {
		rows[i].Hint = hint
	}
	return rows
}

// Errors is how a driver classifies its cloud's errors. The first row that matches an answer counts; an answer that
// matches none is transient.
type Errors struct {
	Table  Rows
	Hints  map[drover.ErrorKind]string         // what a person can do about an error of a kind
	Read   func(err error) (Answer, bool)      // the cloud's answer, if the error contains one
	Again  func(now time.Time) time.Time       // when to call again after a rate limit for which the cloud gives no time
	Market drover.Market                       // the cloud's only market; empty: it has both
	ByName bool                                // a create looks up nothing by id, so KindNotFound means a wrong name in the request: KindInvalid
	Others func(doing string, err error) error // classifies other errors that are not answers; returns nil for unknown ones; may be nil
}

// Classify gives an error its kind, and adds what we were doing.
func (e *Errors) Classify(doing string, err error) error { return e.ClassifyIn(doing, e.Market, err) }

// ClassifyIn is Classify for a call that concerns a market.
func (e *Errors) ClassifyIn(doing string, m drover.Market, err error) error {
	var classed *drover.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &classed), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: %w", doing, err)
	}
	if a, answered := e.Read(err); answered {
		return e.Error(doing, m, a)
	}
	if e.Others != nil {
		if told := e.Others(doing, err); told != nil {
			return told
		}
	}
	return drover.Errorf(drover.KindTransient, "%s: %v", doing, err)
}

// ClassifyCreate is ClassifyIn for a create: see ByName.
func (e *Errors) ClassifyCreate(doing string, m drover.Market, err error) error {
	if a, answered := e.read(err); answered && e.row(a).Kind == drover.KindNotFound {
		return e.CreateError(doing, m, a)
	}
	return e.ClassifyIn(doing, m, err)
}

// CreateError is Error for a create: see ByName.
func (e *Errors) CreateError(doing string, m drover.Market, a Answer) *drover.Error {
	told := e.Error(doing, m, a)
	if e.ByName && told.Kind == drover.KindNotFound {
		told.Kind = drover.KindInvalid
	}
	return told
}

// Error returns the error for an answer.
func (e *Errors) Error(doing string, m drover.Market, a Answer) *drover.Error {
	row := e.row(a)
	told := &drover.Error{Kind: row.Kind, Scope: row.Scope, Hint: cmp.Or(row.Hint, e.Hints[row.Kind]), Message: fmt.Sprintf("%s: %v", doing, a)}
	if row.Market || row.Scope == drover.ScopeType || row.Scope == drover.ScopeQuotaGroup {
		told.Market = m
	}
	now := time.Now()
	switch {
	case a.Retry > 0:
		told.RetryAt = drover.TimeOf(now.Add(a.Retry))
	case row.Kind == drover.KindRateLimit && e.Again != nil:
		told.RetryAt = drover.TimeOf(e.Again(now))
	}
	return told
}

// row returns the first row that matches an answer.
func (e *Errors) row(a Answer) Row {
	for _, row := range e.Table {
		if row.fits(a) {
			return row
		}
	}
	return Row{Kind: drover.KindTransient}
}

// KindOf returns the kind of an error; empty for nil, and for an error that neither has a kind nor is an answer of the
// cloud.
func (e *Errors) KindOf(err error) drover.ErrorKind {
	if classed, ok := errors.AsType[*drover.Error](err); ok {
		return classed.Kind
	}
	if a, answered := e.read(err); answered {
		return e.row(a).Kind
	}
	return ""
}

// CodeOf returns the cloud's code of an error, empty if it has none.
func (e *Errors) CodeOf(err error) string {
	a, _ := e.read(err)
	return a.Code
}

// StatusOf returns the HTTP status of an answer, 0 if the cloud has not answered.
func (e *Errors) StatusOf(err error) int {
	a, _ := e.read(err)
	return a.Status
}

func (e *Errors) read(err error) (a Answer, answered bool) {
	if err == nil {
		return a, false
	}
	return e.Read(err)
}

// Gone is Classify for a call that succeeds if its object is already gone, such as a destroy.
func (e *Errors) Gone(doing string, err error) error {
	if e.KindOf(err) == drover.KindNotFound {
		return nil
	}
	return e.Classify(doing, err)
}

// Aside returns the error of a call about something other than the instance: if that is not found, the instance may
// still exist.
func (e *Errors) Aside(err error) error {
	if e.KindOf(err) == drover.KindNotFound {
		return drover.Errorf(drover.KindTransient, "%.500v", err)
	}
	return err
}

// In returns a fixed wait after a rate limit.
func In(d time.Duration) func(now time.Time) time.Time {
	return func(now time.Time) time.Time { return now.Add(d) }
}

// Knows reports whether there is a row for a code, whatever the message.
func (rows Rows) Knows(code string) bool {
	return slices.ContainsFunc(rows, func(r Row) bool { return r.fits(Answer{Code: code}) })
}

// MatchGlob reports whether a text matches a pattern in which * matches any text.
func MatchGlob(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	first, last := parts[0], parts[len(parts)-1]
	if len(parts) == 1 {
		return text == pattern
	}
	text, begins := strings.CutPrefix(text, first)
	for _, part := range parts[1 : len(parts)-1] {
		_, after, has := strings.Cut(text, part)
		text, begins = after, begins && has
	}
	return begins && strings.HasSuffix(text, last)
}
