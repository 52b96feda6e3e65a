package drover

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// JobID names a job, or one element of an array job. Index is -1 for the job as a whole, which is also the only element
// of a job that is not an array.
type JobID struct {
	Number int64
	Index  int
}

// Compare orders ids by number, then by index.
func (id JobID) Compare(o JobID) int {
	return cmp.Or(cmp.Compare(id.Number, o.Number), cmp.Compare(id.Index, o.Index))
}

// String renders the id as people type it: "17", or "17.3" for element 3 of array job 17.
func (id JobID) String() string {
	if id.Index < 0 {
		return strconv.FormatInt(id.Number, 10)
	}
	return fmt.Sprintf("%d.%d", id.Number, id.Index)
}

// ParseJobID reads "17" or "17.3".
func ParseJobID(s string) (JobID, error) {
	number, index, array := strings.Cut(s, ".")
	id := JobID{Index: -1}
	var err error
	if id.Number, err = strconv.ParseInt(number, 10, 64); err == nil && array {
		id.Index, err = strconv.Atoi(index)
	}
	if err != nil || id.Number <= 0 || array && id.Index < 0 {
		return JobID{}, fmt.Errorf("%q is not a job id (write, for example, 17 or 17.3)", s)
	}
	return id, nil
}

// MarshalText and UnmarshalText make a JobID a JSON string and a map key. A JobID without a number stands for every job
// and becomes the empty string.
func (id JobID) MarshalText() ([]byte, error) {
	if id.Number == 0 {
		return nil, nil
	}
	return []byte(id.String()), nil
}

// UnmarshalText reads what MarshalText wrote.
func (id *JobID) UnmarshalText(b []byte) (err error) {
	if len(b) == 0 {
		*id = JobID{}
		return nil
	}
	*id, err = ParseJobID(string(b))
	return err
}

// AttemptID names one execution of one job. Numbers begin at 1 and only grow, so they act as a fence: a runner that has
// seen attempt n of a job never starts one with a lower number.
type AttemptID struct {
	Job    JobID
	Number int
}

// String renders the id as "17.3/1". For the name on disk see [AttemptID.Folder].
func (id AttemptID) String() string { return fmt.Sprintf("%v/%d", id.Job, id.Number) }

// Folder is the name of the attempt's folder on its instance, "17.3-1".
func (id AttemptID) Folder() string { return fmt.Sprintf("%v-%d", id.Job, id.Number) }

// ParseAttemptID reads what String wrote.
func ParseAttemptID(s string) (AttemptID, error) {
	job, number, _ := strings.Cut(s, "/")
	id, err := ParseJobID(job)
	n, convErr := strconv.Atoi(number)
	if err != nil || convErr != nil || n < 1 {
		return AttemptID{}, fmt.Errorf("%q is not an attempt id (for example, 17.3/1)", s)
	}
	return AttemptID{id, n}, nil
}

// MaxNumber is the highest number of a job, array element or attempt that Drover accepts from elsewhere. Drover never
// assigns that many, and counting on from there does not overflow an integer.
const MaxNumber = 1 << 48

// Plausible reports whether the numbers of an id are in the possible range.
func (id AttemptID) Plausible() bool {
	in := func(n, least int64) bool { return least <= n && n <= MaxNumber }
	return in(id.Job.Number, 1) && in(int64(id.Job.Index), -1) && in(int64(id.Number), 1)
}

// MarshalText makes an AttemptID a JSON string and a map key.
func (id AttemptID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (id *AttemptID) UnmarshalText(b []byte) (err error) {
	*id, err = ParseAttemptID(string(b))
	return err
}

// JobState is where a job is in its life.
type JobState string

// The states of a job. Succeeded, failed and cancelled are final.
const (
	JobQueued    JobState = "queued"
	JobRunning   JobState = "running"
	JobSucceeded JobState = "succeeded"
	JobFailed    JobState = "failed"
	JobCancelled JobState = "cancelled"
)

// Final reports whether a job in this state has ended: only a retry takes it out of this state.
func (s JobState) Final() bool { return s == JobSucceeded || s == JobFailed || s == JobCancelled }

// AttemptState is where an attempt is in its life.
type AttemptState string

// The states of an attempt. The first three are live: while an attempt is in one of them, no other attempt of its job
// is.
const (
	AttemptStarting    AttemptState = "starting"    // committed; the runner has not yet confirmed it
	AttemptRunning     AttemptState = "running"     // the command runs
	AttemptCollecting  AttemptState = "collecting"  // the command ended; its output is on its way
	AttemptSucceeded   AttemptState = "succeeded"   // exit code 0, outputs stored
	AttemptFailed      AttemptState = "failed"      // any other end of the command
	AttemptCancelled   AttemptState = "cancelled"   // stopped because its job was cancelled
	AttemptInterrupted AttemptState = "interrupted" // the cloud took the instance back
	AttemptLost        AttemptState = "lost"        // the instance died, went silent or broke
)

// Live reports whether an attempt in this state may still be executing or holds results that are nowhere else.
func (s AttemptState) Live() bool {
	return s == AttemptStarting || s == AttemptRunning || s == AttemptCollecting
}

// Retry specifies which exit codes are retried, and how often, before they are final. The zero Retry retries none.
type Retry struct {
	ExitCodes []int `json:"exit_codes,omitempty"` // empty: all except 0
	Times     int   `json:"times"`

	Delay time.Duration `json:"delay,omitempty"` // before the first retry; it doubles for each later one
}

// Retries reports whether an exit code is retried.
func (r Retry) Retries(code int) bool {
	return code != 0 && (len(r.ExitCodes) == 0 || slices.Contains(r.ExitCodes, code))
}

// Input is something that is placed in a job's working folder before it starts: either a path of the submitter's, or
// another job's outputs.
type Input struct {
	Path string `json:"path,omitempty"`
	From string `json:"from,omitempty"` // a job's name within the batch
}

// File is one file of a job's inputs or outputs: the hash of its contents, and its path relative to the working folder,
// with slashes.
type File struct {
	Path string `json:"path"`
	Mode uint32 `json:"mode"` // permission bits
	Size int64  `json:"size"`
	Hash string `json:"hash"` // SHA-256, in hex
}

// plainFile is the JSON form of a File whose path is valid UTF-8.
type plainFile File

// oddFile is the JSON form of a File whose path is not valid UTF-8. JSON cannot hold such a path, so Path only
// resembles it.
type oddFile struct {
	plainFile
	PathBytes []byte `json:"path_bytes,omitempty"`
}

// MarshalJSON preserves the path even if it is not valid UTF-8.
func (f File) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(f.Path) {
		return json.Marshal(plainFile(f))
	}
	return json.Marshal(oddFile{plainFile(f), []byte(f.Path)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (f *File) UnmarshalJSON(b []byte) error {
	var odd oddFile
	if err := json.Unmarshal(b, &odd); err != nil {
		return err
	}
	*f = File(odd.plainFile)
	if odd.PathBytes != nil {
		f.Path = string(odd.PathBytes)
	}
	return nil
}

// Array is the index range of an array job, both ends included. The zero Array is no array.
type Array struct {
	First int    `json:"first"`
	Last  int    `json:"last"`
	Set   bool   `json:"set,omitempty"`
	Only  string `json:"only,omitempty"` // its indices, ascending, as "1,3,5-9"; empty: all from First to Last
}

// Runs yields the first and last index of each run of consecutive indices. A job that is not an array has none.
func (a Array) Runs() iter.Seq2[int, int] {
	return func(yield func(first, last int) bool) {
		switch {
		case !a.Set:
		case a.Only == "":
			yield(a.First, a.Last)
		default:
			for part := range strings.SplitSeq(a.Only, ",") {
				from, to, ranged := strings.Cut(part, "-")
				first, _ := strconv.Atoi(from)
				last, _ := strconv.Atoi(to)
				if !ranged {
					last = first
				}
				if !yield(first, last) {
					return
				}
			}
		}
	}
}

// Size returns the number of elements; a job that is not an array has one.
func (a Array) Size() int {
	switch {
	case !a.Set:
		return 1
	case a.Only == "":
		return a.Last - a.First + 1
	}
	n := 0
	for first, last := range a.Runs() {
		n += last - first + 1
	}
	return n
}

// Has reports whether the array has the index.
func (a Array) Has(index int) bool {
	for first, last := range a.Runs() {
		if first <= index && index <= last {
			return true
		}
	}
	return false
}

// String is the array as people write it, "1-20" or "1,3,5-9"; empty for none.
func (a Array) String() string {
	switch {
	case !a.Set:
		return ""
	case a.Only == "":
		return fmt.Sprintf("%d-%d", a.First, a.Last)
	}
	return a.Only
}

// JobSpec is a job as it was submitted, checked and with its defaults filled in.
type JobSpec struct {
	Name       string            `json:"name"`
	Array      Array             `json:"array"`
	MaxRunning int               `json:"max_running,omitempty"` // the most of its elements that run at once; 0: no limit
	Gang       int               `json:"gang,omitempty"`        // this many consecutive elements start together; 0: each by itself
	Command    []string          `json:"command"`
	Image      string            `json:"image,omitempty"`
	Resources  Resources         `json:"resources"`
	Placement  Placement         `json:"placement"`
	Env        map[string]string `json:"env,omitempty"`
	Inputs     []Input           `json:"inputs,omitempty"`
	Outputs    []string          `json:"outputs,omitempty"`
	Required   []string          `json:"required,omitempty"`  // the Outputs that must match something; otherwise a job with exit code 0 fails
	After      []string          `json:"after,omitempty"`     // names of jobs in the same batch, or numbers of others, that must succeed first; including those of inputs
	AfterAny   []string          `json:"after_any,omitempty"` // the same for jobs that need only be final
	Spot       SpotPolicy        `json:"spot"`
	Attempts   int               `json:"attempts"`
	Retry      Retry             `json:"retry"`
	Timeout    time.Duration     `json:"timeout,omitempty"`  // 0: none
	Expected   time.Duration     `json:"expected,omitempty"` // how long one attempt is likely to run: it influences what is rented, but ends nothing; 0: not known
	MaxWait    time.Duration     `json:"max_wait,omitempty"` // how much longer than a boot it may wait for room that is paid for anyway
	Priority   int               `json:"priority"`
	Labels     map[string]string `json:"labels,omitempty"`
	Files      []File            `json:"files,omitempty"`   // the contents of Inputs' paths and of Foreach, once hashed
	Foreach    []string          `json:"foreach,omitempty"` // the file of each array element: its path in Files; it is placed for that element alone

	ForeachPaths []string `json:"-"` // the submitter's paths of these files
}

// FileOf is the file that an element is for; empty if there is none.
func (s JobSpec) FileOf(index int) string {
	if index < 0 || index >= len(s.Foreach) {
		return ""
	}
	return s.Foreach[index]
}

// GangOf returns the number of an array element's gang and the element's place in it, both from 0.
func (s JobSpec) GangOf(index int) (gang, place int) {
	nth := index - s.Array.First
	return nth / s.Gang, nth % s.Gang
}

// MaxAlternatives is the maximum number of brace-free patterns that one with braces may stand for: the time to search
// for files is proportional to that number.
const MaxAlternatives = 100

// Alternatives returns the most patterns without braces that a valid pattern stands for: {a,b}/{c,d} stands for four.
// It stops counting beyond MaxAlternatives.
func Alternatives(pattern string) int {
	_, n := alternatives(pattern, false)
	return n
}

// alternatives counts up to the end of the pattern or, within braces, up to the closing one.
func alternatives(rest string, within bool) (_ string, sum int) {
	product := 1
	for rest != "" && sum+product <= MaxAlternatives {
		c := rest[0]
		rest = rest[1:]
		switch {
		case c == '\\' && rest != "":
			rest = rest[1:]
		case c == '{':
			var n int
			rest, n = alternatives(rest, true)
			product *= n
		case c == ',' && within:
			sum, product = sum+product, 1
		case c == '}' && within:
			return rest, sum + product
		}
	}
	return rest, sum + product
}

// Batch is a set of jobs submitted together; names are unique within it.
type Batch struct {
	Name   string    `json:"name"`
	User   string    `json:"user,omitempty"`
	Jobs   []JobSpec `json:"jobs"`
	Notify *Notify   `json:"notify,omitempty"` // where its outcome is posted; nil: nowhere
}

// Notify is a URL to which messages are posted, and the events that cause them.
type Notify struct {
	URL string   `json:"url"`
	On  []string `json:"on"` // of the events below
}

// The events of a Notify.
const (
	NotifyFailed = "failed" // the first of its jobs has failed
	NotifyFinal  = "final"  // all of them are final
)

// Job returns the job with this name. KindInvalid: there is none.
func (b Batch) Job(name string) (JobSpec, error) {
	for _, j := range b.Jobs {
		if j.Name == name {
			return j, nil
		}
	}
	return JobSpec{}, Errorf(KindInvalid, "batch %s has no job named %s", b.Name, name).WithHint("a retried job takes its new definition from the job with the same name")
}

// CheckRetry returns an error if a job may not be retried as s; key is the one that must not change but did.
func (s JobSpec) CheckRetry(was JobSpec) (key string, err error) {
	switch {
	case !slices.Equal(s.Foreach, was.Foreach):
		key = "foreach"
	case s.Array != was.Array:
		key = "array"
	case s.Gang != was.Gang:
		key = "gang"
	case !slices.Equal(s.After, was.After), !slices.Equal(s.AfterAny, was.AfterAny):
		key = "after"
	default:
		return "", nil
	}
	return key, Errorf(KindInvalid, "job %s cannot be retried with a different %s", s.Name, key).
		WithHint("array, foreach, gang and after must not change; the command, inputs, resources and other keys may change")
}

// The defaults of a job, for keys that a batch file leaves out, and its limits.
const (
	DefaultAttempts = 3
	DefaultPriority = 1

	DefaultRetryDelay = 10 * time.Second

	DefaultCPU    = MilliCPU(1000)
	DefaultMemory = 512 * MiB
	DefaultDisk   = 1 * GiB
	MaxArray      = 1_000_000 // elements
	MaxGang       = 1000      // elements that start together
	MaxPriority   = 1000
)

// Exit is how a command ended, as its supervisor saw it.
type Exit struct {
	Code      int           `json:"code"`             // 128+signal if a signal ended it, as in a shell
	Signal    string        `json:"signal,omitempty"` // "killed", "terminated", …
	Cause     string        `json:"cause,omitempty"`  // why the runner ended it ("stopped", "timeout") or could not start it ("no start"); see the causes
	Text      string        `json:"text,omitempty"`   // for people, if Code alone does not explain it
	Started   Time          `json:"started"`          // by the instance's clock
	Ended     Time          `json:"ended"`
	CPU       time.Duration `json:"cpu"`        // user and system time of the command and its children
	MaxRSS    Bytes         `json:"max_rss"`    // largest resident set of any one process
	StdoutLen int64         `json:"stdout_len"` // bytes written; Stdout holds the last of them
	StderrLen int64         `json:"stderr_len"`
	Stdout    string        `json:"stdout,omitempty"` // at most TailBytes
	Stderr    string        `json:"stderr,omitempty"`
}

// TailBytes is how much of the end of each output stream an Exit contains; a shorter stream is complete.
const TailBytes = 4096

// The causes of an Exit.
const (
	CauseStopped = "stopped"
	CauseTimeout = "timeout"
	CauseNoStart = "no start"
	CauseLost    = "supervisor lost"

	CauseInterrupted = "interrupted"       // it was told to end because its cloud is taking the instance back
	CauseMemory      = "out of memory"     // it needed more memory than it had
	CauseImage       = "image"             // its image does not exist, or access to it is denied
	CauseNoImage     = "image unreachable" // its image could not be fetched this time
)
