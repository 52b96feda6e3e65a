package main

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"drover"
)

// harmless is text that came from elsewhere, made into one line that cannot steer a terminal.
func harmless(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case steers(r):
			return '\uFFFD'
		}
		return r
	}, text)
}

// harmlessLines is the same for text of several lines.
func harmlessLines(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && steers(r) {
			return '\uFFFD'
		}
		return r
	}, text)
}

// steers reports whether a terminal may do something else with a character than show it: control characters, and those that turn the
// direction of writing.
func steers(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }

// age is a time span for people, of its two largest units.
func age(d time.Duration) string {
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

// ageOf is how long ago something was; empty if it never was.
func ageOf(t *time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return age(time.Since(*t))
}

// stamp is a time for people; empty for none.
func stamp(t *time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return t.Local().Format(time.DateTime)
}

// clock is the time of day of an instant, with its day if that is not today.
func clock(t drover.Time) string {
	local := t.Std().Local()
	if local.Format(time.DateOnly) == time.Now().Format(time.DateOnly) {
		return local.Format(time.TimeOnly)
	}
	return local.Format(time.DateTime)
}

// until says when something will have changed at the latest: "by 14:02:11, within 3m0s".
func until(t, now drover.Time) string {
	return fmt.Sprintf("by %s, within %s", clock(t), age(t.Sub(now)))
}

// dollars is an amount of money that came as a number.
func dollars(usd float64) string { return drover.Money(usd * float64(drover.Dollar)).String() }

// size is a size for people.
func size(b drover.Bytes) string { return b.Rounded() }

// plural is a number of things.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
