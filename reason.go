package drover

// Reason says why something waits, ended or was refused: a code for programs, a sentence for people, and when it will
// change, if that is known.
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
	ReasonDependency = "dependency"  // waits for other jobs of its batch
	ReasonBooting    = "booting"     // instances for it are starting
	ReasonGrowing    = "growing"     // the volume of an instance is made larger for what waits
	ReasonEnding     = "ending"      // room for it is likely to be there before another instance would be
	ReasonPlanning   = "planning"    // the choice of instances is being made
	ReasonCatalogue  = "catalogue"   // the types and prices of a cloud are not known yet
	ReasonCapacity   = "capacity"    // what would hold it is full, and nothing more may be created
	ReasonLimit      = "limit"       // a limit on instances is reached
	ReasonUserLimit  = "user_limit"  // a user's own limit on instances is reached
	ReasonBudget     = "budget"      // more would pass the budget
	ReasonBlocked    = "blocked"     // every offering that fits is blocked
	ReasonMaxPrice   = "max_price"   // what fits costs more than the job lets its instance cost
	ReasonHeld       = "held"        // its priority is 0
	ReasonNoFit      = "no_fit"      // no configured type can run it
	ReasonGang       = "gang"        // others begin together with it
	ReasonRetry      = "retry"       // it failed, and the delay before its next try is not over
	ReasonMaxRunning = "max_running" // as many of its array run as may at once
	ReasonPaused     = "paused"      // the queue is paused: nothing that waits is started
	ReasonShare      = "share"       // others of its priority use less of their share
	ReasonUnproved   = "unproved"    // the records may be an older copy, and it is not known yet what there is
	ReasonRefused    = "refused"     // how many offerings do not serve it, and which comes nearest
	ReasonOther      = "other"       // there are more reasons than are told apart

	// Of the fleet, a cloud, an offering, and what does not wait.
	ReasonRest     = "rest"     // nothing waits
	ReasonOffered  = "offered"  // it may be rented
	ReasonSpread   = "spread"   // a spot offering has its share of the fleet
	ReasonUnlisted = "unlisted" // a cloud does not say what there is in it
	ReasonRunning  = "running"
	ReasonDiskFull = "disk_full" // the records cannot be written, so nothing is decided

	// Of jobs, attempts and instances that ended, and of instances that will.
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
	ReasonTwin         = "twin" // its cloud made two of its name
	ReasonTypeRemoved  = "type_removed"
	ReasonPartition    = "partition"
	ReasonUnreachable  = "unreachable"
	ReasonOutputs      = "outputs"          // they could not be stored
	ReasonPreempted    = "preempted"        // its priority was set to 0
	ReasonSchedule     = "schedule_timeout" // no instance for it could be had for that long
	ReasonInterrupted  = "interrupted"      // the cloud took the instance back
	ReasonMemory       = "out_of_memory"
	ReasonImage        = "image"        // it could not be had
	ReasonUnhealthy    = "unhealthy"    // so the instance says of itself
	ReasonCheck        = "health_check" // its pool's health check fails
	ReasonForged       = "forged"       // the instance showed an attempt that it was never given
	ReasonAge          = "max_age"
	ReasonUsed         = "used"         // it has run its one job
	ReasonGivesWay     = "gives_way"    // to work of higher priority
	ReasonDraining     = "draining"     // the controller starts nothing any more, since it is about to end
	ReasonPool         = "pool"         // the instance's pool does not want it any more
	ReasonNeverJoined  = "never_joined" // its node did not join its cluster in time
	ReasonScaledDown   = "scaled_down"  // its cluster's autoscaler deleted it
	ReasonStopped      = "stopped"      // a pool's instance cannot be kept stopped
	ReasonReplace      = "replace"      // instances of a pool's changed template do not become ready, so no more are replaced
)
