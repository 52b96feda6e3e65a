package external

import (
	"bytes"
	"fmt"
	"sync"
	"time"

	"drover/internal/logkey"
)

// logOutput returns a function that logs lines of the program's standard error. Beyond the limit per minute it only
// counts them.
func (c *cloud) logOutput() func(line string) {
	var mu sync.Mutex
	var began time.Time
	lines := 0
	return func(line string) {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); now.Sub(began) > lineTime {
			if lines > maxLines {
				c.o.Log.Warn("a driver program wrote more lines than Drover keeps", logkey.Note, fmt.Sprintf("lines left out: %d", lines-maxLines))
			}
			began, lines = now, 0
		}
		if lines++; lines <= maxLines {
			c.o.Log.Info("a driver program says", logkey.Said, line)
		}
	}
}

// lineWriter splits its input into lines, and truncates long ones. It is safe for concurrent use.
type lineWriter struct {
	log func(line string)

	mu   sync.Mutex
	rest []byte // guarded by mu
	seen string // the last line; guarded by mu
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for rest := p; len(rest) > 0; {
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		w.rest = append(w.rest, line[:min(len(line), max(0, maxLine-len(w.rest)))]...)
		if whole {
			w.say()
		}
		rest = after
	}
	return len(p), nil
}

// say logs a line; mu is held.
func (w *lineWriter) say() {
	if line := printable(string(w.rest), maxLine); line != "" {
		w.seen = line
		w.log(line)
	}
	w.rest = w.rest[:0]
}

// flush logs a last line without an end.
func (w *lineWriter) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.say()
}

// last returns the last line, as the end of a message.
func (w *lineWriter) last() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen == "" {
		return ""
	}
	return ": " + w.seen
}
