package trace

import (
	"cmp"
	"encoding/csv"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"drover"
)

// columns are the possible columns of a table of jobs, in any order, named in its first line.
var columns = []struct {
	name     string
	required bool
	read     func(j *Job, text string, t *times) error
}{
	{"submit", true, func(j *Job, text string, t *times) (err error) { j.Submit, err = t.moment(text); return err }},
	{"runtime", true, func(j *Job, text string, _ *times) (err error) { j.Runtime, err = span(text); return err }},
	{"expected", false, func(j *Job, text string, _ *times) (err error) { j.Expected, err = span(text); return err }},
	{"vcpus", true, func(j *Job, text string, _ *times) (err error) {
		if j.Need.CPU, err = drover.ParseMilliCPU(text); err == nil && (j.Need.CPU == 0 || j.Need.CPU > maxVCPUs*1000) {
			err = errors.New("it is not between 0.001 and 1000000")
		}
		return err
	}},
	{"memory", false, func(j *Job, text string, _ *times) (err error) { j.Need.Memory, err = size(text); return err }},
	{"disk", false, func(j *Job, text string, _ *times) (err error) { j.Need.Disk, err = size(text); return err }},
	{"gpus", false, func(j *Job, text string, _ *times) (err error) { j.Need.GPUs, err = whole(text, 0, 1000); return err }},
	{"arch", false, func(j *Job, text string, _ *times) error {
		j.Need.Arch = drover.Arch(text)
		return oneOf(text, "amd64", "arm64")
	}},
	{"count", false, func(j *Job, text string, _ *times) (err error) {
		j.Count, err = whole(text, 1, drover.MaxArray)
		return err
	}},
	{"user", false, func(j *Job, text string, _ *times) error { j.User = text; return nil }},
	{"priority", false, func(j *Job, text string, _ *times) (err error) {
		j.Priority, err = whole(text, 1, drover.MaxPriority)
		return err
	}},
	{"spot", false, func(j *Job, text string, _ *times) error {
		j.Spot = drover.SpotPolicy(text)
		return oneOf(text, string(drover.SpotPrefer), string(drover.SpotRequire), string(drover.SpotNever))
	}},
}

func (b *builder) readCSV(r io.Reader) error {
	t, err := newTable(b.file, r)
	if err != nil {
		return err
	}
	var known []string
	for _, c := range columns {
		known = append(known, c.name)
		if c.required && !slices.Contains(t.head, c.name) {
			return t.fault(0, "there is no column %s", c.name).WithHint("the first line names the columns; submit, runtime and vcpus are required")
		}
	}
	if err := t.only(known); err != nil {
		return err
	}
	var moments times
	for {
		row, err := t.next()
		if err == io.EOF {
			b.begin(moments)
			return nil
		}
		if err != nil {
			return err
		}
		j := Job{Count: 1}
		for _, c := range columns {
			text, at := t.cell(row, c.name)
			if at < 0 || text == "" && !c.required {
				continue
			}
			if err := c.read(&j, text, &moments); err != nil {
				return t.fault(at, "%s: %v", c.name, err)
			}
		}
		if err := b.add(j, t.line()); err != nil {
			return err
		}
	}
}

// begin makes a trace whose jobs have dates start with its earliest job.
func (b *builder) begin(moments times) {
	if jobs := b.t.Jobs; moments.dated && len(jobs) > 0 {
		first := slices.MinFunc(jobs, func(a, b Job) int { return cmp.Compare(a.Submit, b.Submit) }).Submit
		for i := range jobs {
			jobs[i].Submit -= first
		}
		b.t.Start = moments.start.Add(first)
	}
}

// times parses the times of a trace: either all are seconds after its start, or all have a date.
type times struct {
	start drover.Time // of the first line's job, if they have dates
	begun bool
	dated bool
}

// moment returns the time after the trace's start from a number of seconds, or after start from an RFC 3339 time.
func (t *times) moment(text string) (time.Duration, error) {
	std, err := time.Parse(time.RFC3339Nano, text)
	switch dated := err == nil; {
	case t.begun && dated != t.dated:
		return 0, errors.New("dates must be given for all jobs or for none")
	case dated && std.Unix() < 0, dated && std.Year() > 2200:
		return 0, errors.New("the date is not between 1970 and 2200")
	case !dated:
		t.begun = true
		return span(text)
	}
	at := drover.TimeOf(std)
	if !t.begun {
		t.begun, t.dated, t.start = true, true, at
	}
	return at.Sub(t.start), nil
}

// span parses a number of seconds, or a duration such as 90s or 1h30m.
func span(text string) (time.Duration, error) {
	s, err := strconv.ParseFloat(text, 64)
	if err != nil {
		var d time.Duration
		d, err = time.ParseDuration(text)
		s = d.Seconds()
	}
	switch {
	case s > longest.Seconds():
		return 0, errors.New(quoted(text) + " is more than 10 years")
	case err != nil || math.IsNaN(s):
		return 0, errors.New(quoted(text) + " is neither a number of seconds nor a duration (write, for example, 90s)")
	case s < 0:
		return 0, errors.New(quoted(text) + " is negative")
	}
	return seconds(s), nil
}

func size(text string) (drover.Bytes, error) {
	b, err := drover.ParseBytes(text)
	switch {
	case err == nil && b > mostMemory:
		err = errors.New(quoted(text) + " is more than 1024Ti")
	case err == nil && b < drover.MiB && strings.ContainsAny(text, "123456789"): // a number of MiB or GiB without its unit
		err = errors.New(quoted(text) + " is less than 1Mi (write, for example, 512Mi or 16Gi)")
	}
	return b, err
}

func whole(text string, least, most int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, errors.New(quoted(text) + " is not a whole number from " + strconv.Itoa(least) + " to " + strconv.Itoa(most))
	}
	return n, nil
}

func oneOf(text string, words ...string) error {
	if slices.Contains(words, text) {
		return nil
	}
	return errors.New(quoted(text) + " is not one of " + strings.Join(words, ", "))
}

// quoted quotes text from a file, cut to fit a message.
func quoted(text string) string { return strconv.QuoteToASCII(text[:min(len(text), 40)]) }

// table is a CSV file whose first line names its columns.
type table struct {
	file string
	csv  *csv.Reader
	pace *paced
	head []string
	rows int
}

// paced fails when a record exceeds the limit, since the CSV reader would collect it in memory.
type paced struct {
	r    io.Reader
	left int
}

func (p *paced) Read(b []byte) (int, error) {
	if p.left <= 0 {
		return 0, errors.New("a record is longer than " + strconv.Itoa(maxLine) + " bytes; is a quote missing?")
	}
	n, err := p.r.Read(b)
	p.left -= n
	return n, err
}

func newTable(file string, r io.Reader) (*table, error) {
	p := &paced{r: r}
	t := &table{file: file, csv: csv.NewReader(p), pace: p}
	t.csv.Comment, t.csv.ReuseRecord, t.csv.TrimLeadingSpace = '#', true, true
	head, err := t.next()
	if err == io.EOF {
		return nil, drover.Errorf(drover.KindInvalid, "%s is empty", file).WithHint("the first line must name the columns")
	}
	t.head = slices.Clone(head)
	for i, name := range t.head {
		t.head[i] = strings.ToLower(strings.Clone(strings.TrimSpace(name)))
	}
	return t, err
}

// next returns the next record, which is valid until the following call; io.EOF after the last.
func (t *table) next() ([]string, error) {
	t.pace.left = maxLine + 1<<16 // includes what the reader has buffered ahead
	row, err := t.csv.Read()
	var at *csv.ParseError
	switch {
	case err == nil || err == io.EOF:
		return row, err
	case errors.As(err, &at):
		return nil, drover.Errorf(drover.KindInvalid, "%s:%d:%d: %v", t.file, at.Line, at.Column, at.Err).WithHint("every line must have as many fields as the first")
	}
	return nil, drover.Errorf(drover.KindInvalid, "reading %s: %v", t.file, err)
}

// only rejects all columns except these.
func (t *table) only(known []string) error {
	for i, name := range t.head {
		switch {
		case !slices.Contains(known, name):
			return t.fault(i, "unknown column %.40q", name).WithHint("the columns are %s", strings.Join(known, ", "))
		case slices.Index(t.head, name) != i:
			return t.fault(i, "column %s is given twice", name)
		}
	}
	return nil
}

// cell returns a row's value in a column, and the column's position; -1 if there is no such column.
func (t *table) cell(row []string, column string) (text string, at int) {
	if at = slices.Index(t.head, column); at < 0 {
		return "", at
	}
	return strings.TrimSpace(row[at]), at
}

func (t *table) line() int {
	line, _ := t.csv.FieldPos(0)
	return line
}

// fault returns an error in a column of the row that was read last.
func (t *table) fault(column int, format string, args ...any) *drover.Error {
	line, at := t.csv.FieldPos(column)
	return (&builder{file: t.file}).fault(line, at, format, args...)
}
