package drover_test

import (
	"testing"

	"drover"
)

func TestSanitize(t *testing.T) {
	for text, want := range map[string][2]string{
		"plain, é 世 👍":             {"plain, é 世 👍", "plain, é 世 👍"},
		"two\nlines\tand":          {"two lines and", "two\nlines\tand"},
		"\x1b[31mred\x1b[0m":       {"\uFFFD[31mred\uFFFD[0m", "\uFFFD[31mred\uFFFD[0m"},
		"\u009b2J":                 {"\uFFFD2J", "\uFFFD2J"}, // the same in one character
		"over\rwritten":            {"over written", "over\uFFFDwritten"},
		"gpj.\u202egnp.exe\u2066":  {"gpj.\uFFFDgnp.exe\uFFFD", "gpj.\uFFFDgnp.exe\uFFFD"},
		"a\u2028b\u2029c\u200bd\a": {"a\uFFFDb\uFFFDc\uFFFDd\uFFFD", "a\uFFFDb\uFFFDc\uFFFDd\uFFFD"},
		"\xff":                     {"\uFFFD", "\uFFFD"},
	} {
		if got := [2]string{drover.Sanitize(text), drover.SanitizeLines(text)}; got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
