package external

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"drover"
)

// kinds are those that a program may report. Any other word tells nothing, and so does none.
var kinds = []drover.ErrorKind{
	drover.KindTransient, drover.KindQuota, drover.KindCapacity, drover.KindRateLimit, drover.KindUnsupported, drover.KindAuthentication,
	drover.KindNotFound, drover.KindInvalid, drover.KindHostKey,
}

var scopes = []drover.Scope{drover.ScopeType, drover.ScopeQuotaGroup, drover.ScopeSubnet, drover.ScopeZone, drover.ScopeAll}

// What a rate limit lasts when the program does not say, and at most.
const (
	defaultRetry = 10 * time.Second
	mostRetry    = time.Hour
)

// maxMessage is how much of a program's message is kept.
const maxMessage = 1000

// classify is a program's error in Drover's words: a kind that is not known is transient, a scope that is not known is
// everything.
func (f *failure) classify() *drover.Error {
	e := &drover.Error{Kind: f.Kind, Scope: f.Scope, Market: f.Market, Message: printable(f.Message, maxMessage)}
	if !slices.Contains(kinds, e.Kind) {
		e.Kind = drover.KindTransient
	}
	if e.Message == "" {
		e.Message = fmt.Sprintf("the driver program gave no reason for this %s error", e.Kind)
	}
	if e.Market != drover.OnDemand && e.Market != drover.Spot {
		e.Market = ""
	}
	switch {
	case e.Kind != drover.KindQuota && e.Kind != drover.KindCapacity:
		e.Scope, e.Market = "", ""
	case !slices.Contains(scopes, e.Scope):
		e.Scope = drover.ScopeAll
	}
	if e.Kind == drover.KindRateLimit {
		e.RetryAt = drover.TimeOf(time.Now().Add(f.retry()))
	}
	return e
}

func (f *failure) retry() time.Duration {
	if s := f.RetryAfter; s > 0 && !math.IsNaN(s) {
		return time.Duration(min(s, mostRetry.Seconds()) * float64(time.Second))
	}
	return defaultRetry
}

// unclear is the error of a reply that says nothing that can be gone by: the outcome of the call is not known.
func unclear(format string, args ...any) error {
	return drover.Errorf(drover.KindTransient, "the driver program's reply is not valid: "+format, args...)
}

// printable is a text of a program's, cut and without what could steer a terminal.
func printable(text string, most int) string {
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD")))
}
