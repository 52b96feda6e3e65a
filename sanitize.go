package drover

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Sanitize turns text from elsewhere into one line without characters that could control a terminal.
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

// SanitizeLines does the same, but keeps line breaks and tabs.
func SanitizeLines(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && Steers(r) {
			return utf8.RuneError
		}
		return r
	}, text)
}

// Steers reports whether a terminal may do anything other than show the character: control characters, line separators,
// and invisible characters, such as those that change the direction of writing.
func Steers(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}
