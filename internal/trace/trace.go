// Package trace reads recorded workloads, and price lists on which to try them.
//
// The model: a workload is a list of jobs in order of submission, each with its run time and its resources. It is read
// from a file of the Parallel Workloads Archive (swf.go) or from a table (csv.go), gzipped or not. Values that a file
// does not have are zero here. Jobs that cannot be simulated are left out, and counted by cause.
//
// The invariants: input is limited, line by line and as a whole; an error names the file, the line, the place in the
// line and what to do; jobs are in order of submission, and equal times in the order of the file.
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
	Name  string      // the file's name
	Start drover.Time // when its jobs' times begin; 0: unknown
	Jobs  []Job
	Left  []Left // jobs that were left out, by cause
}

// Job is a job of a trace, or an array of equal jobs.
type Job struct {
	Submit   time.Duration // after the trace's start
	Runtime  time.Duration // of each
	Expected time.Duration // the submitter's estimate of the run time; 0: none
	Need     drover.Resources
	Count    int // at least 1
	User     string
	Priority int               // 0: not in the trace
	Spot     drover.SpotPolicy // empty: not in the trace
}

// Left is how many jobs of a trace were left out for one reason.
type Left struct {
	Why  string `json:"why"`
	Jobs int    `json:"jobs"`
}

// Limits of the input.
const (
	maxLine    = 64 << 10  // bytes
	maxText    = 4 << 30   // bytes of a file, unpacked
	maxJobs    = 5_000_000 // elements of arrays included
	maxVCPUs   = 1_000_000 // of a job
	longest    = 10 * 365 * 24 * time.Hour
	mostMemory = drover.Bytes(1) << 50
)

// Open reads the trace from a file, whose name gives its format: .swf or .csv, with .gz after it if compressed.
func Open(path string) (*Trace, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, drover.Errorf(drover.KindInvalid, "opening %s: %v", path, cause(err)).WithHint("the path is relative to the current folder")
	}
	defer file.Close()
	return Read(path, file)
}

// cause removes the path from a file system error, since the message has it already.
func cause(err error) error {
	if e, ok := err.(*os.PathError); ok {
		return e.Err
	}
	return err
}

// Read reads a trace from r; name is its file's name.
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
	r = withoutMark(&bounded{r: r, left: maxText})
	var err error
	switch filepath.Ext(plain) {
	case ".swf":
		err = b.readSWF(r)
	case ".csv":
		err = b.readCSV(r)
	default:
		err = drover.Errorf(drover.KindInvalid, "%s is neither a .swf nor a .csv file", name).
			WithHint("a trace is a file from the Parallel Workloads Archive (.swf) or a table (.csv), compressed (.gz) or not; see docs/simulate.md")
	}
	if err != nil {
		return nil, err
	}
	return b.finish()
}

// bounded is a reader that fails, rather than ends, when the input exceeds a limit.
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

// withoutMark returns a reader that skips a byte order mark at the beginning of a text.
func withoutMark(r io.Reader) io.Reader {
	text := bufio.NewReader(r)
	if mark, _ := text.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
		text.Discard(len(byteOrderMark))
	}
	return text
}

const byteOrderMark = "\ufeff"

// builder builds a trace.
type builder struct {
	t     *Trace
	file  string
	jobs  int // including elements
	users map[string]string
	left  map[string]int
}

// fault is an error at a place of the file; columns count from 1.
func (b *builder) fault(line, column int, format string, args ...any) *drover.Error {
	return drover.Errorf(drover.KindInvalid, "%s:%d:%d: %s", b.file, line, column, fmt.Sprintf(format, args...))
}

// add adds a line's job.
func (b *builder) add(j Job, line int) error {
	if b.jobs += j.Count; b.jobs > maxJobs {
		return b.fault(line, 1, "there are more than %d jobs", maxJobs).WithHint("simulate part of the trace")
	}
	j.User = b.user(j.User)
	b.t.Jobs = append(b.t.Jobs, j)
	return nil
}

// user returns a user's name, stored once for all the jobs that have it.
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

// finish sorts the jobs and sums up what was left out.
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
