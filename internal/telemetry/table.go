package telemetry

import "slices"

// kind is the Prometheus type of a metric.
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

// Labels. The values of each come from the configuration, or from a closed list of words; none is ever the name of a
// job, an instance or a person.
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
	labelHook    = "hook"
	labelPhase   = "phase"
	labelEvent   = "event"
	labelEffect  = "effect"
	labelBudget  = "budget"
	labelWindow  = "window"
	labelKind    = "kind"
	labelPool    = "pool"
)

// Buckets, by the usual duration of what they measure.
var (
	ofDeciding = []float64{.00001, .00005, .0001, .0005, .001, .005, .01, .05, .1, .5, 1, 5}
	ofWriting  = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5, 10}
	ofCalls    = []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120}
	ofBoots    = []float64{.1, .5, 1, 5, 10, 20, 30, 45, 60, 90, 120, 180, 300, 600}
	ofWaits    = []float64{.1, 1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600, 4 * 3600, 12 * 3600, 24 * 3600}
)

// The labels of instances.
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
	poolStopped        = "drover_pool_stopped"
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
	hooks           = "drover_hooks_total"
	runnerCalls     = "drover_runner_calls_total"
	runnerCallTime  = "drover_runner_call_seconds"
	solveTime       = "drover_solve_seconds"
	events          = "drover_events_total"
	decisionTime    = "drover_decision_seconds"
	commitTime      = "drover_commit_seconds"
	commitsFailed   = "drover_commits_failed_total"
)

// table is every metric of Drover's own, in the order of docs/metrics.md. The metrics of Go and of the process are
// added to them.
var table = []metric{
	{instances, gauge, byStock, nil, "Instances in any state except gone."},
	{instancesConnected, gauge, byStock, nil, "Instances with an open control stream, or in a pool with login: none."},
	{instancesHourly, gauge, byStock, nil, "Hourly cost of instances that their cloud has accepted."},
	{instancesVCPUs, gauge, byStock, nil, "vCPUs of instances."},
	{instancesMemory, gauge, byStock, nil, "Memory of instances."},
	{instancesWaiting, gauge, []string{labelReason}, nil, "Instances without running attempts, by reason for waiting."},
	{poolWanted, gauge, []string{labelPool}, nil, "Target size of each pool, not counting its ratio."},
	{poolInstances, gauge, []string{labelPool}, nil, "Instances of a pool, except draining, broken and interrupted ones."},
	{poolReady, gauge, []string{labelPool}, nil, "Ready instances of a pool."},
	{poolStopped, gauge, []string{labelPool}, nil, "Stopped instances of a pool, which do not count towards its size."},
	{allocatedHourly, gauge, byType, nil, "Share of the hourly cost allocated to attempts, in proportion to their vCPUs."},
	{allocatedVCPUs, gauge, byType, nil, "vCPUs allocated to attempts."},
	{allocatedMemory, gauge, byType, nil, "Memory allocated to attempts."},
	{spent, counter, nil, nil, "Total cost of the fleet, including existing instances."},
	{budgetLimit, gauge, []string{labelBudget, labelWindow, labelKind}, nil, "Budget limit in each window (hourly, daily, monthly), by kind: hard, or soft (only warns)."},
	{budgetSpent, gauge, []string{labelBudget, labelWindow}, nil, "Spending under a budget in the current window."},
	{budgetPledged, gauge, []string{labelBudget, labelWindow}, nil, "Commitments under a budget in the current window, excluding spending."},
	{instancesEnded, counter, []string{labelCloud, labelReason}, nil, "Instances that are gone, by reason."},
	{interruptions, counter, byType, nil, "Instances interrupted by their cloud, including announced interruptions."},
	{bootTime, histogram, []string{labelCloud, labelPhase}, ofBoots,
		"Boot times by phase: accept (from the request until the cloud accepts it), reach (until the host key is verified and the login succeeds), prove (until the boot probe passes)."},
	{shutdownTime, histogram, []string{labelCloud}, ofBoots, "Time from the decision to destroy an instance until it is gone."},

	{jobs, gauge, []string{labelState}, nil, "Jobs, counting array elements."},
	{jobsOldest, gauge, nil, nil, "Longest current wait of a job that may start; 0 if there is none."},
	{jobsWaiting, gauge, []string{labelReason}, nil, "Queued jobs, by reason for waiting."},
	{jobWait, histogram, nil, ofWaits, "Time from when a job may start until its attempt starts."},
	{attemptsStarted, counter, nil, nil, "Attempts started."},
	{attemptsEnded, counter, []string{labelState, labelReason}, nil, "Attempts ended, by state and reason."},
	{attemptTime, histogram, nil, ofWaits, "Time from an attempt's start to its command's end."},
	{attemptCPU, counter, nil, nil, "CPU time used by attempts."},

	{blocks, gauge, []string{labelCloud, labelReason}, nil, "Active blocks on offerings, by reason."},
	{throttles, gauge, []string{labelCloud}, nil, "Offerings throttled because their cloud ran out of capacity."},
	{cloudListed, gauge, []string{labelCloud}, nil, "Unix time of the last successful listing of a cloud's instances; 0 if there was none."},
	{cloudPartition, gauge, []string{labelCloud}, nil, "1 while no instance of a cloud answers and the controller assumes a network failure; otherwise 0."},
	{cloudCalls, counter, []string{labelCloud, labelCall, labelResult}, nil, "Calls to clouds, by result: ok or the kind of error."},
	{cloudCallTime, histogram, []string{labelCloud, labelCall}, ofCalls, "Duration of calls to clouds."},
	{cloudRequests, counter, []string{labelCloud, labelRequest, labelResult}, nil, "Requests to clouds' APIs, by result: ok or failed. One call may need several requests."},
	{connects, counter, []string{labelCloud, labelResult}, nil, "SSH connection attempts, by result: ok or the kind of error."},
	{connectTime, histogram, []string{labelCloud}, ofCalls, "Time to connect successfully, including runner deployment and boot probe."},
	{bootProbes, counter, []string{labelCloud, labelResult}, nil, "Boot probes, by result: passed or failed."},
	{disconnects, counter, []string{labelCloud}, nil, "Lost connections to instances."},
	{hooks, counter, []string{labelHook, labelResult}, nil, "Runs of hooks, by result: ok or failed."},
	{runnerCalls, counter, []string{labelCall, labelResult}, nil, "Calls to runners (start or collect), by result: ok or the kind of error."},
	{runnerCallTime, histogram, []string{labelCall}, ofCalls, "Duration of calls to runners, including inputs and outputs."},

	{loopAnswering, gauge, nil, nil, "1 if the controller's loop answered in time; otherwise 0."},
	{events, counter, []string{labelEvent}, nil, "Events processed."},
	{eventsWaiting, gauge, nil, nil, "Events waiting for a decision."},
	{decisionTime, histogram, nil, ofDeciding, "Time taken to decide on a batch of events."},
	{effectsInFlight, gauge, []string{labelEffect}, nil, "Effects being carried out."},
	{solveTime, histogram, nil, ofCalls, "Time taken to plan what to rent."},
	{commitTime, histogram, nil, ofWriting, "Time taken to commit decisions."},
	{commitsFailed, counter, nil, nil, "Failed commits. The controller exits unless the disk is full."},
	{configRefused, gauge, nil, nil, "1 while the configuration file is invalid; otherwise 0."},
	{buildInfo, gauge, []string{"version", "revision", "go_version"}, nil, "1, labelled with the version of this program."},
}

// ofPresent reports whether the metric is of the present. What the fleet has cost also is, since the records have it.
func (m metric) ofPresent() bool { return m.kind == gauge || m.name == spent }

// lookUp returns the metric's line of the table, which must have one.
func lookUp(name string) metric {
	return table[slices.IndexFunc(table, func(m metric) bool { return m.name == name })]
}
