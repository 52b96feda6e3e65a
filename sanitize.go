package drover

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Sanitize makes text that came from elsewhere one line that cannot steer a terminal.
func Sanitize(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case Steers(r):
			return utf8.RuneError
		}
		return r
	}, text)
}

// SanitizeLines does the same for text of several lines.
func SanitizeLines(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && Steers(r) {
			return utf8.RuneError
		}
		return r
	}, text)
}

// Steers reports whether a terminal may do something else with a character than show it: control characters, line
// separators, and what is invisible, such as the characters that turn the direction of writing.
func Steers(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}
