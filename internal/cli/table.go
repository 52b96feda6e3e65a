package cli

import (
	"fmt"
	"io"
	"iter"
	"strings"
	"unicode/utf8"

	"drover"
)

// listing is how to print a list.
type listing[T any] struct {
	name    func(T) string // what -o name prints of each item
	columns []column[T]
	none    string // the message for people when the list is empty
}

// column is one column of a listing's table.
type column[T any] struct {
	title string
	text  func(T) string
	color func(T) color // nil: none
	wide  bool          // only with -o wide
	right bool          // numbers, aligned at their ends
}

// printList prints items as they arrive: one array for programs, a name per line, or a table.
func printList[T any](a *app, l listing[T], items iter.Seq2[T, error]) error {
	switch a.output {
	case outputJSON, outputYAML:
		return printArray(a, items)
	case outputName:
		for item, err := range items {
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintln(a.out, drover.Sanitize(l.name(item))); err != nil {
				return err
			}
		}
		return nil
	}
	return printTable(a, l, items)
}

// printNamed prints items that the user named; for programs, a single one is an object.
func printNamed[T any](a *app, l listing[T], items []T) error {
	if len(items) == 1 && a.forPrograms() {
		return a.print(items[0])
	}
	return printList(a, l, each(items))
}

// printArray prints one array without holding all of it.
func printArray[T any](a *app, items iter.Seq2[T, error]) error {
	before, between, end := "[", ",", "]\n"
	if a.output == outputYAML {
		before, between, end = "", "", ""
	}
	some := false
	for item, err := range items {
		if err != nil {
			return err
		}
		text, err := a.element(item)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(a.out, "%s%s", before, text); err != nil {
			return err
		}
		some, before = true, between
	}
	if !some {
		end = "[]\n"
	}
	_, err := io.WriteString(a.out, end)
	return err
}

func printTable[T any](a *app, l listing[T], items iter.Seq2[T, error]) error {
	t := table{out: a.out, color: a.color}
	var shown []column[T]
	for _, c := range l.columns {
		if !c.wide || a.output == outputWide {
			shown = append(shown, c)
			t.head(c.title, c.right)
		}
	}
	n := 0
	for item, err := range items {
		if err != nil {
			return err
		}
		row := make([]cell, len(shown))
		for i, c := range shown {
			row[i].text = c.text(item)
			if c.color != nil {
				row[i].color = c.color(item)
			}
		}
		if err := t.add(row); err != nil {
			return err
		}
		n++
	}
	if n == 0 {
		fmt.Fprintln(a.err, l.none)
		return nil
	}
	return t.flush()
}

// color is the terminal's code for a colour.
type color string

// The colours. In tables only states have one.
const (
	plain   color = ""
	red     color = "\x1b[31m"
	green   color = "\x1b[32m"
	yellow  color = "\x1b[33m"
	blue    color = "\x1b[34m"
	magenta color = "\x1b[35m"
	cyan    color = "\x1b[36m"
	bold    color = "\x1b[1m"
	faint   color = "\x1b[2m"
	chosen  color = "\x1b[1;4m" // bold and underlined
	reset         = "\x1b[0m"
)

// cell is one field of a row.
type cell struct {
	text  string
	color color
}

// table aligns rows. It holds up to one page of rows before it writes them, so that long lists appear early.
type table struct {
	out    io.Writer
	color  bool
	titles []cell
	right  []bool
	widths []int
	rows   [][]cell
	begun  bool
}

func (t *table) head(title string, right bool) {
	t.titles = append(t.titles, cell{text: title})
	t.right = append(t.right, right)
	t.widths = append(t.widths, utf8.RuneCountInString(title))
}

// add adds a row, whose texts may come from any source.
func (t *table) add(row []cell) error {
	for i := range row {
		row[i].text = drover.Sanitize(row[i].text)
		t.widths[i] = max(t.widths[i], utf8.RuneCountInString(row[i].text))
	}
	t.rows = append(t.rows, row)
	if len(t.rows) < drover.MaxPage {
		return nil
	}
	return t.flush()
}

// flush writes the held rows.
func (t *table) flush() error {
	var b strings.Builder
	if !t.begun {
		t.begun = true
		t.line(&b, t.titles)
	}
	for _, row := range t.rows {
		t.line(&b, row)
	}
	t.rows = t.rows[:0]
	_, err := io.WriteString(t.out, b.String())
	return err
}

func (t *table) line(b *strings.Builder, row []cell) {
	blank := 0 // pending blanks, since lines do not end in blanks
	for i, c := range row {
		pad := t.widths[i] - utf8.RuneCountInString(c.text)
		if t.right[i] {
			blank += pad
		}
		if c.text != "" {
			b.WriteString(strings.Repeat(" ", blank))
			b.WriteString(tinted(t.color, c.color, c.text))
			blank = 0
		}
		if !t.right[i] {
			blank += pad
		}
		blank += 2
	}
	b.WriteByte('\n')
}

// tinted returns a text in a colour, if there are colours.
func tinted(colors bool, tint color, text string) string {
	if !colors || tint == plain {
		return text
	}
	return string(tint) + text + reset
}

// jobColor is the colour of a job's state.
func jobColor(s drover.JobState) color {
	switch s {
	case drover.JobRunning:
		return cyan
	case drover.JobSucceeded:
		return green
	case drover.JobFailed:
		return red
	case drover.JobCancelled:
		return yellow
	}
	return plain
}

// instanceColor is the colour of an instance's state.
func instanceColor(s drover.InstanceState) color {
	switch s {
	case drover.InstanceRunning:
		return cyan
	case drover.InstanceIdle:
		return green
	case drover.InstanceUnknown, drover.InstanceCreating, drover.InstanceBooting:
		return yellow
	case drover.InstanceStopping, drover.InstanceStopped, drover.InstanceGone:
		return faint
	}
	return plain
}

// facts prints the facts about one thing, one to a line; empty values are left out.
type facts struct {
	lines [][2]string
}

func (f *facts) add(name, value string) {
	if value != "" {
		f.lines = append(f.lines, [2]string{name + ":", drover.Sanitize(value)})
	}
}

func (f *facts) print(out io.Writer) {
	width := 0
	for _, l := range f.lines {
		width = max(width, len(l[0]))
	}
	for _, l := range f.lines {
		fmt.Fprintf(out, "%-*s  %s\n", width, l[0], l[1])
	}
}
