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

// Fault is one thing wrong with a file.
type Fault struct {
	File    string `json:"file"`
	Line    int    `json:"line"`   // from 1; 0 when the whole file is meant
	Column  int    `json:"column"` // from 1, in characters
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"` // what to write instead, if it can be guessed
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

// Faults is everything wrong with a file, in its order. As an error it is also a *drover.Error of kind invalid:
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

// faults collects the faults of one file while it is read.
type faults struct {
	file  string
	list  Faults
	count int // of those in the list, and those that found no room there
}

// add notes a fault at n.
func (f *faults) add(n *node, message, hint string) {
	f.count++
	if !f.full() {
		f.list = append(f.list, Fault{File: f.file, Line: n.line, Column: n.column, Message: message, Hint: hint})
	}
}

// full reports whether another fault would only be counted: its hint need not be looked for.
func (f *faults) full() bool { return len(f.list) == maxKept }

// addUnknown notes at n that there is no such word among those that are known.
func (f *faults) addUnknown(n *node, message, word string, known []string) {
	hint := ""
	if !f.full() {
		hint = suggest(word, known)
	}
	f.add(n, message, hint)
}

// addf notes a fault at n that has no hint.
func (f *faults) addf(n *node, format string, args ...any) {
	f.add(n, fmt.Sprintf(format, args...), "")
}

// addErr notes err at n, with its hint if it has one.
func (f *faults) addErr(n *node, err error) {
	e := drover.AsError(err, drover.KindInvalid)
	f.add(n, e.Message, e.Hint)
}

// err is nil if there are no faults; else they are sorted by place and cut to a number that can be read.
func (f *faults) err() error {
	if len(f.list) == 0 {
		return nil
	}
	list := slices.Clone(f.list)
	slices.SortStableFunc(list, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	list = slices.Compact(list)
	if more := len(list) - maxFaults + f.count - len(f.list); more > 0 {
		list = append(list[:maxFaults], Fault{File: f.file, Message: fmt.Sprintf("and %d more", more)})
	}
	return list
}
