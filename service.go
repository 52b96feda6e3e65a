package drover

import (
	"context"
	"io"
	"iter"
	"time"
)

// Service is all that a controller does for people and programs. A controller in this process and the client of one
// elsewhere both implement it, so whoever uses it cannot tell them apart.
//
// Methods may be called concurrently. Every error is an [*Error]. A client's may moreover be KindUnreachable,
// KindAuthentication (no valid token), KindForbidden (a token with a lesser role) and KindRateLimit from any method;
// those that a method has of its own stand with it. Who asks is in the context, see [WithIdentity].
type Service interface {
	Queue
	Fleet
	Watch
	Access
}

// Queue is the jobs.
type Queue interface {
	// Submit takes a batch in. Its jobs are durable when Submit returns, and are all of the batch or none of it. The
	// contents of their Files must be the caller's, see MissingInputs. KindInvalid: the batch is wrong, or no
	// configured type can hold one of its jobs, with the nearest miss in the hint. KindConflict: the key came with
	// another batch before; the same batch gets the same receipt.
	Submit(ctx context.Context, s Submission) (Receipt, error)

	// MissingInputs returns those of the hashes whose contents the caller has not sent, whoever else may have.
	MissingInputs(ctx context.Context, hashes []string) ([]string, error)

	// PutInput keeps contents under their hash, once for all who send them. KindInvalid: they have another hash. Doing
	// it again changes nothing.
	PutInput(ctx context.Context, hash string, contents io.Reader) error

	// Jobs lists jobs by id, a page at a time.
	Jobs(ctx context.Context, f JobFilter) (Page[Job], error)

	// Job is one job, an array as a whole, or one element of it. KindNotFound.
	Job(ctx context.Context, id JobID) (Job, error)

	// Cancel ends a job, an array as a whole or one element of it: what waits at once, what runs as soon as it lets
	// itself be stopped. One that is final stays as it is. KindNotFound.
	Cancel(ctx context.Context, id JobID, reason string) (Job, error)

	// Retry puts what failed or was cancelled of a final job back in the queue; attempts count from zero again.
	// KindNotFound; KindConflict if the job is not final, has nothing to retry, or is to run after one that did not
	// succeed.
	Retry(ctx context.Context, id JobID, reason string) (Job, error)

	// Prune takes away the logs and outputs of jobs that ended before a time; their records stay. What the jobs of a
	// batch still need is left.
	Prune(ctx context.Context, before Time) (Pruned, error)

	// RetryWith is Retry with what the batch says now under the job's name: its command, its inputs and all else but
	// its labels. The job keeps its array, its gang and the jobs it runs after. The contents of its Files must be the
	// caller's, as for Submit. Moreover KindInvalid: the batch has no such job, has it with another array, gang or
	// order, or no configured type can run it.
	RetryWith(ctx context.Context, id JobID, batch Batch, reason string) (Job, error)

	// SetPriority changes a job's priority, of an array as a whole. With 0 its attempts are stopped and it waits until
	// it is raised again. KindNotFound; KindConflict if the job is final; KindInvalid.
	SetPriority(ctx context.Context, id JobID, priority int) (Job, error)

	// SetPaused pauses the queue, so that nothing that waits is started, nor rented for, while what runs goes on; or
	// resumes it. It is durable when SetPaused returns.
	SetPaused(ctx context.Context, paused bool, reason string) (Status, error)

	// Logs reads an output stream of a job that is no array, or of one element. The caller closes it. KindNotFound if
	// there is no such job; of one that has had no attempt, or wrote nothing, there is nothing to read.
	Logs(ctx context.Context, r LogRequest) (io.ReadCloser, error)

	// Outputs lists the files that a job, or one element, has left. KindNotFound.
	Outputs(ctx context.Context, id JobID) ([]File, error)

	// OpenOutput reads one of the files that Outputs lists, from a byte on. The caller closes it. KindNotFound.
	OpenOutput(ctx context.Context, id JobID, path string, from int64) (io.ReadCloser, error)
}

// Fleet is the instances, and where they may come from. Identify an instance by its id, its name, or the id that its
// cloud uses.
type Fleet interface {
	// Instances lists instances by id, a page at a time.
	Instances(ctx context.Context, f InstanceFilter) (Page[Instance], error)

	// Instance is one instance, also one that is gone. KindNotFound.
	Instance(ctx context.Context, name string) (Instance, error)

	// Instruct gives an instance one of the operator's verbs. It is durable when Instruct returns. KindNotFound;
	// KindConflict if the instance is gone, or is going and was not told to be killed.
	Instruct(ctx context.Context, name string, verb Verb, reason string) (Instance, error)

	// Pools lists the configured pools by name, and those that still have instances though they are configured no more.
	Pools(ctx context.Context) ([]Pool, error)

	// ResizePool gives a pool another number of instances, until its configured number changes. The decision that takes
	// it has been committed when ResizePool returns. KindNotFound; KindInvalid: the number is negative, beyond MaxPool,
	// or more than the pool may have.
	ResizePool(ctx context.Context, name string, count int, reason string) (Pool, error)

	// Offers lists what could be rented, cheapest first, with what is blocked until when, and why.
	Offers(ctx context.Context, f OfferFilter) ([]Offer, error)
}

// Watch is what there is to see.
type Watch interface {
	// Costs says what money was for, from when to when it is asked. KindInvalid: costs cannot be grouped by that.
	Costs(ctx context.Context, f CostFilter) (Costs, error)

	// Summary is what the fleet did and what it cost, from its beginning until now.
	Summary(ctx context.Context) (Summary, error)

	// Status is the fleet at a glance.
	Status(ctx context.Context) (Status, error)

	// Explain says why the subject is as it is: a job's id, an instance's name, a cloud's, "fleet", or an offering as
	// CLOUD/ZONE/TYPE/MARKET, of which fewer parts, or patterns, name several. Without a subject it explains the fleet,
	// and then everything that waits, holds or is blocked. KindNotFound.
	Explain(ctx context.Context, subject string) ([]Explanation, error)

	// Events yields what happens, from what is remembered on, until the context ends. It ends with a non-nil error, if
	// any. Who reads slowly misses events rather than delaying anyone: an Event whose Missed is not 0 then says how
	// many.
	Events(ctx context.Context, f EventFilter) iter.Seq2[Event, error]

	// Dump writes all that the controller knows, without secrets, as JSON.
	Dump(ctx context.Context, w io.Writer) error
}

// Access is who may do what.
type Access interface {
	// CreateToken makes a bearer token, whose secret is shown this once. KindInvalid.
	CreateToken(ctx context.Context, r TokenRequest) (NewToken, error)

	// Tokens lists the tokens that were not revoked, those that have expired included.
	Tokens(ctx context.Context) ([]Token, error)

	// RevokeToken ends a token at once. KindNotFound.
	RevokeToken(ctx context.Context, id string) error
}

// Submission asks for a batch's jobs to be run.
type Submission struct {
	Batch Batch
	Key   string // a batch sent again with the same key is not submitted twice; may be empty
}

// Receipt says what became of a Submission.
type Receipt struct {
	Batch string         `json:"batch"`
	Jobs  []SubmittedJob `json:"jobs"` // in the batch's order
}

// SubmittedJob is one job of a Receipt.
type SubmittedJob struct {
	ID       JobID  `json:"id"`
	Name     string `json:"name"`
	Elements int    `json:"elements"` // 1 if it is no array
}

// Page is a part of a list.
type Page[T any] struct {
	Items []T
	Next  string // what After of the next page's filter is to be; empty on the last
}

// Pruned is what was taken away of old results.
type Pruned struct {
	Jobs  int   `json:"jobs"`
	Bytes int64 `json:"bytes"` // about
}

// MaxPage is the most that a page holds.
const MaxPage = 1000

// JobFilter chooses jobs. The zero JobFilter chooses all of them, each array as a whole.
type JobFilter struct {
	Job      int64             // only this one
	Batch    string            // only those of the batches of this name
	User     string            // only those of this user
	Mine     bool              // only those of whoever asks, unless User is set; of a caller without a name: whosever
	States   []JobState        // only those in one of these states
	Labels   map[string]string // only those with all of these labels
	Elements bool              // the elements of arrays one by one, instead of each array as a whole
	Tried    bool              // only those that have had an attempt
	Since    Time              // only those that are not final, or ended since; 0: whenever
	Match    string            // only those whose name, or batch's name, has this in it; a page then looks through a limited number of jobs and may be empty, though there are more
	Newest   bool              // the newest first: After is then what they come before; not with Elements
	After    JobID             // only those that come after this one
	Limit    int               // at most so many; 0, or more than MaxPage: MaxPage
}

// InstanceFilter chooses instances. The zero InstanceFilter chooses those that are not gone.
type InstanceFilter struct {
	Gone   bool            // also those that are gone
	States []InstanceState // only those in one of these states
	Cloud  string          // only those of this cloud
	Since  Time            // only those that are not gone, or went since; 0: as Gone says
	Newest bool            // the newest first: After is then what their ids are below
	After  int64           // only those with a higher id
	Limit  int             // at most so many; 0, or more than MaxPage: MaxPage

	Attempts int // with this many of each instance's last attempts, at most MaxAttempts
}

// MaxAttempts is the most attempts that are listed with an instance.
const MaxAttempts = 200

// OfferFilter chooses offers.
type OfferFilter struct {
	Need  Resources // what must fit
	Cloud string    // only of this cloud
	All   bool      // also those that the configuration leaves out
}

// LogRequest asks for an output stream.
type LogRequest struct {
	Job    JobID
	Stream Stream
	Follow bool // continue, attempt after attempt, until the job is final

	Attempt int   // the attempt of this number, as far as its output is kept; 0: the last
	Offset  int64 // of the attempt's stream, in bytes: begin there; of later attempts that are followed, all is read
}

// Stream is one of a job's two output streams.
type Stream string

// The output streams.
const (
	Stdout Stream = "stdout"
	Stderr Stream = "stderr"
)

// EventFilter chooses events.
type EventFilter struct {
	After    string // only those that come after the one with this id
	Job      JobID  // only those about this job, or the elements of this array
	Instance string // only those about the instance of this name
	Level    string // only those that matter as much: "debug", "info" (the default) or "warn"
	Recent   bool   // end after the recent events instead of waiting for more
	Last     int    // of what is remembered, only so many, the latest; 0: all
}

// TokenRequest asks for a bearer token.
type TokenRequest struct {
	User string        // who bears it, and is said to have submitted what it submits
	Role Role          // what it may do
	TTL  time.Duration // how long; 0: for ever
}
