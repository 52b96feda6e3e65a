package benchfleet

import (
	"strconv"
	"strings"
)

// script is what a controller has an instance's shell do: see package remote, whose scripts say what they are about by
// what they run.
type script struct {
	args []string // $1 and on
	text string
}

// readScript undoes how a controller spells a script for whatever shell the user has.
func readScript(command string) (script, bool) {
	_, spelled, ok := strings.Cut(command, "' drover '")
	if !ok {
		return script{}, false
	}
	// Before that it makes itself root, if need be.
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

// words are the words of a line, each in single quotes; none here holds one.
func words(line string) (all []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			all = append(all, part)
		}
	}
	return all
}

// arg is $n, empty if there are not so many.
func (s script) arg(n int) string {
	if n > len(s.args) {
		return ""
	}
	return s.args[n-1]
}

// runs reports whether the script has this in it.
func (s script) runs(what string) bool { return strings.Contains(s.text, what) }
