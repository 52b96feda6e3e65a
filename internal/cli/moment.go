package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"drover"
	"drover/internal/engine"
	"drover/internal/human"
	"drover/internal/record"
	"drover/internal/replay"
)

// showMoment prints the engine's state at a moment.
func (a *app) showMoment(m *replay.Moment) error {
	if a.forPrograms() {
		return a.print(m)
	}
	if a.output == outputName {
		fmt.Fprintln(a.out, m.Segment)
		return nil
	}
	var f facts
	describeMoment(&f, m)
	f.add("fleet", momentStatus(m))
	f.print(a.out)
	for _, x := range m.Explains {
		fmt.Fprint(a.out, "\n"+explanationText(x, drover.Job{}, m.Event.At))
	}
	if len(m.Explains) == 0 {
		fmt.Fprint(a.out, "\n"+drover.Sanitize(nothingExplained(m))+"\n")
	}
	return nil
}

// describeMoment describes what happened, and what was decided.
func describeMoment(f *facts, m *replay.Moment) {
	f.add("event", fmt.Sprintf("%d of %s", m.Index, relative(m.Segment)))
	f.add("time", fmt.Sprintf("%s, %v after the start", precise(m.Event.At), m.After.Round(time.Millisecond)))
	f.add("happened", eventWords(m.Event))
	if m.Recorded != nil {
		f.add("recorded", outlineWords(m.Recorded.Outline))
		if now, err := record.MarkOf(m.Decision); err == nil {
			f.add("now", outlineWords(now.Outline))
		}
		f.add("differs in", strings.Join(m.Differs, ", "))
	}
	for _, w := range m.Decision.Writes {
		f.add("write", brief(w))
	}
	for _, e := range m.Decision.Effects {
		f.add("effect", effectWords(e))
	}
	for _, n := range m.Decision.Notes {
		f.add("note", n.Text)
	}
	if m.Decision.Wake != 0 {
		f.add("wake", fmt.Sprintf("%s, %v later", precise(m.Decision.Wake), m.Decision.Wake.Sub(m.Event.At).Round(time.Millisecond)))
	}
}

func momentStatus(m *replay.Moment) string {
	words := fmt.Sprintf("%s queued, %d running", human.Plural(m.Status.Queued, "job"), m.Status.Running)
	for _, state := range slices.Sorted(maps.Keys(m.Status.Instances)) {
		words += fmt.Sprintf(", %s %s", human.Plural(m.Status.Instances[state], "instance"), state)
	}
	return words + fmt.Sprintf(", %s an hour, %s spent", m.Status.Hourly, m.Status.Spent)
}

func nothingExplained(m *replay.Moment) string {
	if m.Subject == "" {
		return "nothing is waiting"
	}
	return m.Subject + " was unknown or final at that time"
}

// showDifference shows which decision differs from the recorded one, and how.
func (a *app) showDifference(s replay.Segment) error {
	if !a.forPrograms() {
		var f facts
		describeMoment(&f, s.Differs)
		fmt.Fprintln(a.out)
		f.print(a.out)
	}
	why := "the version is the same: unless the builds differ, this is a bug in Drover, and the recording reproduces it"
	if this := a.program.Version; s.Program != this {
		why = fmt.Sprintf("it was recorded by drover %[1]s, but this is drover %[2]s, which may decide differently: use drover %[1]s", s.Program, this)
	}
	fmt.Fprintf(a.err, "the decision on event %d of %s differs from the recorded one\n    hint: %s\n", s.Differs.Index, relative(s.Path), drover.Sanitize(why))
	return exit(exitWorkFailed)
}

// stepLine is one event of a recording, for programs.
type stepLine struct {
	Segment  string          `json:"segment"`
	Index    int             `json:"index"`
	Event    engine.Event    `json:"event"`
	Decision engine.Decision `json:"decision"`
	Same     bool            `json:"same"`
}

// showStep prints an event and its consequences: a line for people, an object for programs.
func (a *app) showStep(segment string, step record.Step) error {
	if a.forPrograms() {
		return a.printOneOf(stepLine{segment, step.Index, step.Event, step.Decision, step.Same()})
	}
	line := precise(step.Event.At) + "  " + eventWords(step.Event)
	if len(step.Decision.Effects) > 0 {
		done := make([]string, len(step.Decision.Effects))
		for i, e := range step.Decision.Effects {
			done[i] = effectWords(e)
		}
		line += "  → " + strings.Join(done, "; ")
	}
	_, err := fmt.Fprintln(a.out, drover.Sanitize(line))
	return err
}
