package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"drover"
)

// How many faults of one file are reported, and how many are kept to find the first of them by place.
const (
	maxFaults = 20
	maxKept   = 200
)

// Fault is one error in a file.
type Fault struct {
	File    string `json:"file"`
	Line    int    `json:"line"`   // from 1; 0 for the whole file
	Column  int    `json:"column"` // from 1, in characters
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"` // what to write instead, if there is a good guess
}

// String renders the fault as "file:line:column: message", with the hint on an indented line of its own.
func (f Fault) String() string {
	s := fmt.Sprintf("%s:%d:%d: %s", f.File, f.Line, f.Column, f.Message)
	if f.Line == 0 {
		s = fmt.Sprintf("%s: %s", f.File, f.Message)
	}
	if f.Hint != "" {
		s += "\n    hint: " + f.Hint
	}
	return s
}

// Faults is every fault of a file, in the file's order. As an error it is also a *drover.Error of kind invalid:
// errors.As finds either.
type Faults []Fault

// Error renders the faults, each on its own line.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.String()
	}
	return strings.Join(lines, "\n")
}

// As returns the faults as a *drover.Error, whose message includes the hints.
func (f Faults) As(target any) bool {
	e, ok := target.(**drover.Error)
	if ok {
		*e = &drover.Error{Kind: drover.KindInvalid, Message: f.Error()}
	}
	return ok
}

// faults collects the faults of one file during reading.
type faults struct {
	file  string
	list  Faults
	count int // all faults, including those beyond the list's limit

	unknown map[*node][]string // unknown keys, by their mapping
}

// add records a fault at n.
func (f *faults) add(n *node, message, hint string) {
	f.count++
	if !f.full() {
		f.list = append(f.list, Fault{File: f.file, Line: n.line, Column: n.column, Message: message, Hint: hint})
	}
}

// full reports whether another fault would only be counted, so that its hint is not needed.
func (f *faults) full() bool { return len(f.list) == maxKept }

// addUnknown records at n that a word is not one of the known ones.
func (f *faults) addUnknown(n *node, message, word string, known []string) {
	hint := ""
	if !f.full() {
		hint = suggest(word, known)
	}
	f.add(n, message, hint)
}

// addf records a fault at n without a hint.
func (f *faults) addf(n *node, format string, args ...any) {
	f.add(n, fmt.Sprintf(format, args...), "")
}

// noteUnknown remembers an unknown key of a mapping.
func (f *faults) noteUnknown(n *node, key string) {
	if f.unknown == nil {
		f.unknown = map[*node][]string{}
	}
	f.unknown[n] = append(f.unknown[n], key)
}

// misspelt reports whether an unknown key of a mapping is nearly this one, which therefore is not missing.
func (f *faults) misspelt(n *node, key string) bool {
	return slices.ContainsFunc(f.unknown[n], func(given string) bool { return nearest(given, []string{key}) != "" })
}

// addErr records err at n, with its hint if it has one.
func (f *faults) addErr(n *node, err error) {
	e := drover.AsError(err, drover.KindInvalid)
	f.add(n, e.Message, e.Hint)
}

// err returns nil if there are no faults; otherwise the faults, sorted by place and cut to a readable number.
func (f *faults) err() error {
	if len(f.list) == 0 {
		return nil
	}
	list := slices.Clone(f.list)
	slices.SortStableFunc(list, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	list = slices.Compact(list)
	shown := min(len(list), maxFaults)
	if more := len(list) - shown + f.count - len(f.list); more > 0 {
		list = append(list[:shown], Fault{File: f.file, Message: fmt.Sprintf("and %d more", more)})
	}
	return list
}
