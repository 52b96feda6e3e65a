package engine

import (
	"encoding/json"
	"fmt"

	"drover"
)

// Event is one thing that happened, with the time at which the shell noticed it. Times never decrease.
type Event struct {
	At   drover.Time
	Body Body
}

// Body is what happened: one of the types below.
type Body interface{ kind() string }

// Configured brings the settings; it is the first event after a start and comes again when they change.
type Configured struct {
	Settings Settings   `json:"settings"`
	Spent    []Spending `json:"spent,omitempty"` // in the current windows, for budgets that are not tracked yet
}

// Ticked says that the requested wake-up time has come. Any other event serves as well.
type Ticked struct{}

// Submitted brings jobs that the store has numbered. Jobs that are already known are ignored.
type Submitted struct {
	Jobs []Job `json:"jobs"`
}

// CancelAsked requests the end of a job or one of its elements or, with All, of every job, whichever of its retries it
// is in.
type CancelAsked struct {
	Wish   int64         `json:"wish,omitempty"` // its row, 0 if it has none
	Job    drover.JobID  `json:"job"`
	Again  int64         `json:"again,omitempty"` // the retry of the job that is meant, as Job.Again; a later one is left alone
	All    bool          `json:"all,omitempty"`
	Reason drover.Reason `json:"reason"`
}

// InstructAsked is an operator's command for an instance.
type InstructAsked struct {
	Wish     int64         `json:"wish,omitempty"`
	Instance int64         `json:"instance"`
	Verb     drover.Verb   `json:"verb"`
	Reason   drover.Reason `json:"reason"`
}

// PriorityAsked requests another priority for a job. With 0, its attempts are stopped, and it waits until the priority
// is raised again.
type PriorityAsked struct {
	Wish     int64         `json:"wish,omitempty"`
	Job      int64         `json:"job"`
	Again    int64         `json:"again,omitempty"` // the retry of the job that is meant, as Job.Again; a later one is left alone
	Priority int           `json:"priority"`
	Reason   drover.Reason `json:"reason"`
}

// QueueAsked requests that no waiting work be started or rented for or, with Resume, that it be again.
type QueueAsked struct {
	Wish   int64         `json:"wish,omitempty"`
	Resume bool          `json:"resume,omitempty"`
	Reason drover.Reason `json:"reason"`
}

// ResizeAsked is an operator's request for another number of instances in a pool, until its configured number changes.
type ResizeAsked struct {
	Wish   int64         `json:"wish,omitempty"`
	Pool   string        `json:"pool"`
	Count  int           `json:"count"`
	Reason drover.Reason `json:"reason"`
}

// GroupAsked is a request of a cluster's autoscaler to a node group. It has no number, so it is carried out only while
// the caller waits for the answer: not later than answerWithin after Asked, nor by the next controller. A caller without
// an answer assumes that nothing was done, and asks again or requests as many nodes of another group.
type GroupAsked struct {
	Wish   int64         `json:"wish,omitempty"`
	Group  string        `json:"group"`
	Verb   GroupVerb     `json:"verb"`
	Delta  int           `json:"delta,omitempty"` // positive for GroupIncrease, negative for GroupDecrease
	Nodes  []NodeKey     `json:"nodes,omitempty"` // for GroupDelete
	Asked  drover.Time   `json:"asked"`
	Reason drover.Reason `json:"reason"`
}

// GroupVerb is what an autoscaler may request.
type GroupVerb string

// The verbs.
const (
	GroupIncrease GroupVerb = "increase" // have this many more
	GroupDecrease GroupVerb = "decrease" // give up this many requested nodes that are not created yet
	GroupDelete   GroupVerb = "delete"   // destroy these nodes, and lower the target
)

// NodeKey names a node: by its instance, or as a failure that has none.
type NodeKey struct {
	Instance int64 `json:"instance,omitempty"`
	Failure  int64 `json:"failure,omitempty"`
}

// NodeTold reports what was observed about an instance's node in its cluster.
type NodeTold struct {
	Instance int64    `json:"instance"`
	Word     NodeWord `json:"word"`
	Why      string   `json:"why,omitempty"` // of NodeWaits; empty: for nothing unusual
}

// NodeWord is what may be observed about a node.
type NodeWord string

// The words.
const (
	NodeJoined  NodeWord = "joined"  // it is ready, and its startup taint was removed
	NodeAbsent  NodeWord = "absent"  // it is not, according to its cluster now
	NodeEmptied NodeWord = "emptied" // no evictable pods are left on it, or it does not exist
	NodeWaits   NodeWord = "waits"   // why it is not ready, or not emptied, has changed
)

// HealthChecked says that an instance's health check passes, or that it has failed several times in a row. Others says
// that another instance of its cloud has passed its own meanwhile.
type HealthChecked struct {
	Instance int64  `json:"instance"`
	Text     string `json:"text,omitempty"` // how it failed; empty: it passes
	Others   bool   `json:"others,omitempty"`
}

// DrainAsked requests that this controller start nothing more, so that it can exit and leave nothing behind: attempts
// finish, instances go as they become idle, and waiting work waits for the next controller. With Stop, which says why,
// attempts are told to end and their jobs are queued again, as with priority 0.
type DrainAsked struct {
	Stop string `json:"stop,omitempty"`
}

// CloseAsked requests the end of the fleet: instances go as soon as they have no work, and no new ones are created.
// With Now, those that are kept for inspection go too.
type CloseAsked struct {
	Now bool `json:"now,omitempty"`
}

// Offered answers ListOfferings: the complete catalogue or, with a Base, the changes since the one with that hash. With
// Err set it says nothing.
type Offered struct {
	Effect    int64             `json:"effect"`
	Cloud     string            `json:"cloud"`
	Offerings []drover.Offering `json:"offerings,omitempty"` // all, or the new and changed ones
	Removed   []OfferingKey     `json:"removed,omitempty"`
	Base      string            `json:"base,omitempty"`
	Hash      string            `json:"hash,omitempty"` // of the current catalogue
	Past      []Past            `json:"past,omitempty"` // prices of spot offerings in use: their history, in the first answer after a start, and those that Offerings lacks
	Err       *drover.Error     `json:"err,omitempty"`
}

// Listed answers ListInstances: the additions to the cloud's last good list, and what is missing from the new one.
// After a start the first list adds everything it has. With Err set the list says nothing.
type Listed struct {
	Effect  int64         `json:"effect"`
	Cloud   string        `json:"cloud"`
	Began   drover.Time   `json:"began"`
	Added   []Sighting    `json:"added,omitempty"`
	Removed []string      `json:"removed,omitempty"` // provider IDs
	Err     *drover.Error `json:"err,omitempty"`
}

// Described answers Describe: whether the cloud says that the instance does not exist, or no longer, and when it ended,
// if the cloud knows. With Err set it says nothing.
type Described struct {
	Effect   int64         `json:"effect"`
	Instance int64         `json:"instance"`
	Began    drover.Time   `json:"began"`
	Gone     bool          `json:"gone,omitempty"`
	Ended    drover.Time   `json:"ended,omitempty"`
	Err      *drover.Error `json:"err,omitempty"`
}

// Created answers Create: the cloud has accepted.
type Created struct {
	Effect     int64            `json:"effect"`
	Instance   int64            `json:"instance"`
	ProviderID string           `json:"provider_id"`
	Taken      drover.Offering  `json:"taken"`
	Addresses  drover.Addresses `json:"addresses,omitzero"`
}

// CreateFailed answers Create. Tried is how many of the candidates the cloud was asked for; a capacity error means that
// none of them is available; any other error concerns all of them.
type CreateFailed struct {
	Effect   int64         `json:"effect"`
	Instance int64         `json:"instance"`
	Tried    int           `json:"tried,omitempty"`
	Err      *drover.Error `json:"err"`
}

// Destroyed answers Destroy: the cloud has accepted, or Err says why not.
type Destroyed struct {
	Effect   int64         `json:"effect"`
	Instance int64         `json:"instance"`
	Err      *drover.Error `json:"err,omitempty"`
}

// Switched answers Switch: the cloud has accepted, or Err says why not.
type Switched struct {
	Effect   int64         `json:"effect"`
	Instance int64         `json:"instance"`
	Err      *drover.Error `json:"err,omitempty"`
}

// Tagged answers SetTags.
type Tagged struct {
	Effect   int64         `json:"effect"`
	Instance int64         `json:"instance"`
	Err      *drover.Error `json:"err,omitempty"`
}

// DiskGrown answers GrowDisk. A call with a transient error may have taken effect nevertheless.
type DiskGrown struct {
	Effect   int64         `json:"effect"`
	Instance int64         `json:"instance"`
	Err      *drover.Error `json:"err,omitempty"`
}

// Fired answers Fire for HookBroken: the hook has ended, or there is none.
type Fired struct {
	Effect   int64 `json:"effect"`
	Instance int64 `json:"instance"`
}

// Connected answers Connect: the host key was verified, the boot probe passed, and the runner reported what it has. An
// instance whose probe failed counts as connected only if its runner has attempts, running or yet to be collected.
type Connected struct {
	Effect      int64    `json:"effect"`
	Instance    int64    `json:"instance"`
	HostKey     string   `json:"host_key"` // fingerprint
	Attempts    []Report `json:"attempts,omitempty"`
	ProbeFailed string   `json:"probe_failed,omitempty"` // how the boot probe failed; empty if it passed or was not requested

	Notice    *drover.Notice `json:"notice,omitempty"` // the cloud's, as seen by the runner
	Unhealthy string         `json:"ailing,omitempty"` // what the runner reports to be wrong with the instance
}

// Report is a runner's report of one of its attempts.
type Report struct {
	ID    drover.AttemptID `json:"id"`
	Exit  *drover.Exit     `json:"exit,omitempty"` // without the tails of its output
	Proof Proof            `json:"proof,omitempty"`
}

// Proof is the result of verifying the proof that an attempt was given at its start and that its runner shows with
// every report. Any job on an instance can impersonate its runner, but it has proofs only for attempts that were really
// started there.
type Proof string

const (
	ProofValid   Proof = ""            // these records started the attempt on this instance
	ProofForeign Proof = "other_store" // lost records of this fleet did
	ProofMissing Proof = "missing"     // missing or wrong: nobody did, or it was started before attempts had proofs
)

// ConnectFailed answers Connect. KindNotFound says that no address is known, so nothing was dialled.
type ConnectFailed struct {
	Effect   int64         `json:"effect"`
	Instance int64         `json:"instance"`
	Err      *drover.Error `json:"err"`
}

// Noticed says that an instance's runner received an interruption notice.
type Noticed struct {
	Instance int64         `json:"instance"`
	Notice   drover.Notice `json:"notice"`
}

// HealthReported is an instance's own report that something is wrong with it; without a Text, that it is healthy again.
type HealthReported struct {
	Instance int64  `json:"instance"`
	Text     string `json:"text,omitempty"`
}

// Disconnected says that an instance's control stream ended, and when the last message came.
type Disconnected struct {
	Instance int64       `json:"instance"`
	Heard    drover.Time `json:"heard"`
	Text     string      `json:"text"`
}

// Started answers Start: the attempt's command runs, or has run.
type Started struct {
	Effect  int64            `json:"effect"`
	Attempt drover.AttemptID `json:"attempt"`
}

// StartFailed answers Start. With a transient Err it is not known whether the attempt was started; with any other it
// was not, and will not be: with a conflict, only not under this number and on this instance.
type StartFailed struct {
	Effect  int64            `json:"effect"`
	Attempt drover.AttemptID `json:"attempt"`
	Err     *drover.Error    `json:"err"`
	Late    bool             `json:"late,omitempty"` // it missed its deadline
}

// Exited says that an attempt's command ended. An instance created under other records may have an attempt with the
// same id.
type Exited struct {
	Instance int64            `json:"instance,omitempty"` // that reports it
	Attempt  drover.AttemptID `json:"attempt"`
	Exit     drover.Exit      `json:"exit"` // without the tails of its output
	Proof    Proof            `json:"proof,omitempty"`
}

// Collected answers Collect: the attempt's output is stored, or Err says why not.
type Collected struct {
	Effect  int64            `json:"effect"`
	Attempt drover.AttemptID `json:"attempt"`
	Err     *drover.Error    `json:"err,omitempty"`
}

// Solved answers Solve.
type Solved struct {
	Effect int64       `json:"effect"`
	Plan   drover.Plan `json:"plan"`
}

func (Configured) kind() string     { return "configured" }
func (Ticked) kind() string         { return "ticked" }
func (Submitted) kind() string      { return "submitted" }
func (CancelAsked) kind() string    { return "cancel_asked" }
func (InstructAsked) kind() string  { return "instruct_asked" }
func (PriorityAsked) kind() string  { return "priority_asked" }
func (QueueAsked) kind() string     { return "queue_asked" }
func (ResizeAsked) kind() string    { return "resize_asked" }
func (GroupAsked) kind() string     { return "group_asked" }
func (NodeTold) kind() string       { return "node_told" }
func (HealthChecked) kind() string  { return "health_checked" }
func (DrainAsked) kind() string     { return "drain_asked" }
func (CloseAsked) kind() string     { return "close_asked" }
func (Tagged) kind() string         { return "tagged" }
func (DiskGrown) kind() string      { return "disk_grown" }
func (Fired) kind() string          { return "fired" }
func (Offered) kind() string        { return "offered" }
func (Listed) kind() string         { return "listed" }
func (Described) kind() string      { return "described" }
func (Created) kind() string        { return "created" }
func (CreateFailed) kind() string   { return "create_failed" }
func (Destroyed) kind() string      { return "destroyed" }
func (Switched) kind() string       { return "switched" }
func (Connected) kind() string      { return "connected" }
func (ConnectFailed) kind() string  { return "connect_failed" }
func (Noticed) kind() string        { return "noticed" }
func (HealthReported) kind() string { return "ailing" }
func (Disconnected) kind() string   { return "disconnected" }
func (Started) kind() string        { return "started" }
func (StartFailed) kind() string    { return "start_failed" }
func (Exited) kind() string         { return "exited" }
func (Collected) kind() string      { return "collected" }
func (Solved) kind() string         { return "solved" }

// Wished turns a request into the event that delivers it from its row, with the row's number; nil for any other body.
func Wished(body Body, row int64) Body {
	switch b := body.(type) {
	case CancelAsked:
		b.Wish = row
		return b
	case InstructAsked:
		b.Wish = row
		return b
	case PriorityAsked:
		b.Wish = row
		return b
	case QueueAsked:
		b.Wish = row
		return b
	case ResizeAsked:
		b.Wish = row
		return b
	case GroupAsked:
		b.Wish = row
		return b
	}
	return nil
}

// decoders read a body by its kind.
var decoders = map[string]func([]byte) (Body, error){
	"configured":     decode[Configured],
	"ticked":         decode[Ticked],
	"submitted":      decode[Submitted],
	"cancel_asked":   decode[CancelAsked],
	"instruct_asked": decode[InstructAsked],
	"priority_asked": decode[PriorityAsked],
	"queue_asked":    decode[QueueAsked],
	"resize_asked":   decode[ResizeAsked],
	"group_asked":    decode[GroupAsked],
	"node_told":      decode[NodeTold],
	"health_checked": decode[HealthChecked],
	"drain_asked":    decode[DrainAsked],
	"close_asked":    decode[CloseAsked],
	"offered":        decode[Offered],
	"listed":         decode[Listed],
	"described":      decode[Described],
	"created":        decode[Created],
	"create_failed":  decode[CreateFailed],
	"destroyed":      decode[Destroyed],
	"switched":       decode[Switched],
	"tagged":         decode[Tagged],
	"disk_grown":     decode[DiskGrown],
	"fired":          decode[Fired],
	"connected":      decode[Connected],
	"connect_failed": decode[ConnectFailed],
	"noticed":        decode[Noticed],
	"ailing":         decode[HealthReported],
	"disconnected":   decode[Disconnected],
	"started":        decode[Started],
	"start_failed":   decode[StartFailed],
	"exited":         decode[Exited],
	"collected":      decode[Collected],
	"solved":         decode[Solved],
}

func decode[T Body](b []byte) (Body, error) {
	var v T
	err := json.Unmarshal(b, &v)
	return v, err
}

type encodedEvent struct {
	At   drover.Time     `json:"at"`
	Kind string          `json:"kind"`
	Body json.RawMessage `json:"body"`
}

// MarshalJSON writes the event with the name of its kind.
func (ev Event) MarshalJSON() ([]byte, error) {
	body, err := json.Marshal(ev.Body)
	if err != nil {
		return nil, err
	}
	return json.Marshal(encodedEvent{ev.At, ev.Body.kind(), body})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (ev *Event) UnmarshalJSON(b []byte) error {
	var enc encodedEvent
	if err := json.Unmarshal(b, &enc); err != nil {
		return err
	}
	decode, ok := decoders[enc.Kind]
	if !ok {
		return fmt.Errorf("event of unknown kind %q", enc.Kind)
	}
	body, err := decode(enc.Body)
	ev.At, ev.Body = enc.At, body
	return err
}
