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

// traced is how many of the most recent notes are kept.
const traced = 60

// note is an event with its decision, or a fault.
type note struct {
	at       drover.Time
	fault    Fault
	event    engine.Event
	decision engine.Decision
}

// trace keeps the most recent notes. They become text only when printed.
type trace struct {
	notes [traced]note
	next  int
}

func (t *trace) add(n note) {
	t.notes[t.next%traced] = n
	t.next++
}

// tracer is the recorder that keeps a world's trace.
type tracer struct{ w *World }

// Append keeps an event and its decision, except for ticks without effects or writes.
func (t tracer) Append(ev engine.Event, d engine.Decision) {
	if _, ticked := ev.Body.(engine.Ticked); ticked && len(d.Writes)+len(d.Effects) == 0 {
		return
	}
	t.w.trace.add(note{at: t.w.now, event: ev, decision: d})
}

// Trace prints the last notes before the world ended: events, decisions and faults, each with its time.
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

// most is how many bytes of a value's text are printed.
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

// writeText prints the important parts of a write.
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

// recorders are several recorders, some of which may be nil.
type recorders []loop.Recorder

// Append passes an event to each recorder.
func (rs recorders) Append(ev engine.Event, d engine.Decision) {
	for _, r := range rs {
		if r != nil {
			r.Append(ev, d)
		}
	}
}
