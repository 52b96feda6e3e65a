package telemetry

import "slices"

// kind is what Prometheus takes a metric for.
type kind string

const (
	gauge     kind = "gauge"
	counter   kind = "counter"
	histogram kind = "histogram"
)

// metric is a line of the table.
type metric struct {
	name    string
	kind    kind
	labels  []string
	buckets []float64 // of a histogram: upper bounds, in seconds
	help    string
}

// Labels. Each takes its values from the configuration, or from a closed list of words; none is ever the name of a job, an instance or a person.
const (
	labelCloud   = "cloud"
	labelType    = "type"
	labelMarket  = "market"
	labelState   = "state"
	labelIdle    = "idle_behavior"
	labelReason  = "reason"
	labelCall    = "call"
	labelRequest = "request"
	labelResult  = "result"
	labelPhase   = "phase"
	labelEvent   = "event"
	labelEffect  = "effect"
	labelBudget  = "budget"
	labelWindow  = "window"
	labelKind    = "kind"
	labelPool    = "pool"
)

// Buckets, by how long what they measure usually takes.
var (
	ofDeciding = []float64{.00001, .00005, .0001, .0005, .001, .005, .01, .05, .1, .5, 1, 5}
	ofWriting  = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5, 10}
	ofCalls    = []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120}
	ofBoots    = []float64{.1, .5, 1, 5, 10, 20, 30, 45, 60, 90, 120, 180, 300, 600}
	ofWaits    = []float64{.1, 1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600, 4 * 3600, 12 * 3600, 24 * 3600}
)

// How instances are told apart.
var (
	byStock = []string{labelCloud, labelType, labelMarket, labelState, labelIdle}
	byType  = []string{labelCloud, labelType, labelMarket}
)

// The metrics of the present.
const (
	loopAnswering      = "drover_loop_answering"
	instances          = "drover_instances"
	instancesConnected = "drover_instances_connected"
	instancesHourly    = "drover_instances_hourly_dollars"
	instancesVCPUs     = "drover_instances_vcpus"
	instancesMemory    = "drover_instances_memory_bytes"
	instancesWaiting   = "drover_instances_waiting"
	poolWanted         = "drover_pool_wanted"
	poolInstances      = "drover_pool_instances"
	poolReady          = "drover_pool_ready"
	allocatedHourly    = "drover_allocated_hourly_dollars"
	allocatedVCPUs     = "drover_allocated_vcpus"
	allocatedMemory    = "drover_allocated_memory_bytes"
	spent              = "drover_spent_dollars_total"
	budgetLimit        = "drover_budget_limit_dollars"
	budgetSpent        = "drover_budget_spent_dollars"
	budgetPledged      = "drover_budget_pledged_dollars"
	jobs               = "drover_jobs"
	jobsWaiting        = "drover_jobs_waiting"
	jobsOldest         = "drover_jobs_oldest_waiting_seconds"
	blocks             = "drover_blocks"
	eventsWaiting      = "drover_events_waiting"
	effectsInFlight    = "drover_effects_in_flight"
	cloudListed        = "drover_cloud_listed_timestamp_seconds"
	cloudPartition     = "drover_partition"
	throttles          = "drover_throttles"
	configRefused      = "drover_configuration_refused"
	buildInfo          = "drover_build_info"
)

// The metrics of what has happened since this controller began.
const (
	jobWait         = "drover_job_wait_seconds"
	attemptsStarted = "drover_attempts_started_total"
	attemptsEnded   = "drover_attempts_ended_total"
	attemptTime     = "drover_attempt_duration_seconds"
	attemptCPU      = "drover_attempts_cpu_seconds_total"
	bootTime        = "drover_instance_boot_seconds"
	shutdownTime    = "drover_instance_shutdown_seconds"
	instancesEnded  = "drover_instances_ended_total"
	interruptions   = "drover_interruptions_total"
	cloudCalls      = "drover_cloud_calls_total"
	cloudCallTime   = "drover_cloud_call_seconds"
	cloudRequests   = "drover_cloud_requests_total"
	connects        = "drover_connects_total"
	connectTime     = "drover_connect_seconds"
	disconnects     = "drover_disconnects_total"
	bootProbes      = "drover_boot_probes_total"
	runnerCalls     = "drover_runner_calls_total"
	runnerCallTime  = "drover_runner_call_seconds"
	solveTime       = "drover_solve_seconds"
	events          = "drover_events_total"
	decisionTime    = "drover_decision_seconds"
	commitTime      = "drover_commit_seconds"
	commitsFailed   = "drover_commits_failed_total"
)

// table is every metric of Drover's own, in the order of docs/metrics.md. Those of Go and of the process come beside them.
var table = []metric{
	{instances, gauge, byStock, nil, "Instances that are not gone."},
	{instancesConnected, gauge, byStock, nil, "Of them, those whose control stream is up, and those that nobody logs in to."},
	{instancesHourly, gauge, byStock, nil, "What they cost an hour, from when their cloud accepted them."},
	{instancesVCPUs, gauge, byStock, nil, "The vCPUs that they have."},
	{instancesMemory, gauge, byStock, nil, "The memory that they have."},
	{instancesWaiting, gauge, []string{labelReason}, nil, "Instances on which nothing runs, by what they wait for."},
	{poolWanted, gauge, []string{labelPool}, nil, "The number of instances that each pool is to have, as configured or as set since by an operator or, for a node group, by its autoscaler."},
	{poolInstances, gauge, []string{labelPool}, nil, "The instances that count toward it: not those that are draining, broken or interrupted."},
	{poolReady, gauge, []string{labelPool}, nil, "Of them, those that are ready."},
	{allocatedHourly, gauge, byType, nil, "What of the hourly cost attempts account for, by their part of the vCPUs."},
	{allocatedVCPUs, gauge, byType, nil, "The vCPUs that attempts have taken."},
	{allocatedMemory, gauge, byType, nil, "The memory that attempts have taken."},
	{spent, counter, nil, nil, "What the fleet has cost in its life, what instances cost that are not gone yet included."},
	{budgetLimit, gauge, []string{labelBudget, labelWindow, labelKind}, nil, "What a budget allows in each window, hourly, daily or monthly: hard, or soft, which only warns."},
	{budgetSpent, gauge, []string{labelBudget, labelWindow}, nil, "What is spent of it in the present window."},
	{budgetPledged, gauge, []string{labelBudget, labelWindow}, nil, "What is promised beside that, in the present window, to what runs, up to its end."},
	{instancesEnded, counter, []string{labelCloud, labelReason}, nil, "Instances that are gone, by why."},
	{interruptions, counter, byType, nil, "Instances that their cloud said it takes back, or took back."},
	{bootTime, histogram, []string{labelCloud, labelPhase}, ofBoots,
		"How long instances take to come: accept, from being asked for until their cloud accepts; reach, until they let us in and prove who they are; prove, until their boot is proved."},
	{shutdownTime, histogram, []string{labelCloud}, ofBoots, "How long instances take from being told to go until they are seen to be gone."},

	{jobs, gauge, []string{labelState}, nil, "Jobs, an element of an array counting as one."},
	{jobsOldest, gauge, nil, nil, "For how long the job has waited that was submitted first of those that wait and may start, since its submission; 0 if there is none."},
	{jobsWaiting, gauge, []string{labelReason}, nil, "Jobs that are queued, by what they wait for."},
	{jobWait, histogram, nil, ofWaits, "How long jobs wait from being queued, or queued again, or having no other job to wait for, until an attempt is begun."},
	{attemptsStarted, counter, nil, nil, "Attempts that were begun."},
	{attemptsEnded, counter, []string{labelState, labelReason}, nil, "Attempts that ended, by how and why."},
	{attemptTime, histogram, nil, ofWaits, "How long attempts took from being begun to their command's end."},
	{attemptCPU, counter, nil, nil, "Processor time that attempts used, as their runners measured it."},

	{blocks, gauge, []string{labelCloud, labelReason}, nil, "Blocks in force: what of a cloud's offerings is left alone for a while, by why."},
	{throttles, gauge, []string{labelCloud}, nil, "Offerings of which fewer are asked for at once than might be, since their cloud had not enough."},
	{cloudListed, gauge, []string{labelCloud}, nil, "When the last good list of a cloud's instances was taken, in Unix time; 0 if none was yet."},
	{cloudPartition, gauge, []string{labelCloud}, nil, "1 while no instance of a cloud answers and the controller takes itself for cut off from them; else 0."},
	{cloudCalls, counter, []string{labelCloud, labelCall, labelResult}, nil, "Calls to clouds, by what was asked and what came of it: ok, or the kind of error."},
	{cloudCallTime, histogram, []string{labelCloud, labelCall}, ofCalls, "How long calls to clouds take."},
	{cloudRequests, counter, []string{labelCloud, labelRequest, labelResult}, nil, "Requests to clouds' APIs, by their names there, of which a call may need several: ok or failed."},
	{connects, counter, []string{labelCloud, labelResult}, nil, "Tries to connect to an instance over SSH, by what came of them: ok, or the kind of error."},
	{connectTime, histogram, []string{labelCloud}, ofCalls, "How long a connection takes that comes about, the runner's deployment and the boot probe included."},
	{bootProbes, counter, []string{labelCloud, labelResult}, nil, "Boot probes: passed or failed."},
	{disconnects, counter, []string{labelCloud}, nil, "Connections to instances that were lost, as when a probe of one is not answered."},
	{runnerCalls, counter, []string{labelCall, labelResult}, nil, "What runners were asked for, start or collect, by what came of it: ok, or the kind of error."},
	{runnerCallTime, histogram, []string{labelCall}, ofCalls, "How long runners take to start an attempt, its inputs included, and to hand over its output."},

	{loopAnswering, gauge, nil, nil, "1 if the controller's loop answered in time to tell of the present, else 0, and the metrics of the present are left out."},
	{events, counter, []string{labelEvent}, nil, "Events that were decided on."},
	{eventsWaiting, gauge, nil, nil, "Events that wait to be decided on."},
	{decisionTime, histogram, nil, ofDeciding, "How long it takes to decide on what has come in together."},
	{effectsInFlight, gauge, []string{labelEffect}, nil, "What was decided and is being done."},
	{solveTime, histogram, nil, ofCalls, "How long it takes to choose what to rent."},
	{commitTime, histogram, nil, ofWriting, "How long it takes to write down what was decided together."},
	{commitsFailed, counter, nil, nil, "Decisions that could not be written down, after which the controller ends."},
	{configRefused, gauge, nil, nil, "1 while the configuration's file says what was refused, and the last good one stays in use; else 0."},
	{buildInfo, gauge, []string{"version", "revision", "go_version"}, nil, "1, with what this program is."},
}

// ofPresent reports whether the metric is of the present. What the fleet has cost is asked for too, since its records know it.
func (m metric) ofPresent() bool { return m.kind == gauge || m.name == spent }

// lookUp is the metric's line of the table, which has one.
func lookUp(name string) metric {
	return table[slices.IndexFunc(table, func(m metric) bool { return m.name == name })]
}
