package engine

import (
	"fmt"
	"time"

	"drover"
)

// Decision is the answer to one event. Its writes are committed, in order, before any effect is released.
type Decision struct {
	Writes  []Write     `json:"writes,omitempty"`
	Effects []Effect    `json:"effects,omitempty"`
	Notes   []Note      `json:"notes,omitempty"`
	Wake    drover.Time `json:"wake,omitempty"` // when the engine wants its next event, 0 for never
}

// Write is a change to the durable state. Exactly one field is set.
type Write struct {
	Job      *Job         `json:"job,omitempty"`   // its current state; elements have their own rows
	Ended    *JobEnd      `json:"ended,omitempty"` // the job is final and leaves the engine
	Element  *ElementRow  `json:"element,omitempty"`
	Attempt  *AttemptRow  `json:"attempt,omitempty"`
	Instance *Instance    `json:"instance,omitempty"` // its current state
	Gone     *InstanceEnd `json:"gone,omitempty"`     // the instance is gone and leaves the engine
	Blocks   *[]Block     `json:"blocks,omitempty"`   // all of them
	Spending *Spending    `json:"spending,omitempty"` // its current state
	Closing  bool         `json:"closing,omitempty"`
	Queue    *Queue       `json:"queue,omitempty"`
	Pool     *PoolRow     `json:"pool,omitempty"`  // its current state
	Reply    *Reply       `json:"reply,omitempty"` // removes the row of its wish
	Hook     *HookRow     `json:"hook,omitempty"`  // for an effect Fire; added by the loop, not by the engine

	Stale   *Staleness `json:"doubt,omitempty"`  // the records may be stale
	Current bool       `json:"proved,omitempty"` // they are current, or their staleness no longer matters
}

// Replies returns the answers to requests, in order. They are among the writes, so a caller gets an answer only once it
// is committed.
func (d Decision) Replies() (all []Reply) {
	for _, w := range d.Writes {
		if w.Reply != nil {
			all = append(all, *w.Reply)
		}
	}
	return all
}

// Reply is the answer to a request.
type Reply struct {
	Wish int64         `json:"wish"`
	Err  *drover.Error `json:"err,omitempty"` // why it is refused, with no effect; nil if it is granted
}

// Queue is whether waiting work may start.
type Queue struct {
	Paused *drover.Reason `json:"paused,omitempty"` // why not; nil if it may
}

// PoolRow is the durable part of a pool besides its configuration: the size that an operator or an autoscaler set.
type PoolRow struct {
	Name       string          `json:"name"`
	Kind       drover.PoolKind `json:"kind,omitempty"` // what Count means; the row is dropped once that differs; empty in older records
	Count      int             `json:"count"`
	Configured int             `json:"configured"` // the configured size when it was set; likewise
	Gone       bool            `json:"gone,omitempty"`

	Failed      []FailedNode `json:"failed,omitempty"`       // of a node group: nodes that could not be provided, which count until they are deleted
	LastFailure int64        `json:"last_failure,omitempty"` // number of the last one
}

// FailedNode is a node that could not be created.
type FailedNode struct {
	Number     int64   `json:"number"` // counts the group's failures
	Code       string  `json:"code"`   // a kind of error, or a cause
	Why        Verdict `json:"why"`
	Instance   int64   `json:"instance,omitempty"` // 0: none was requested
	Name       string  `json:"name,omitempty"`
	Cloud      string  `json:"cloud,omitempty"`
	Zone       string  `json:"zone,omitempty"`
	ProviderID string  `json:"provider_id,omitempty"`
}

// Staleness is why the records may be stale, and the numbers above which new ones are assigned from then on.
type Staleness struct {
	Reason       drover.Reason `json:"reason"`
	LastJob      int64         `json:"last_job"`
	LastInstance int64         `json:"last_instance"`
	LastAttempt  int           `json:"last_attempt"`
}

// JobEnd is the result of a job, or of an array as a whole.
type JobEnd struct {
	Number int64           `json:"number"`
	State  drover.JobState `json:"state"`
	Reason drover.Reason   `json:"reason"`
	At     drover.Time     `json:"at"`

	Succeeded int `json:"succeeded,omitempty"`
	Failed    int `json:"failed,omitempty"`
	Cancelled int `json:"cancelled,omitempty"`
}

// ElementRow is the state of a job, or of one element of an array. An element that never had an attempt has no row,
// unless it ended without one.
type ElementRow struct {
	Job     int64           `json:"job"`
	Element Element         `json:"element"`
	State   drover.JobState `json:"state"`
	Code    *int            `json:"code,omitempty"` // once final, if a command ended
	Reason  drover.Reason   `json:"reason"`
	Started drover.Time     `json:"started,omitempty"` // its first attempt
	Ended   drover.Time     `json:"ended,omitempty"`
}

// AttemptRow is an attempt's current state; once it is not live it leaves the engine.
type AttemptRow struct {
	Attempt Attempt       `json:"attempt"`
	Reason  drover.Reason `json:"reason"`
	Cost    drover.Money  `json:"cost,omitempty"` // its share of its instance, by vCPUs
}

// InstanceEnd settles an instance's bill.
type InstanceEnd struct {
	ID       int64         `json:"id"`
	At       drover.Time   `json:"at"`
	Cost     drover.Money  `json:"cost"`
	Reason   drover.Reason `json:"reason"`
	Departed *Departed     `json:"departed,omitempty"` // nil if its cloud never gave it an ID
}

// Effect is something for a shell to do, once. Exactly one field beside ID is set. Every effect except Stop, Forget,
// Disconnect and Fire is answered by an event with its ID.
type Effect struct {
	ID            int64           `json:"id"`
	ListOfferings *ListOfferings  `json:"list_offerings,omitempty"`
	ListInstances *ListInstances  `json:"list_instances,omitempty"`
	Describe      *Describe       `json:"describe,omitempty"`
	Create        *Create         `json:"create,omitempty"`
	Destroy       *Destroy        `json:"destroy,omitempty"`
	Switch        *Switch         `json:"switch,omitempty"`
	SetTags       *SetTags        `json:"set_tags,omitempty"`
	GrowDisk      *GrowDisk       `json:"grow_disk,omitempty"`
	Connect       *Connect        `json:"connect,omitempty"`
	Disconnect    *Disconnect     `json:"disconnect,omitempty"`
	Start         *Start          `json:"start,omitempty"`
	Stop          *Stop           `json:"stop,omitempty"`
	Collect       *Collect        `json:"collect,omitempty"`
	Forget        *Forget         `json:"forget,omitempty"`
	Solve         *drover.Problem `json:"solve,omitempty"`
	Fire          *Fire           `json:"fire,omitempty"`
}

// ListOfferings asks a cloud for its types and prices.
type ListOfferings struct {
	Cloud string `json:"cloud"`
	Have  string `json:"have,omitempty"` // the hash of the catalogue that the engine has; empty: none
}

// ListInstances asks a cloud for its instances of this fleet.
type ListInstances struct {
	Cloud string `json:"cloud"`
}

// Describe asks a cloud about an instance that is missing from its lists.
type Describe struct {
	Instance   int64  `json:"instance"`
	Name       string `json:"name"`
	Cloud      string `json:"cloud"`
	ProviderID string `json:"provider_id"`
}

// Create asks a cloud for an instance that is already recorded.
type Create struct {
	Instance   int64             `json:"instance"`
	Name       string            `json:"name"`
	Cloud      string            `json:"cloud"`
	Candidates []drover.Offering `json:"candidates"`
	Disk       drover.Bytes      `json:"disk,omitempty"`
	Prefix     string            `json:"prefix,omitempty"` // of its name in the cloud
	Owner      string            `json:"owner,omitempty"`  // owner mark
	Pool       string            `json:"pool,omitempty"`   // the pool it belongs to
	Template   string            `json:"template,omitempty"`
}

// Destroy asks a cloud to destroy an instance, by name if its provider ID is unknown.
type Destroy struct {
	Instance   int64  `json:"instance"`
	Name       string `json:"name"`
	Cloud      string `json:"cloud"`
	ProviderID string `json:"provider_id,omitempty"`
}

// Switch asks a cloud to stop an instance that will be started again, or to start it.
type Switch struct {
	Instance   int64  `json:"instance"`
	Name       string `json:"name"`
	Cloud      string `json:"cloud"`
	ProviderID string `json:"provider_id"`
	On         bool   `json:"on,omitempty"`
}

// SetTags asks a cloud to set the tags with an instance's idle behaviour, and whether Drover has stopped it, so that
// both hold even if the store is lost.
type SetTags struct {
	Instance   int64               `json:"instance"`
	Name       string              `json:"name"`
	Cloud      string              `json:"cloud"`
	ProviderID string              `json:"provider_id"`
	Idle       drover.IdleBehavior `json:"idle_behavior"`
	Owner      string              `json:"owner,omitempty"`
	Stopped    drover.Time         `json:"stopped,omitempty"` // since when; 0: not stopped by Drover
}

// GrowDisk asks for an instance's volume and its file system to be at least this large.
type GrowDisk struct {
	Instance   int64        `json:"instance"`
	Name       string       `json:"name"`
	Cloud      string       `json:"cloud"`
	ProviderID string       `json:"provider_id"`
	Size       drover.Bytes `json:"size"`
}

// Connect asks for an instance's control stream: log in, verify the host key, deploy the runner, pass the boot probe.
type Connect struct {
	Instance   int64  `json:"instance"`
	Name       string `json:"name"`
	Cloud      string `json:"cloud"`
	ProviderID string `json:"provider_id"`
	HostKey    string `json:"host_key,omitempty"` // the pinned fingerprint
	Probe      bool   `json:"probe,omitempty"`    // its boot probe has not passed yet, or not since this controller started

	Pool string `json:"pool,omitempty"` // that may have its own boot probe

	Apart bool        `json:"apart,omitempty"` // its jobs are isolated from each other
	Arch  drover.Arch `json:"arch,omitempty"`

	Addresses drover.Addresses `json:"addresses,omitzero"` // from the records; its cloud may have reported newer ones
}

// Disconnect closes an instance's control stream and forgets its address.
type Disconnect struct {
	Instance int64 `json:"instance"`
}

// Start asks an instance's runner to run an attempt. Asking twice runs it once.
type Start struct {
	Attempt  drover.AttemptID `json:"attempt"`
	Instance int64            `json:"instance"`
	Type     string           `json:"type"`

	Interrupted drover.Time      `json:"interrupted,omitempty"` // when the job's previous attempt was interrupted, if so
	Limits      drover.Resources `json:"limits"`
	Timeout     time.Duration    `json:"timeout,omitempty"`
	Grace       time.Duration    `json:"grace"`
}

// Stop asks an instance's runner to end an attempt.
type Stop struct {
	Attempt  drover.AttemptID `json:"attempt"`
	Instance int64            `json:"instance"`
	Grace    time.Duration    `json:"grace"`
}

// Collect asks for an ended attempt's logs and outputs to be stored.
type Collect struct {
	Attempt  drover.AttemptID `json:"attempt"`
	Instance int64            `json:"instance"`
}

// Forget lets a runner clean up after an attempt whose end is stored.
type Forget struct {
	Attempt  drover.AttemptID `json:"attempt"`
	Instance int64            `json:"instance"`
	Foreign  bool             `json:"foreign,omitempty"` // the attempt of lost records, not the one to which these have given its number since
}

// HookTime is how long a hook may run.
const HookTime = 30 * time.Second

// Fire runs a user's hook. A broken instance is destroyed once Fired says that its hook has ended, or after HookTime;
// nothing else waits for a hook.
type Fire struct {
	Hook       drover.Hook   `json:"hook"`
	Instance   int64         `json:"instance,omitempty"` // 0 for HookExhausted
	Name       string        `json:"name,omitempty"`
	Prefix     string        `json:"prefix,omitempty"` // of its name in the cloud
	Cloud      string        `json:"cloud"`
	Zone       string        `json:"zone,omitempty"`
	ProviderID string        `json:"provider_id,omitempty"`
	Pool       string        `json:"pool,omitempty"`
	Reason     drover.Reason `json:"reason"`
}

// HookRow is an event that a hook has yet to run for.
type HookRow struct {
	Epoch   int64  `json:"epoch"`
	Effect  int64  `json:"effect"`
	Fire    Fire   `json:"fire"`
	Pool    string `json:"pool,omitempty"`    // whose hook it is; empty: the fleet's
	Address string `json:"address,omitempty"` // of the instance
}

// Key identifies the row.
func (h HookRow) Key() string { return fmt.Sprintf("%d/%d/%s", h.Epoch, h.Effect, h.Pool) }

// Note is a line for the log and for people who watch.
type Note struct {
	Level    Level             `json:"level"`
	Text     string            `json:"text"`
	Job      *drover.JobID     `json:"job,omitempty"`
	Attempt  *drover.AttemptID `json:"attempt,omitempty"`
	Instance string            `json:"instance,omitempty"` // name
	Cloud    string            `json:"cloud,omitempty"`
	Reason   *drover.Reason    `json:"reason,omitempty"`
}

// Level is how much a note matters.
type Level string

// The levels of a Note.
const (
	Debug Level = "debug"
	Info  Level = "info"
	Warn  Level = "warn"
)
