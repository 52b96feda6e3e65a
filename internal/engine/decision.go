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
	Wake    drover.Time `json:"wake,omitempty"` // when the engine wants to be asked next, 0 for not at all
}

// Write is a change to what is durable. Exactly one field is set.
type Write struct {
	Job      *Job         `json:"job,omitempty"`   // as it now is; its elements have rows of their own
	Ended    *JobEnd      `json:"ended,omitempty"` // the job is final and leaves the engine
	Element  *ElementRow  `json:"element,omitempty"`
	Attempt  *AttemptRow  `json:"attempt,omitempty"`
	Instance *Instance    `json:"instance,omitempty"` // as it now is
	Gone     *InstanceEnd `json:"gone,omitempty"`     // the instance is gone and leaves the engine
	Blocks   *[]Block     `json:"blocks,omitempty"`   // all there are
	Spending *Spending    `json:"spending,omitempty"` // as it now is
	Closing  bool         `json:"closing,omitempty"`
	Queue    *Queue       `json:"queue,omitempty"`
	Pool     *PoolRow     `json:"pool,omitempty"`  // as it now is
	Reply    *Reply       `json:"reply,omitempty"` // the row of its wish goes
	Hook     *HookRow     `json:"hook,omitempty"`  // of an effect Fire; added by the loop, no part of a decision

	Doubt  *Doubt `json:"doubt,omitempty"`  // the records may be an older copy
	Proved bool   `json:"proved,omitempty"` // they are not, or no longer in a way that matters
}

// Replies are the answers to requests, in their order. They are among the writes, so a caller hears an answer only once
// it is true.
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
	Err  *drover.Error `json:"err,omitempty"` // why it is refused, and nothing was done; nil if it is granted
}

// Queue is whether what waits is started.
type Queue struct {
	Paused *drover.Reason `json:"paused,omitempty"` // why not; nil if it is
}

// PoolRow is the durable part of a pool beside its configuration: the number that an operator or an autoscaler set.
type PoolRow struct {
	Name       string `json:"name"`
	Count      int    `json:"count"`
	Configured int    `json:"configured"` // the configured number when it was set; once that differs, the row goes
	Gone       bool   `json:"gone,omitempty"`

	Failed      []FailedNode `json:"failed,omitempty"`       // of a node group: nodes that could not be had, which count until they are deleted
	LastFailure int64        `json:"last_failure,omitempty"` // the number of the last of them
}

// FailedNode is a node that could not be created.
type FailedNode struct {
	Number     int64   `json:"number"` // counts the group's failures
	Code       string  `json:"code"`   // a kind of error, or a cause
	Why        Verdict `json:"why"`
	Instance   int64   `json:"instance,omitempty"` // 0: none was asked for
	Name       string  `json:"name,omitempty"`
	Cloud      string  `json:"cloud,omitempty"`
	Zone       string  `json:"zone,omitempty"`
	ProviderID string  `json:"provider_id,omitempty"`
}

// Doubt is why the records may be an older copy, and the numbers beyond which new ones are assigned from then on.
type Doubt struct {
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

// AttemptRow is an attempt as it now is; once it is not live it leaves the engine.
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
	Departed *Departed     `json:"departed,omitempty"` // nil if its cloud never gave it an id
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

// ListInstances asks a cloud what it has of this fleet.
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
	Prefix     string            `json:"prefix,omitempty"` // of the name by which the cloud is to know it
	Owner      string            `json:"owner,omitempty"`  // the mark of the user whose it is
	Pool       string            `json:"pool,omitempty"`   // the pool that it belongs to
	Template   string            `json:"template,omitempty"`
}

// Destroy asks a cloud to end an instance, by name if the cloud's id for it is unknown.
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

// SetTags asks a cloud to note an instance's idle behaviour on it, and that Drover has it stopped, so that both hold
// even if the store is lost.
type SetTags struct {
	Instance   int64               `json:"instance"`
	Name       string              `json:"name"`
	Cloud      string              `json:"cloud"`
	ProviderID string              `json:"provider_id"`
	Idle       drover.IdleBehavior `json:"idle_behavior"`
	Owner      string              `json:"owner,omitempty"`
	Stopped    drover.Time         `json:"stopped,omitempty"` // since when; 0: it is not, or not by Drover
}

// GrowDisk asks for an instance's volume and its file system to be at least this large.
type GrowDisk struct {
	Instance   int64        `json:"instance"`
	Name       string       `json:"name"`
	Cloud      string       `json:"cloud"`
	ProviderID string       `json:"provider_id"`
	Size       drover.Bytes `json:"size"`
}

// Connect asks for an instance's control stream: log in, prove the host key, deploy the runner, pass the boot probe.
type Connect struct {
	Instance   int64  `json:"instance"`
	Name       string `json:"name"`
	Cloud      string `json:"cloud"`
	ProviderID string `json:"provider_id"`
	HostKey    string `json:"host_key,omitempty"` // the pinned fingerprint
	Probe      bool   `json:"probe,omitempty"`    // its boot is not proved yet, or not since this controller began

	Pool string `json:"pool,omitempty"` // that may have a boot probe of its own

	Apart bool        `json:"apart,omitempty"` // what runs there is kept apart
	Arch  drover.Arch `json:"arch,omitempty"`

	Addresses drover.Addresses `json:"addresses,omitzero"` // that are in the records; its cloud may have told newer ones
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

	Interrupted drover.Time      `json:"interrupted,omitempty"` // when the job's attempt before this was, if it was
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
	Foreign  bool             `json:"foreign,omitempty"` // that of records that are lost: not one of these, if they have given that number since
}

// HookTime is how long a hook may run.
const HookTime = 30 * time.Second

// Fire runs a user's hook. A broken instance is destroyed once Fired says that its hook has ended, or after HookTime;
// nothing else waits for a hook.
type Fire struct {
	Hook       drover.Hook   `json:"hook"`
	Instance   int64         `json:"instance,omitempty"` // 0 of HookExhausted
	Name       string        `json:"name,omitempty"`
	Prefix     string        `json:"prefix,omitempty"` // of its name in the cloud
	Cloud      string        `json:"cloud"`
	Zone       string        `json:"zone,omitempty"`
	ProviderID string        `json:"provider_id,omitempty"`
	Pool       string        `json:"pool,omitempty"`
	Reason     drover.Reason `json:"reason"`
}

// HookRow is an event that a hook has not been told of yet.
type HookRow struct {
	Epoch   int64  `json:"epoch"`
	Effect  int64  `json:"effect"`
	Fire    Fire   `json:"fire"`
	Pool    string `json:"pool,omitempty"`    // whose hook it is; empty: the fleet's
	Address string `json:"address,omitempty"` // of the instance
}

// Key is that row's alone.
func (h HookRow) Key() string { return fmt.Sprintf("%d/%d/%s", h.Epoch, h.Effect, h.Pool) }

// Note is a line for the log, and for people who watch.
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
