package benchfleet

import (
	"strconv"
	"strings"
)

// script is what a controller makes an instance's shell run: see package remote. The commands in a script show its
// purpose.
type script struct {
	args []string // $1 and on
	text string
}

// readScript reverses the encoding that makes a script work in any login shell.
func readScript(command string) (script, bool) {
	_, spelled, ok := strings.Cut(command, "' drover '")
	if !ok {
		return script{}, false
	}
	// The part before that becomes root, if necessary.
	_, rest, _ := strings.Cut("\n"+unspell(strings.TrimSuffix(spelled, "'")), "\nset --")
	head, text, _ := strings.Cut(rest, "\n")
	return script{words(head), text}, true
}

// unspell turns what printf %b reads as \0ooo into the bytes that they stand for.
func unspell(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		if len(s) >= 5 && s[:2] == `\0` {
			if c, err := strconv.ParseUint(s[2:5], 8, 8); err == nil {
				b.WriteByte(byte(c))
				s = s[5:]
				continue
			}
		}
		b.WriteByte(s[0])
		s = s[1:]
	}
	return b.String()
}

// words returns the words of a line, each in single quotes; none of them contains one.
func words(line string) (all []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			all = append(all, part)
		}
	}
	return all
}

// arg returns $n, or the empty string if there are fewer arguments.
func (s script) arg(n int) string {
	if n > len(s.args) {
		return ""
	}
	return s.args[n-1]
}

// runs reports whether the script contains a text.
func (s script) runs(what string) bool { return strings.Contains(s.text, what) }
