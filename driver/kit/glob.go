package kit

import "strings"

// MatchGlob reports whether a text is as a pattern has it, in which * stands for any text.
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
