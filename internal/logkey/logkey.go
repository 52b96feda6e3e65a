// Package logkey has the keys of the structured log. They are spelled only here, so that one thing has one key in every
// line. Searches and alerts rely on them: keys are added, never changed.
package logkey

// Of what a line is about.
const (
	Fleet      = "fleet"       // the fleet's id
	Cloud      = "cloud"       // a cloud's name in the configuration
	Instance   = "instance"    // an instance's name
	ProviderID = "provider_id" // its cloud's id for it
	Type       = "type"        // its type, as configurations name it
	Zone       = "zone"        // where it is
	Market     = "market"      // on_demand or spot
	Job        = "job"         // a job's id, or that of an element: 17, 17.3
	Attempt    = "attempt"     // an attempt's id: 17.3/1
	Name       = "name"        // a job's name
	Batch      = "batch"       // a batch's name
	User       = "user"        // whose it is
	Elements   = "elements"    // how many elements an array has, 1 of a job that is none
	Priority   = "priority"    // a job's
)

// Of what happened, and why.
const (
	Effect       = "effect"        // what was to be done: create, destroy, connect, start, …
	Reason       = "reason"        // the code of a reason: idle, instance_lost, quota, …
	Code         = "code"          // the kind of an error: transient, quota, rate_limit, …
	Error        = "error"         // an error's words
	Hint         = "hint"          // what can be done about it
	ExitCode     = "exit_code"     // with which a command ended
	Hook         = "hook"          // at which a person's script runs
	Script       = "script"        // its path
	State        = "state"         // which something has come to
	TookSeconds  = "took_seconds"  // how long it took
	AgainSeconds = "again_seconds" // after how long it is tried again
	CostUSD      = "cost_usd"      // what it cost
	Note         = "note"          // what else there is to say
	Said         = "said"          // a line that a runner or a hook wrote
	RunnerLog    = "runner_log"    // the last lines of the log of an instance's runner, when the instance has died
)

// Of the status line.
const (
	Queued           = "queued"            // jobs, an element of an array counting as one
	Running          = "running"           // jobs
	Instances        = "instances"         // how many there are
	ByState          = "by_state"          // how many of them are in each state
	HourlyUSD        = "hourly_usd"        // what they cost together
	SpentUSD         = "spent_usd"         // what the fleet has cost so far
	Waiting          = "waiting"           // why most of the jobs that wait do so
	WaitingReason    = "waiting_reason"    // the code of that
	InstancesWaiting = "instances_waiting" // what most of the instances on which nothing runs wait for
	Blocks           = "blocks"            // offerings, or wider, that are left alone for a while
)

// Of what is in an account beside the fleet's instances.
const (
	OfOtherFleets = "of_other_fleets" // how many instances bear another fleet's tag
	OfNoFleet     = "of_no_fleet"     // how many bear none
)

// Of the controller itself.
const (
	URL       = "url"    // where it is reached
	Listen    = "listen" // the address at which it listens
	TokenFile = "token"  // the file with the local token, never the token
	File      = "file"
	Line      = "line" // of a file
	Column    = "column"
	Hash      = "hash"
	Signal    = "signal"
	Method    = "method" // of a request, as the next six
	Path      = "path"
	Status    = "status"
	Bytes     = "bytes"
	Caller    = "caller"
	TokenID   = "token_id" // a token's name in lists, never the token
	Role      = "role"     // what its bearer may do
	Remote    = "remote"
	Panic     = "panic"
	Stack     = "stack"
)
