// Package human formats times, durations, money, counts and lists for people.
package human

import (
	"fmt"
	"math"
	"strings"
	"time"

	"drover"
)

// Age is a time span for people, of its two largest units.
func Age(d time.Duration) string {
	s := int64(max(d, 0).Round(time.Second) / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%ds", s/60, s%60)
	case s < 86400:
		return fmt.Sprintf("%dh%dm", s/3600, s%3600/60)
	}
	return fmt.Sprintf("%dd%dh", s/86400, s%86400/3600)
}

// AgeOf is how long ago something was; empty if it never was.
func AgeOf(t *time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return Age(time.Since(*t))
}

// Stamp is a time for people; empty for none.
func Stamp(t *time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return t.Local().Format(time.DateTime)
}

// Clock is the time of day of an instant, with its day if that is not today.
func Clock(t drover.Time) string {
	local := t.Std().Local()
	if local.Format(time.DateOnly) == time.Now().Format(time.DateOnly) {
		return local.Format(time.TimeOnly)
	}
	return local.Format(time.DateTime)
}

// UntilWords says by when a reason will have changed, or when Drover next asks a cloud that did not answer, which may
// change nothing. It is empty if that time is unknown or past.
func UntilWords(r drover.Reason, now drover.Time) string {
	switch {
	case r.Until <= now:
		return ""
	case r.Code == drover.ReasonUnlisted, r.Code == drover.ReasonCatalogue:
		return fmt.Sprintf("; next try at %s, in %s", Clock(r.Until), Age(r.Until.Sub(now)))
	}
	return fmt.Sprintf("; changes by %s at the latest, in %s", Clock(r.Until), Age(r.Until.Sub(now)))
}

// Dollars is an amount of money that came as a number.
func Dollars(usd float64) string {
	return drover.Money(math.Round(usd * float64(drover.Dollar))).String()
}

// Size is a size for people.
func Size(b drover.Bytes) string { return b.Rounded() }

// Plural is a number of things.
func Plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// And lists words: "a", "a and b" or "a, b and c".
func And(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}
