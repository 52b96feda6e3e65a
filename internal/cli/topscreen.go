package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"drover"
	"drover/internal/human"
)

// painter colours text if it is true.
type painter bool

func (p painter) with(tint color, text string) string { return tinted(bool(p), tint, text) }
func (p painter) bold(text string) string             { return p.with(bold, text) }
func (p painter) dim(text string) string              { return p.with(faint, text) }

// stateColors are the dashboard's colours, as far as terminals have them.
var stateColors = map[string]color{
	"running": blue, "succeeded": green, "failed": red, "booting": magenta, "creating": magenta, "queued": yellow, "warn": yellow, "lost": red, "interrupted": red,
}

// state paints a text in the colour of a state.
func (p painter) state(word, text string) string {
	return p.with(cmp.Or(stateColors[word], reset), text)
}

// fit truncates or pads a text from any source to a width on the screen.
func fit(text string, width int) string {
	text = drover.Sanitize(text)
	return runewidth.FillRight(runewidth.Truncate(text, width, "…"), width)
}

// right pads a text to a width, aligned to the right.
func right(text string, width int) string { return runewidth.FillLeft(text, width) }

// topLists are the lists, one of which is shown at a time.
var topLists = []struct {
	name string
	head func(width int) string
	rows func(m *topModel) []string
}{
	{"instances", func(w int) string {
		return fit("INSTANCE", 24) + fit("STATE", 12) + fit("TYPE", 16) + fit("WHERE", 20) + right("JOBS", 5) + right("$/H", 10) + right("COST", 11)
	}, (*topModel).instanceRows},
	{"jobs", func(w int) string {
		return fit("JOB", 10) + fit("NAME", 24) + fit("STATE", 12) + fit("USER", 12) + fit("DONE", 16) + right("AGE", 9) + right("COST", 11)
	}, (*topModel).jobRows},
	{"reasons", func(w int) string { return right("COUNT", 9) + "  " + fit("WHY", w-11) }, (*topModel).reasonRows},
	{"events", func(w int) string { return fit("TIME", 10) + fit("EVENT", w-10) }, (*topModel).eventRows},
}

func (m *topModel) instanceRows() (rows []string) {
	for _, in := range m.seen.instances {
		state := string(in.State)
		if in.Idle != drover.IdleRun && in.Idle != "" {
			state += "," + string(in.Idle)
		}
		rows = append(rows, fit(in.Name, 24)+m.paint.state(string(in.State), fit(state, 12))+fit(in.Type, 16)+fit(in.Cloud+"/"+in.Zone, 20)+
			right(number(len(in.Jobs)), 5)+right(fmt.Sprintf("%.4f", in.Price), 10)+right(fmt.Sprintf("%.4f", in.Cost), 11))
	}
	return rows
}

func (m *topModel) jobRows() (rows []string) {
	for _, j := range m.seen.jobs {
		done := ""
		if j.Array != nil {
			size := j.Array.Size()
			left := j.Counts[drover.JobQueued] + j.Counts[drover.JobRunning]
			done = fmt.Sprintf("%d of %d", size-left, size)
		}
		rows = append(rows, fit(j.ID.String(), 10)+fit(j.Name, 24)+m.paint.state(string(j.State), fit(string(j.State), 12))+fit(j.User, 12)+fit(done, 16)+
			right(human.Age(m.seen.at.Sub(j.Submitted)), 9)+right(fmt.Sprintf("%.4f", j.Cost), 11))
	}
	return rows
}

func (m *topModel) reasonRows() (rows []string) {
	for _, list := range [][]drover.Waiting{m.seen.status.Waiting, m.seen.status.Standing} {
		list = slices.Clone(list)
		slices.SortFunc(list, func(a, b drover.Waiting) int { return b.Count - a.Count })
		for _, w := range list {
			rows = append(rows, right(number(w.Count), 9)+"  "+m.paint.bold(fit(w.Reason.Code, 12))+" "+fit(w.Reason.Text, max(10, m.width-24)))
		}
	}
	return rows
}

func (m *topModel) eventRows() (rows []string) {
	for _, e := range slices.Backward(m.seen.events) {
		rows = append(rows, m.paint.dim(fit(e.Time.Std().Local().Format(time.TimeOnly), 10))+m.paint.state(e.Level, fit(e.Text, max(10, m.width-10))))
	}
	return rows
}

// rows is how many lines of a list fit.
func (m *topModel) rows() int { return max(1, m.height-len(m.head())-3) }

// head returns the fixed lines at the top.
func (m *topModel) head() []string {
	s := m.seen.status
	states := []string{}
	for _, state := range slices.SortedFunc(maps.Keys(s.Instances), func(a, b drover.InstanceState) int { return s.Instances[b] - s.Instances[a] }) {
		states = append(states, fmt.Sprintf("%s %s", m.paint.state(string(state), number(s.Instances[state])), state))
	}
	lines := []string{
		m.paint.bold("drover top") + "  fleet " + m.paint.bold(drover.Sanitize(s.Fleet)) + "  " + m.paint.dim(m.seen.at.Local().Format(time.TimeOnly)),
		fmt.Sprintf("queue      %s waiting, %s running, %s succeeded, %s failed", m.paint.with(yellow, number(s.Jobs[drover.JobQueued])), m.paint.with(blue, number(s.Jobs[drover.JobRunning])),
			m.paint.with(green, number(s.Jobs[drover.JobSucceeded])), m.paint.with(red, number(s.Jobs[drover.JobFailed]))),
		fmt.Sprintf("instances  %d: %s", allOf(s.Instances), strings.Join(states, ", ")),
		fmt.Sprintf("cost       %s an hour, %s in total", m.paint.bold(human.Dollars(s.Hourly)), human.Dollars(s.Spent)),
	}
	for _, b := range s.Budgets[:min(len(s.Budgets), 3)] {
		lines = append(lines, "budget     "+m.budgetLine(b))
	}
	switch {
	case m.err != nil:
		lines = append(lines, m.paint.with(red, fit(m.err.Error(), max(10, m.width))))
	case s.Suspended != nil:
		lines = append(lines, m.paint.with(red, fit("the controller cannot change anything: "+s.Suspended.Text, max(10, m.width))))
	case s.Paused != nil:
		lines = append(lines, m.paint.with(yellow, fit("paused: "+s.Paused.Text, max(10, m.width))))
	}
	return lines
}

func (m *topModel) budgetLine(b drover.BudgetUse) string {
	limit := cmp.Or(b.Hard, b.Soft)
	const width = 20
	used := min(width, int(width*(b.Spent+b.Promised)/limit))
	tint := green
	switch {
	case b.Spent >= limit:
		tint = red
	case used > width*4/5:
		tint = yellow
	}
	text := fmt.Sprintf("%s spent of %s %s, %s", human.Dollars(b.Spent), human.Dollars(limit), b.Window, b.Scope)
	if b.Promised > 0 {
		text += ", " + human.Dollars(b.Promised) + " committed"
	}
	return fmt.Sprintf("[%s%s] %s", m.paint.with(tint, strings.Repeat("#", used)), strings.Repeat(".", width-used), strings.TrimRight(fit(text, max(10, m.width-34)), " "))
}

// screen returns the whole screen.
func (m *topModel) screen() string {
	list := topLists[m.list]
	lines := append(m.head(), "", m.tabs(), m.paint.dim(list.head(max(20, m.width))))
	rows := list.rows(m)
	m.from = max(0, min(m.from, len(rows)-m.rows()))
	rows = rows[m.from:]
	return strings.Join(append(lines, rows[:min(len(rows), m.rows())]...), "\n")
}

func (m *topModel) tabs() string {
	var names []string
	for i, l := range topLists {
		if i == m.list {
			names = append(names, m.paint.with(chosen, "["+l.name+"]"))
		} else {
			names = append(names, " "+l.name+" ")
		}
	}
	hint := "  tab: next  space: pause  q: quit"
	switch {
	case m.once:
		hint = ""
	case m.still:
		hint = "  paused; space continues"
	}
	return strings.Join(names, " ") + m.paint.dim(hint)
}
