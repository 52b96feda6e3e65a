package trace

import (
	"bufio"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"drover"
)

// The Standard Workload Format, version 2.2, as the Parallel Workloads Archive defines it: a line for each job with 18
// fields, numbers between blanks, -1 where nothing is known; comments begin with a semicolon.
// https://www.cs.huji.ac.il/labs/parallel/workload/swf.html
const (
	swfSubmit    = 1 // seconds after the log's start
	swfRuntime   = 3 // seconds
	swfAllocated = 4 // processors
	swfUsed      = 6 // memory, KiB for each processor
	swfAsked     = 7 // processors
	swfTime      = 8 // requested seconds
	swfMemory    = 9 // requested, KiB for each processor
	swfStatus    = 10
	swfUser      = 11
	swfFields    = 18
)

// The statuses that matter here. A job that was swapped out has one line for all of it and one for each part.
const (
	swfPartGoesOn    = 2
	swfLastPart      = 3
	swfLastPartFails = 4
	swfCancelled     = 5
)

func (b *builder) readSWF(r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 4096), maxLine)
	n := 0
	for lines.Scan() && lines.Err() == nil { // the line at which reading failed is incomplete
		n++
		text := lines.Text()
		switch trimmed := strings.TrimSpace(text); {
		case trimmed == "":
		case trimmed[0] == ';':
			b.header(trimmed[1:])
		default:
			if err := b.swfLine(text, n); err != nil {
				return err
			}
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return b.fault(n+1, 1, "the line is longer than %d bytes", maxLine)
	case err != nil:
		return b.fault(n+1, 1, "reading: %v", err)
	}
	return nil
}

// header takes the start of the log from a comment.
func (b *builder) header(comment string) {
	name, value, _ := strings.Cut(comment, ":")
	if strings.TrimSpace(name) != "UnixStartTime" {
		return
	}
	const last = math.MaxInt64 / int64(time.Second) / 2
	if at, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64); err == nil && at > 0 && at < last {
		b.t.Start = drover.Time(at) * drover.Time(time.Second)
	}
}

// swfRow is a line's fields, and the position of each.
type swfRow struct {
	values  [swfFields]float64
	columns [swfFields]int
}

func (b *builder) swfLine(text string, line int) error {
	row, err := b.swfRow(text, line)
	if err != nil {
		return err
	}
	j, why, err := b.swfJob(row, line)
	switch {
	case err != nil:
		return err
	case why != "":
		b.leaveOut(why)
		return nil
	}
	return b.add(j, line)
}

func (b *builder) swfRow(text string, line int) (row swfRow, err error) {
	at, n := 0, 0
	for field := range strings.FieldsSeq(text) {
		at += strings.Index(text[at:], field)
		if n == swfFields {
			return row, b.fault(line, at+1, "there are more than %d fields", swfFields)
		}
		v, err := strconv.ParseFloat(field, 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return row, b.fault(line, at+1, "field %d is not a number: %.40q", n+1, field).WithHint("write -1 for unknown values, and ; before a comment")
		}
		row.values[n], row.columns[n] = v, at+1
		at += len(field)
		n++
	}
	if n < swfFields {
		return row, b.fault(line, 1, "there are %d fields instead of %d", n, swfFields).WithHint("write -1 for unknown values")
	}
	return row, nil
}

// swfJob returns the job of a line, or why it is left out.
func (b *builder) swfJob(row swfRow, line int) (j Job, why string, err error) {
	v := row.values
	processors := math.Ceil(v[swfAllocated])
	if processors <= 0 {
		processors = math.Ceil(v[swfAsked])
	}
	switch status := int(v[swfStatus]); {
	case status == swfPartGoesOn || status == swfLastPart || status == swfLastPartFails:
		return j, "listed as part of another job", nil
	case status == swfCancelled && (v[swfRuntime] <= 0 || processors <= 0):
		return j, "cancelled before starting", nil
	case v[swfSubmit] < 0:
		return j, "without a submit time", nil
	case v[swfRuntime] < 0:
		return j, "without a run time", nil
	case processors <= 0:
		return j, "without a number of processors", nil
	}
	if processors > maxVCPUs {
		return j, "", b.fault(line, row.columns[swfAllocated], "%.0f processors exceed the limit of %d", processors, maxVCPUs)
	}
	for _, field := range []int{swfSubmit, swfRuntime} {
		if v[field] > longest.Seconds() {
			return j, "", b.fault(line, row.columns[field], "field %d is more than 10 years", field+1)
		}
	}
	j = Job{Submit: seconds(v[swfSubmit]), Runtime: seconds(v[swfRuntime]), Count: 1}
	j.Expected = seconds(min(max(0, v[swfTime]), longest.Seconds()))
	j.Need = drover.Resources{CPU: drover.MilliCPU(processors) * 1000, Memory: swfBytes(v, processors)}
	if v[swfUser] >= 0 {
		j.User = "user" + strconv.FormatFloat(v[swfUser], 'f', -1, 64)
	}
	return j, "", nil
}

// swfBytes returns a job's memory: the requested amount, or else the used one; 0 if neither is known.
func swfBytes(v [swfFields]float64, processors float64) drover.Bytes {
	each := v[swfMemory]
	if each <= 0 {
		each = v[swfUsed]
	}
	if each <= 0 {
		return 0
	}
	return drover.Bytes(min(float64(mostMemory), each*float64(drover.KiB)*processors))
}

// seconds converts seconds to a duration, rounded to milliseconds.
func seconds(s float64) time.Duration {
	return time.Duration(math.Round(s*1000)) * time.Millisecond
}
