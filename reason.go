package drover

// Reason is why something waits, ended or was refused: a code for programs, a sentence for people, and, if known, when
// it will change.
type Reason struct {
	Code  string `json:"code"`
	Text  string `json:"text"`
	Since Time   `json:"since,omitempty"`
	Until Time   `json:"until,omitempty"`
}

// The codes of a Reason, each explained in docs/reasons.md. Where a cloud's answer is the reason, the code is its
// ErrorKind.
const (
	// Of jobs that wait.
	ReasonDependency = "dependency"  // waits for other jobs, or ended with its gang
	ReasonBooting    = "booting"     // waiting for instances to boot
	ReasonGrowing    = "growing"     // an instance's volume is being enlarged for waiting jobs
	ReasonEnding     = "ending"      // room for it will probably be free before another instance would be ready
	ReasonPlanning   = "planning"    // Drover is choosing instances
	ReasonCatalogue  = "catalogue"   // the types and prices of a cloud are not known yet
	ReasonCapacity   = "capacity"    // a cloud ran out of capacity, so Drover requests only a few instances at a time
	ReasonLimit      = "limit"       // a limit on instances is reached
	ReasonUserLimit  = "user_limit"  // a user's own limit on instances is reached
	ReasonBudget     = "budget"      // more work would exceed a budget
	ReasonBlocked    = "blocked"     // every offering that fits is blocked
	ReasonMaxPrice   = "max_price"   // everything that fits costs more than the job's max_price
	ReasonHeld       = "held"        // its priority is 0
	ReasonNoFit      = "no_fit"      // no configured type can run it
	ReasonGang       = "gang"        // not all elements that start together with it can start yet
	ReasonRetry      = "retry"       // it failed, and the delay before its next attempt is not over
	ReasonMaxRunning = "max_running" // its array already runs as many elements as it may
	ReasonPaused     = "paused"      // the queue is paused: nothing that waits is started
	ReasonShare      = "share"       // others of the same priority use less of their share
	ReasonUnproved   = "unproved"    // the records may be an older copy, and Drover does not yet know what exists
	ReasonRefused    = "refused"     // how many offerings do not fit it, and which comes closest
	ReasonOther      = "other"       // there are more reasons than are listed

	// Of the fleet, a cloud, an offering, and anything else that does not wait.
	ReasonRest     = "rest"     // nothing waits
	ReasonOffered  = "offered"  // it may be rented
	ReasonSpread   = "spread"   // a spot offering has reached its share of the fleet
	ReasonUnlisted = "unlisted" // a cloud does not list its instances
	ReasonRunning  = "running"
	ReasonDiskFull = "disk_full" // the records cannot be written, so nothing is decided

	// Of jobs, attempts and instances that ended, and of instances that will end.
	ReasonExit         = "exit"
	ReasonCancelled    = "cancelled"
	ReasonTimeout      = "timeout"
	ReasonInstanceLost = "instance_lost"
	ReasonAttempts     = "attempts"
	ReasonNoStart      = "no_start"
	ReasonIdle         = "idle"
	ReasonBroken       = "broken"
	ReasonBootTimeout  = "boot_timeout"
	ReasonHostKey      = "host_key"
	ReasonSilent       = "silent"
	ReasonVanished     = "vanished"
	ReasonCreateFailed = "create_failed"
	ReasonClosing      = "closing"
	ReasonOperator     = "operator"
	ReasonTwin         = "twin" // its cloud made two instances with its name
	ReasonTypeRemoved  = "type_removed"
	ReasonPartition    = "partition"
	ReasonUnreachable  = "unreachable"
	ReasonOutputs      = "outputs"          // the outputs could not be stored
	ReasonPreempted    = "preempted"        // its priority was set to 0
	ReasonSchedule     = "schedule_timeout" // no instance was available for it for that long
	ReasonInterrupted  = "interrupted"      // the cloud took the instance back
	ReasonMemory       = "out_of_memory"
	ReasonImage        = "image"        // the image could not be obtained
	ReasonUnhealthy    = "unhealthy"    // the instance reports that it is unhealthy
	ReasonCheck        = "health_check" // its pool's health check fails
	ReasonForged       = "forged"       // the instance reported an attempt that it was never given
	ReasonAge          = "max_age"
	ReasonUsed         = "used"         // it has run its one job
	ReasonGivesWay     = "gives_way"    // it gives way to work of higher priority, or to a pool
	ReasonDraining     = "draining"     // the controller is about to end and starts nothing
	ReasonPool         = "pool"         // the instance's pool no longer wants it
	ReasonNeverJoined  = "never_joined" // its node did not join its cluster in time
	ReasonScaledDown   = "scaled_down"  // its cluster's autoscaler deleted it
	ReasonStopped      = "stopped"      // a pool's instance cannot be kept stopped
	ReasonReplace      = "replace"      // instances of a pool's changed template do not become ready, so no more are replaced
)
