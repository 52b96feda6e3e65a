package drover

import (
	"context"
	"io"
	"iter"
	"strings"
	"time"
)

// Service is everything that a controller does for people and programs. A controller in this process and the client of
// a remote one both implement it, so a caller need not know which it has.
//
// Methods may be called concurrently. Every error is an [*Error]. From a client, any method may also return
// KindUnreachable, KindAuthentication (no valid token), KindForbidden (the token's role is too low) and KindRateLimit;
// the comment of each method names its other kinds. The context carries the caller's identity, see [WithIdentity].
type Service interface {
	Queue
	Fleet
	Watch
	Access
}

// Queue manages jobs.
type Queue interface {
	// Submit submits a batch: all of its jobs, or none. They are durable when Submit returns. The caller must have sent
	// the contents of their Files, see MissingInputs. KindInvalid: the batch is wrong, or one of its jobs fits no
	// configured type; the hint then names the nearest miss. KindConflict: the key was used for another batch. The same
	// batch with the same key gets the same receipt.
	Submit(ctx context.Context, s Submission) (Receipt, error)

	// MissingInputs returns the hashes whose contents the caller has not sent, even if other users have.
	MissingInputs(ctx context.Context, hashes []string) ([]string, error)

	// PutInput stores contents under their hash, once for all users that send them. Repeating it changes nothing.
	// KindInvalid: the contents have another hash.
	PutInput(ctx context.Context, hash string, contents io.Reader) error

	// Jobs lists jobs by id, a page at a time.
	Jobs(ctx context.Context, f JobFilter) (Page[Job], error)

	// Job returns a job, a whole array, or one of its elements. KindNotFound.
	Job(ctx context.Context, id JobID) (Job, error)

	// Cancel ends a job, a whole array or one of its elements: immediately if it waits, or else once it has been
	// stopped. It does not change a final one. KindNotFound.
	Cancel(ctx context.Context, id JobID, reason string) (Job, error)

	// Retry requeues the failed and cancelled elements of a final job; attempts count from zero again. KindNotFound;
	// KindConflict: the job is not final, has nothing to retry, or depends on one that did not succeed.
	Retry(ctx context.Context, id JobID, reason string) (Job, error)

	// Prune deletes the logs and outputs of jobs that ended before a time, but not their records, nor what unfinished
	// jobs of their batches still need.
	Prune(ctx context.Context, before Time) (Pruned, error)

	// RetryWith is Retry with the new definition of the job in the batch: its command, inputs and everything else
	// except labels. The job keeps its array, its gang and its dependencies. The caller must have sent the contents of
	// its Files, as for Submit. Also KindInvalid: the batch has no such job, changes its array, gang or dependencies,
	// or the job fits no configured type.
	RetryWith(ctx context.Context, id JobID, batch Batch, reason string) (Job, error)

	// SetPriority changes the priority of a job or a whole array. At priority 0, its attempts are stopped, and it waits
	// until the priority is raised. KindNotFound; KindConflict: the job is final; KindInvalid.
	SetPriority(ctx context.Context, id JobID, priority int) (Job, error)

	// SetPaused pauses or resumes the queue. While it is paused, no waiting job starts and nothing is rented for one;
	// running jobs continue. The change is durable when SetPaused returns.
	SetPaused(ctx context.Context, paused bool, reason string) (Status, error)

	// Logs returns an output stream of an array element, or of a job that is not an array. The caller closes it. It is
	// empty if the job has had no attempt or wrote nothing. KindNotFound: there is no such job.
	Logs(ctx context.Context, r LogRequest) (io.ReadCloser, error)

	// Outputs lists the output files of a job or an element. KindNotFound.
	Outputs(ctx context.Context, id JobID) ([]File, error)

	// OpenOutput opens one of the files that Outputs lists, from a byte offset. The caller closes it. KindNotFound.
	OpenOutput(ctx context.Context, id JobID, path string, from int64) (io.ReadCloser, error)
}

// Fleet manages instances, pools and offers. An instance is identified by its id, its name, or its cloud's id.
type Fleet interface {
	// Instances lists instances by id, a page at a time.
	Instances(ctx context.Context, f InstanceFilter) (Page[Instance], error)

	// Instance returns an instance, even if it is gone. KindNotFound.
	Instance(ctx context.Context, name string) (Instance, error)

	// Instruct applies an operator's verb to an instance. It is durable when Instruct returns. KindNotFound;
	// KindConflict: the instance is gone, or it is being destroyed and the verb is not kill.
	Instruct(ctx context.Context, name string, verb Verb, reason string) (Instance, error)

	// Pools lists the configured pools, and removed ones that still have instances, by name.
	Pools(ctx context.Context) ([]Pool, error)

	// ResizePool changes a pool's number of instances, until its configured number changes. The new number is durable
	// when ResizePool returns. KindNotFound; KindInvalid: the number is negative, above MaxPool, or above the pool's
	// maximum.
	ResizePool(ctx context.Context, name string, count int, reason string) (Pool, error)

	// Offers lists the offerings, cheapest first, and until when and why some are blocked.
	Offers(ctx context.Context, f OfferFilter) ([]Offer, error)
}

// Watch reports on the fleet.
type Watch interface {
	// Costs returns the costs of a period, grouped. KindInvalid: costs cannot be grouped by that.
	Costs(ctx context.Context, f CostFilter) (Costs, error)

	// Summary returns what the fleet has done and cost since it began.
	Summary(ctx context.Context) (Summary, error)

	// Status returns the current state of the fleet in brief.
	Status(ctx context.Context) (Status, error)

	// Explain explains the state of a subject: a job's id, the name of an instance, cloud or pool, "fleet", or an
	// offering as CLOUD/ZONE/TYPE/MARKET; fewer parts, or patterns, select several offerings. Without a subject, it
	// explains the fleet and everything that waits, is held or is blocked. KindNotFound.
	Explain(ctx context.Context, subject string) ([]Explanation, error)

	// Events yields events, beginning with recent ones, until the context ends; a non-nil error is the last value. A
	// slow reader misses events instead of delaying others: the next Event's Missed is then the number of missed ones.
	Events(ctx context.Context, f EventFilter) iter.Seq2[Event, error]

	// Dump writes the controller's whole state as JSON, without secrets.
	Dump(ctx context.Context, w io.Writer) error
}

// Access manages tokens.
type Access interface {
	// CreateToken creates a bearer token and returns its secret, which is not stored. KindInvalid.
	CreateToken(ctx context.Context, r TokenRequest) (NewToken, error)

	// Tokens lists all tokens that have not been revoked, including expired ones.
	Tokens(ctx context.Context) ([]Token, error)

	// RevokeToken revokes a token immediately. KindNotFound.
	RevokeToken(ctx context.Context, id string) error
}

// Submission is a batch to submit.
type Submission struct {
	Batch Batch
	Key   string // a batch sent again with the same key is not submitted twice; may be empty
}

// Receipt lists the jobs of a Submission.
type Receipt struct {
	Batch string         `json:"batch"`
	Jobs  []SubmittedJob `json:"jobs"` // in the batch's order
}

// SubmittedJob is one job of a Receipt.
type SubmittedJob struct {
	ID       JobID  `json:"id"`
	Name     string `json:"name"`
	Elements int    `json:"elements"` // 1 if it is not an array
}

// Page is a part of a list.
type Page[T any] struct {
	Items []T
	Next  string // the value of After for the next page; empty on the last page
}

// Pruned is the amount of results that Prune deleted.
type Pruned struct {
	Jobs  int   `json:"jobs"`
	Bytes int64 `json:"bytes"` // approximate
}

// MaxPage is the maximum number of items on a page.
const MaxPage = 1000

// JobFilter selects jobs. The zero JobFilter selects all of them, with each array as one item.
type JobFilter struct {
	Job      int64             // only this one
	Batch    string            // only those of batches with this name
	User     string            // only those of this user
	Mine     bool              // only the caller's, unless User is set; for a caller without a name: everybody's
	States   []JobState        // only those in one of these states
	Labels   map[string]string // only those with all of these labels
	Elements bool              // each array element as an item, instead of each array
	Tried    bool              // only those that have had an attempt
	Since    Time              // only those that are not final or have ended since; 0: all
	Match    string            // only those whose name or batch's name contains this; a page then covers a limited number of jobs, so it may be empty although more follow
	Newest   bool              // newest first, so After selects earlier ones; not with Elements
	After    JobID             // only those after this one
	Limit    int               // maximum number of items; 0, or more than MaxPage: MaxPage
}

// InstanceFilter selects instances. The zero InstanceFilter selects those that are not gone.
type InstanceFilter struct {
	Gone   bool            // include those that are gone
	States []InstanceState // only those in one of these states
	Cloud  string          // only those in this cloud
	Since  Time            // only those that are not gone or have gone since; 0: as set by Gone
	Newest bool            // newest first, so After selects lower ids
	After  int64           // only those with a higher id
	Limit  int             // maximum number of items; 0, or more than MaxPage: MaxPage

	Attempts int // include this many of each instance's last attempts, at most MaxAttempts
}

// MaxAttempts is the maximum number of attempts listed with an instance.
const MaxAttempts = 200

// OfferFilter selects offers.
type OfferFilter struct {
	Need  Resources // resources that must fit
	Cloud string    // only those of this cloud
	All   bool      // include those that the configuration excludes
}

// LogRequest selects an output stream.
type LogRequest struct {
	Job    JobID
	Stream Stream
	Follow bool // continue with later attempts until the job is final

	Attempt int   // number of the attempt, if its output is still stored; 0: the last
	Offset  int64 // first byte of the attempt's stream to read; later attempts are read from their beginning
}

// Stream is one of a job's two output streams.
type Stream string

// The output streams.
const (
	Stdout Stream = "stdout"
	Stderr Stream = "stderr"
)

// EventFilter selects events.
type EventFilter struct {
	After    string // only those after the one with this id
	Job      JobID  // only those about this job, or this array's elements
	Instance string // only those about the instance with this name
	Level    string // only those of at least this level: "debug", "info" (the default) or "warn"
	Recent   bool   // end after the recent events instead of waiting for more
	Last     int    // maximum number of recent events, the latest; 0: all
}

// TokenRequest describes a new bearer token.
type TokenRequest struct {
	User string        // its bearer, recorded as the submitter of everything submitted with the token
	Role Role          // what the bearer may do
	TTL  time.Duration // lifetime; 0: unlimited
}

// maxUser is the longest name of a user in bytes.
const maxUser = 64

// CheckUser refuses a name that no user can have.
func CheckUser(name string) error {
	outside := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-@", r))
	}
	if name == "" || len(name) > maxUser || strings.ContainsFunc(name, outside) {
		return Errorf(KindInvalid, "%.80q is not a valid user name", name).
			WithHint("use letters, digits and the characters . _ - @; at most %d in all", maxUser)
	}
	return nil
}
