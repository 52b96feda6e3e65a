package configimport

import (
	"encoding/json"
	"strconv"
	"strings"

	"drover"
)

// A prevmtable document is relaxed JSON: keys without quotes and in any case, optional and trailing commas, and
// comments that begin with //, # or /*.

// mostDepth limits the nesting of values.
const mostDepth = 100

// lenient parses such a document.
type lenient struct {
	text  string
	at    int
	depth int
}

func parseLenient(text string) (any, error) {
	l := &lenient{text: text}
	v, err := l.value()
	if err != nil {
		return nil, err
	}
	if l.skip(); l.at < len(l.text) {
		return nil, l.wrong("there is extra text after the document")
	}
	return v, nil
}

func (l *lenient) wrong(what string) error {
	before := l.text[:min(l.at, len(l.text))]
	line := strings.Count(before, "\n") + 1
	return drover.Errorf(drover.KindInvalid, "line %d: %s", line, what)
}

// skip skips space, commas and comments.
func (l *lenient) skip() {
	for l.at < len(l.text) {
		rest := l.text[l.at:]
		switch {
		case strings.ContainsRune(" \t\r\n,", rune(rest[0])):
			l.at++
		case rest[0] == '#' || strings.HasPrefix(rest, "//"):
			l.pass(rest, "\n")
		case strings.HasPrefix(rest, "/*"):
			l.pass(rest, "*/")
		default:
			return
		}
	}
}

// pass skips to behind the next end.
func (l *lenient) pass(rest, end string) {
	if _, after, found := strings.Cut(rest, end); found {
		l.at = len(l.text) - len(after)
		return
	}
	l.at = len(l.text)
}

func (l *lenient) value() (any, error) {
	l.skip()
	if l.at >= len(l.text) {
		return nil, l.wrong("a value is missing")
	}
	if l.depth++; l.depth > mostDepth {
		return nil, l.wrong("values are nested too deeply")
	}
	defer func() { l.depth-- }()
	switch l.text[l.at] {
	case '{':
		return l.object()
	case '[':
		return l.array()
	case '"':
		return l.quoted()
	}
	return l.plain()
}

func (l *lenient) object() (any, error) {
	all := map[string]any{}
	for l.at++; ; {
		l.skip()
		if l.closes('}') {
			return all, nil
		}
		key, err := l.key()
		if err != nil {
			return nil, err
		}
		if l.skip(); !l.closes(':') {
			return nil, l.wrong("a colon is missing after " + strconv.Quote(key))
		}
		if all[key], err = l.value(); err != nil {
			return nil, err
		}
	}
}

func (l *lenient) array() (any, error) {
	all := []any{}
	for l.at++; ; {
		l.skip()
		if l.closes(']') {
			return all, nil
		}
		v, err := l.value()
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
}

// closes skips a closing mark, if it is next.
func (l *lenient) closes(mark byte) bool {
	if l.at < len(l.text) && l.text[l.at] == mark {
		l.at++
		return true
	}
	return false
}

func (l *lenient) key() (string, error) {
	if l.at < len(l.text) && l.text[l.at] == '"' {
		return l.quoted()
	}
	if word := l.word(); word != "" {
		return word, nil
	}
	return "", l.wrong("a key is missing")
}

// quoted parses a JSON string.
func (l *lenient) quoted() (string, error) {
	for end := l.at + 1; end < len(l.text); end++ {
		switch l.text[end] {
		case '\\':
			end++
		case '"':
			var s string
			if err := json.Unmarshal([]byte(l.text[l.at:end+1]), &s); err != nil {
				return "", l.wrong("a string cannot be read: " + err.Error())
			}
			l.at = end + 1
			return s, nil
		}
	}
	return "", l.wrong("a string is not terminated")
}

// word returns the unquoted word at this place.
func (l *lenient) word() string {
	end := strings.IndexAny(l.text[l.at:], " \t\r\n,:{}[]\"#/")
	if end < 0 {
		end = len(l.text) - l.at
	}
	word := l.text[l.at : l.at+end]
	l.at += end
	return word
}

// plain parses a number, true, false or null.
func (l *lenient) plain() (any, error) {
	word := l.word()
	switch word {
	case "true", "false":
		return word == "true", nil
	case "null":
		return nil, nil
	}
	if n, err := strconv.ParseFloat(word, 64); err == nil {
		return n, nil
	}
	return nil, l.wrong(strconv.Quote(word) + " is not a value")
}
