// Package logkey has the keys of the structured log. They are spelled only here, so that one thing has one key in every
// line. Searches and alerts rely on them: keys are added, never changed.
package logkey

// Keys for the subject of a line.
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
	Elements   = "elements"    // the number of an array's elements, 1 for other jobs
	Priority   = "priority"    // a job's
)

// Keys for what happened, and why.
const (
	Effect       = "effect"        // what was to be done: create, destroy, connect, start, …
	Reason       = "reason"        // the code of a reason: idle, instance_lost, quota, …
	Code         = "code"          // the kind of an error: transient, quota, rate_limit, …
	Error        = "error"         // an error's words
	Hint         = "hint"          // what can be done about it
	ExitCode     = "exit_code"     // a command's exit code
	Hook         = "hook"          // the name of a hook
	Script       = "script"        // its path
	State        = "state"         // the state that something has reached
	TookSeconds  = "took_seconds"  // how long it took
	AgainSeconds = "again_seconds" // after how long the next try follows
	CostUSD      = "cost_usd"      // what it cost
	Note         = "note"          // further explanation
	Said         = "said"          // a line that a runner or a hook wrote
	RunnerLog    = "runner_log"    // the last lines of the log of an instance's runner, when the instance has died
)

// Keys of the status line.
const (
	Queued           = "queued"            // jobs, counting array elements
	Running          = "running"           // jobs
	Instances        = "instances"         // how many there are
	ByState          = "by_state"          // how many of them are in each state
	HourlyUSD        = "hourly_usd"        // what they cost together
	SpentUSD         = "spent_usd"         // what the fleet has cost so far
	Waiting          = "waiting"           // why most waiting jobs wait
	WaitingReason    = "waiting_reason"    // its code
	InstancesWaiting = "instances_waiting" // what most instances without jobs wait for
	Blocks           = "blocks"            // offerings, or wider, that are avoided for a while
)

// Keys for what else is in an account besides the fleet's instances.
const (
	OfOtherFleets = "of_other_fleets" // how many instances have another fleet's tag
	OfNoFleet     = "of_no_fleet"     // how many have none
)

// Keys for the controller itself.
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
