// Package trace reads recorded workloads, and price lists to try them on.
//
// The model: a workload is a list of jobs by the time of their submission, each with how long it ran and what it
// needed. It is read from a file of the Parallel Workloads Archive (swf.go) or from a table (csv.go), gzipped or not.
// What a file does not say of a job is zero here, and what cannot be simulated of it is left out and counted by its
// cause.
//
// The invariants: what is read is bounded, line by line and as a whole; a fault names the file, the line, the place in
// the line and what to do; the jobs are in the order of their submission, those of one moment in the order of the file.
package trace

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"drover"
)

// Trace is a recorded workload.
type Trace struct {
	Name  string      // of its file
	Start drover.Time // when its jobs' times begin; 0: it does not say
	Jobs  []Job
	Left  []Left // out of it, by cause
}

// Job is a job of a trace, or an array of jobs that are all alike.
type Job struct {
	Submit   time.Duration // after the trace's start
	Runtime  time.Duration // of each
	Expected time.Duration // what its submitter said of that; 0: nothing
	Need     drover.Resources
	Count    int // at least 1
	User     string
	Priority int               // 0: it does not say
	Spot     drover.SpotPolicy // empty: it does not say
}

// Left is how many jobs of a trace were left out because of one thing.
type Left struct {
	Why  string `json:"why"`
	Jobs int    `json:"jobs"`
}

// Limits of what is read.
const (
	maxLine    = 64 << 10  // bytes
	maxText    = 4 << 30   // bytes of a file, unpacked
	maxJobs    = 5_000_000 // elements of arrays included
	maxVCPUs   = 1_000_000 // of a job
	longest    = 100 * 365 * 24 * time.Hour
	mostMemory = drover.Bytes(1) << 50
)

// Open reads the trace in a file, whose name says its format: .swf or .csv, and .gz after that if it is compressed.
func Open(path string) (*Trace, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, drover.Errorf(drover.KindInvalid, "opening %s: %v", path, cause(err)).WithHint("the path is relative to the current folder")
	}
	defer file.Close()
	return Read(path, file)
}

// cause is an error of the file system without the path, which the message has already.
func cause(err error) error {
	if e, ok := err.(*os.PathError); ok {
		return e.Err
	}
	return err
}

// Read reads a trace from r, by the name of the file that it comes from.
func Read(name string, r io.Reader) (*Trace, error) {
	plain, zipped := strings.CutSuffix(strings.ToLower(name), ".gz")
	if zipped {
		unpacked, err := gzip.NewReader(bufio.NewReader(r))
		if err != nil {
			return nil, drover.Errorf(drover.KindInvalid, "%s is not compressed with gzip: %v", name, err)
		}
		r = unpacked
	}
	b := &builder{t: &Trace{Name: filepath.Base(name)}, file: name, left: map[string]int{}}
	r = &bounded{r: r, left: maxText}
	var err error
	switch filepath.Ext(plain) {
	case ".swf":
		err = b.readSWF(r)
	case ".csv":
		err = b.readCSV(r)
	default:
		err = drover.Errorf(drover.KindInvalid, "%s is neither .swf nor .csv", name).
			WithHint("a trace is a file of the Parallel Workloads Archive (.swf) or a table (.csv), compressed (.gz) or not; see docs/simulate.md")
	}
	if err != nil {
		return nil, err
	}
	return b.finish()
}

// bounded is a reader that fails, rather than ends, when more comes than may.
type bounded struct {
	r    io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the text is larger than %v", drover.Bytes(maxText).Rounded())
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// builder gathers a trace.
type builder struct {
	t     *Trace
	file  string
	jobs  int // elements included
	users map[string]string
	left  map[string]int
}

// fault is what is wrong at a place of the file; columns count from 1.
func (b *builder) fault(line, column int, format string, args ...any) *drover.Error {
	return drover.Errorf(drover.KindInvalid, "%s:%d:%d: %s", b.file, line, column, fmt.Sprintf(format, args...))
}

// add takes in a job of a line.
func (b *builder) add(j Job, line int) error {
	if b.jobs += j.Count; b.jobs > maxJobs {
		return b.fault(line, 1, "there are more than %d jobs", maxJobs).WithHint("simulate a part of the trace")
	}
	j.User = b.user(j.User)
	b.t.Jobs = append(b.t.Jobs, j)
	return nil
}

// user is a user's name, held once however many jobs have it.
func (b *builder) user(name string) string {
	if known, ok := b.users[name]; ok {
		return known
	}
	if b.users == nil {
		b.users = map[string]string{}
	}
	name = strings.Clone(name)
	b.users[name] = name
	return name
}

func (b *builder) leaveOut(why string) { b.left[why]++ }

// finish puts the jobs in order and sums up what was left out.
func (b *builder) finish() (*Trace, error) {
	t := b.t
	for why, n := range b.left {
		t.Left = append(t.Left, Left{why, n})
	}
	slices.SortFunc(t.Left, func(a, b Left) int { return cmp.Or(cmp.Compare(b.Jobs, a.Jobs), cmp.Compare(a.Why, b.Why)) })
	if len(t.Jobs) == 0 {
		return nil, drover.Errorf(drover.KindInvalid, "%s has no job that can be simulated%s", b.file, leftWords(t.Left))
	}
	slices.SortStableFunc(t.Jobs, func(a, b Job) int { return cmp.Compare(a.Submit, b.Submit) })
	return t, nil
}

func leftWords(left []Left) string {
	words := ""
	for i, l := range left {
		separator := ", "
		if i == 0 {
			separator = ": "
		}
		words += fmt.Sprintf("%s%d %s", separator, l.Jobs, l.Why)
	}
	return words
}
