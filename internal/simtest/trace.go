package simtest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"drover"
	"drover/internal/engine"
	"drover/internal/loop"
)

// traced is how many of the last things that happened are kept to be told.
const traced = 60

// note is something that happened: an event and what was decided, or a fault.
type note struct {
	at       drover.Time
	fault    Fault
	event    engine.Event
	decision engine.Decision
}

// trace keeps the last of them, as they are: words are made only of those that are told.
type trace struct {
	notes [traced]note
	next  int
}

func (t *trace) add(n note) {
	t.notes[t.next%traced] = n
	t.next++
}

// tracer is the recorder that a world's trace is kept by.
type tracer struct{ w *World }

// Append keeps an event and its decision, unless nothing came of the passing of time.
func (t tracer) Append(ev engine.Event, d engine.Decision) {
	if _, ticked := ev.Body.(engine.Ticked); ticked && len(d.Writes)+len(d.Effects) == 0 {
		return
	}
	t.w.trace.add(note{at: t.w.now, event: ev, decision: d})
}

// Trace tells the last things that happened before the world ended: events, what was decided, and faults, each with its
// time.
func (w *World) Trace() string {
	var b strings.Builder
	t := &w.trace
	for i := max(0, t.next-traced); i < t.next; i++ {
		n := t.notes[i%traced]
		at := n.at.Sub(w.begin).Round(time.Millisecond)
		if n.event.Body == nil {
			fmt.Fprintf(&b, "%12v  fault %s\n", at, n.fault)
			continue
		}
		fmt.Fprintf(&b, "%12v  %s\n", at, eventText(n.event))
		for _, line := range decisionText(n.decision) {
			fmt.Fprintf(&b, "%14s%s\n", "", line)
		}
	}
	return b.String()
}

// most is how much of a value's words is told.
const most = 240

func words(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	if len(b) > most {
		return string(b[:most]) + "…"
	}
	return string(b)
}

func eventText(ev engine.Event) string {
	b, err := json.Marshal(ev)
	var parts struct {
		Kind string
		Body json.RawMessage
	}
	if err == nil {
		err = json.Unmarshal(b, &parts)
	}
	if err != nil {
		return err.Error()
	}
	return parts.Kind + " " + words(parts.Body)
}

func decisionText(d engine.Decision) (lines []string) {
	for _, w := range d.Writes {
		lines = append(lines, "write  "+writeText(w))
	}
	for _, f := range d.Effects {
		lines = append(lines, "effect "+words(f))
	}
	return lines
}

// writeText is what matters of a write.
func writeText(w engine.Write) string {
	switch {
	case w.Job != nil:
		return fmt.Sprintf("job %d: priority %d, queued %v", w.Job.Number, w.Job.Priority, w.Job.Queued)
	case w.Element != nil:
		return fmt.Sprintf("element %d.%d: %s, attempt %d, lost %d %s", w.Element.Job, w.Element.Element.Index, w.Element.State, w.Element.Element.Number,
			w.Element.Element.Lost, w.Element.Reason.Text)
	case w.Attempt != nil:
		return fmt.Sprintf("attempt %v on instance %d: %s %s", w.Attempt.Attempt.ID, w.Attempt.Attempt.Instance, w.Attempt.Attempt.State, w.Attempt.Reason.Text)
	case w.Instance != nil:
		in := w.Instance
		return fmt.Sprintf("instance %d %s %s: %s, to %s, broken: %v, begun: %v, bound: %d", in.ID, in.Name, in.ProviderID, in.State, in.Idle, in.Broken, in.Begun, len(in.Reservations))
	}
	return words(w)
}

// recorders are several, of which some may be nil.
type recorders []loop.Recorder

// Append has each record.
func (rs recorders) Append(ev engine.Event, d engine.Decision) {
	for _, r := range rs {
		if r != nil {
			r.Append(ev, d)
		}
	}
}
