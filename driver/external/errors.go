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

// kinds are the kinds that a program may report. Any other kind counts as none.
var kinds = []drover.ErrorKind{
	drover.KindTransient, drover.KindQuota, drover.KindCapacity, drover.KindRateLimit, drover.KindUnsupported, drover.KindAuthentication,
	drover.KindNotFound, drover.KindInvalid, drover.KindHostKey,
}

var scopes = []drover.Scope{drover.ScopeType, drover.ScopeQuotaGroup, drover.ScopeSubnet, drover.ScopeZone, drover.ScopeAll}

// How long a rate limit lasts if the program does not specify it, and the maximum.
const (
	defaultRetry = 10 * time.Second
	mostRetry    = time.Hour
)

// maxMessage is how much of a program's message is kept.
const maxMessage = 1000

// classify converts a program's error into Drover's: an unknown kind becomes transient, an unknown scope becomes
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

// unclear returns the error for an invalid reply: the outcome of the call is not known.
func unclear(format string, args ...any) *drover.Error {
	return drover.Errorf(drover.KindTransient, "the driver program's reply is not valid: "+format, args...)
}

// printable returns a program's text, truncated and without characters that could control a terminal.
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
