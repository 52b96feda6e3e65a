package drover

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// Job is a job, an array or an array element, as `-o json` and the HTTP API show it.
type Job struct {
	ID         JobID             `json:"id"`
	Name       string            `json:"name"`
	Batch      string            `json:"batch"`
	User       string            `json:"user,omitempty"`
	State      JobState          `json:"state"`
	Priority   int               `json:"priority"`
	Labels     map[string]string `json:"labels,omitempty"`
	ArrayIndex *int              `json:"array_index,omitempty"`
	File       string            `json:"file,omitempty"` // the file that the element processes
	Command    []string          `json:"command"`
	Image      string            `json:"image,omitempty"`
	Resources  Resources         `json:"resources"`
	Placement  JobPlacement      `json:"placement"`
	Spot       SpotPolicy        `json:"spot"`
	After      []string          `json:"after,omitempty"`
	AfterAny   []string          `json:"after_any,omitempty"`
	Timeout    Seconds           `json:"timeout,omitempty"`
	Expected   Seconds           `json:"expected,omitempty"`
	MaxWait    Seconds           `json:"max_wait,omitempty"`
	ExitCode   *int              `json:"exit_code,omitempty"`
	Reason     *Reason           `json:"reason,omitempty"`
	Submitted  time.Time         `json:"submitted"`
	Started    *time.Time        `json:"started,omitempty"`
	Ended      *time.Time        `json:"ended,omitempty"`
	Cost       float64           `json:"cost_usd"`
	Attempts   []Attempt         `json:"attempts"` // empty for a whole array

	// For a whole array:
	Array  *Array           `json:"array,omitempty"`
	Gang   int              `json:"gang,omitempty"`   // this many consecutive elements start together
	Counts map[JobState]int `json:"counts,omitempty"` // number of elements in each state
}

// JobPlacement is a job's Placement, as shown in a Job.
type JobPlacement struct {
	Cloud    string  `json:"cloud,omitempty"`
	Zone     string  `json:"zone,omitempty"`
	Type     string  `json:"type,omitempty"`
	MaxPrice float64 `json:"max_price_usd_per_hour,omitempty"`
}

// PlacementOf returns a Placement as a Job shows it.
func PlacementOf(p Placement) JobPlacement {
	return JobPlacement{Cloud: p.Cloud, Zone: p.Zone, Type: p.Type, MaxPrice: p.MaxPrice.USD()}
}

// Attempt is one execution of a job, as shown in a Job.
type Attempt struct {
	Number     int          `json:"number"`
	Instance   string       `json:"instance"`
	Market     Market       `json:"market"`
	State      AttemptState `json:"state"`
	ExitCode   *int         `json:"exit_code,omitempty"`
	Reason     *Reason      `json:"reason,omitempty"`
	Started    time.Time    `json:"started"`
	Ended      *time.Time   `json:"ended,omitempty"`
	MaxRSS     Bytes        `json:"max_rss_bytes"`
	CPUSeconds float64      `json:"cpu_seconds"`
	Warnings   []string     `json:"warnings,omitempty"` // files that were left out of its outputs, and patterns that matched nothing
}

// Instance is an instance, as `-o json` and the HTTP API show it.
type Instance struct {
	ID         int64         `json:"id"`
	Name       string        `json:"name"`
	Cloud      string        `json:"cloud"`
	ProviderID string        `json:"provider_id,omitempty"`
	Zone       string        `json:"zone"`
	Type       string        `json:"type"`
	Market     Market        `json:"market"`
	State      InstanceState `json:"state"`
	Idle       IdleBehavior  `json:"idle_behavior"`
	User       string        `json:"user,omitempty"` // the only user whose jobs it runs; empty: not limited, or gone
	Pool       string        `json:"pool,omitempty"`
	Addresses  []string      `json:"addresses,omitempty"`
	Price      float64       `json:"price_usd_per_hour"`
	Cost       float64       `json:"cost_usd"`
	Jobs       []JobID       `json:"jobs"`
	Reason     *Reason       `json:"reason,omitempty"`
	Created    *time.Time    `json:"created,omitempty"`
	Ready      *time.Time    `json:"ready,omitempty"`
	IdleSince  *time.Time    `json:"idle_since,omitempty"`
	Gone       *time.Time    `json:"gone,omitempty"`
	Login      *Login        `json:"login,omitempty"` // absent if unknown

	Attempts []InstanceAttempt `json:"attempts,omitempty"` // the last ones on it, if requested, latest first

	// The last lines of its runner's own log, oldest first, if a single instance is requested. They are kept if the
	// instance died.
	RunnerLog []string `json:"runner_log,omitempty"`
}

// InstanceAttempt is an attempt, as shown in an Instance.
type InstanceAttempt struct {
	Job     JobID        `json:"job"`
	Number  int          `json:"number"`
	State   AttemptState `json:"state"`
	Started time.Time    `json:"started"`
	Ended   *time.Time   `json:"ended,omitempty"`
}

// Login is how to log in to an instance.
type Login struct {
	Address string `json:"address"` // host:port
	User    string `json:"user"`
	HostKey string `json:"host_key,omitempty"` // in authorized_keys form; empty if only its fingerprint is known
}

// Summary is what a fleet has done and cost. Instances that are not gone count up to now.
type Summary struct {
	Jobs            int     `json:"jobs"` // each array element counts
	Succeeded       int     `json:"succeeded"`
	Failed          int     `json:"failed"`
	Cancelled       int     `json:"cancelled"`
	Attempts        int     `json:"attempts"`
	Instances       int     `json:"instances"`
	InstanceSeconds float64 `json:"instance_seconds"`
	Cost            Money   `json:"cost_nano_usd"`
	JobCost         Money   `json:"job_cost_nano_usd"` // the part of Cost for vCPUs while a job used them
	CPUSeconds      float64 `json:"cpu_seconds"`

	Warnings []Warning `json:"warnings,omitempty"` // for up to MaxWarned jobs or elements; only for callers who may read everybody's outputs
}

// Warning is something missing from the outputs of a job's last attempt.
type Warning struct {
	Job  JobID  `json:"job"`
	Name string `json:"name"`
	Text string `json:"text"`
}

// MaxWarned is the maximum number of jobs and elements whose warnings a Summary has.
const MaxWarned = 1000

// Status is the current state of a fleet in brief.
type Status struct {
	Fleet     string                `json:"fleet"`
	Version   string                `json:"version"` // of the controller
	Time      Time                  `json:"time"`
	Jobs      map[JobState]int      `json:"jobs"` // number of elements in each state
	Waiting   []Waiting             `json:"waiting"`
	Instances map[InstanceState]int `json:"instances"`
	Standing  []Waiting             `json:"instances_waiting"` // instances that run nothing, by what they wait for
	Hourly    float64               `json:"hourly_usd"`        // of all instances billed now
	Spent     float64               `json:"spent_usd"`
	Budgets   []BudgetUse           `json:"budgets,omitempty"`               // the fleet's and the caller's own; all for operators
	Paused    *Reason               `json:"paused,omitempty"`                // why the queue is paused: no waiting job starts, and nothing is rented for one
	Draining  bool                  `json:"draining,omitempty"`              // it starts nothing more and is about to exit
	SetAside  []string              `json:"set_aside,omitempty"`             // unreadable records; their jobs are held with priority 0
	Refused   string                `json:"configuration_refused,omitempty"` // why the current configuration file is not in use; for operators
	Suspended *Reason               `json:"suspended,omitempty"`             // why it cannot change anything at present, such as a full disk; it resumes by itself
}

// BudgetUse is the use of a budget in its current window.
type BudgetUse struct {
	Scope    string  `json:"scope"`              // fleet, user NAME, or label NAME=VALUE
	Window   string  `json:"window"`             // hourly, daily or monthly
	Hard     float64 `json:"hard_usd,omitempty"` // 0: none
	Soft     float64 `json:"soft_usd,omitempty"` // 0: none
	Spent    float64 `json:"spent_usd"`
	Promised float64 `json:"promised_usd"` // committed to running work, in addition to what is spent
	Until    Time    `json:"until"`        // end of the window
}

// Waiting is the number of jobs or instances that wait for the same reason.
type Waiting struct {
	Count  int    `json:"count"`
	Reason Reason `json:"reason"`
}

// Explanation explains the state of a subject.
type Explanation struct {
	Subject string   `json:"subject"` // a job's id, the name of an instance or a cloud, an offering as CLOUD/ZONE/TYPE/MARKET, "fleet" or "records"
	Waiting bool     `json:"waiting"`
	Count   int      `json:"count,omitempty"` // number of waiting jobs or elements
	Jobs    int      `json:"jobs,omitempty"`  // number of jobs they belong to, if others like the subject are included
	Since   Time     `json:"since,omitempty"`
	Likely  Seconds  `json:"likely,omitempty"`  // of a job: the likely run time of an attempt; assumed if neither Stated nor Learned
	Stated  bool     `json:"stated,omitempty"`  // Likely follows from what the job states
	Learned bool     `json:"learned,omitempty"` // Likely follows from the run times of earlier jobs
	Reasons []Reason `json:"reasons"`
}

// Offer is an offering, as `-o json` and the HTTP API show it.
type Offer struct {
	Cloud   string   `json:"cloud"`
	Zone    string   `json:"zone"`
	Type    string   `json:"type"`
	Market  Market   `json:"market"`
	VCPUs   float64  `json:"vcpus"`
	Memory  Bytes    `json:"memory_bytes"`
	GPUs    int      `json:"gpus"`
	Arch    Arch     `json:"arch"`
	Price   float64  `json:"price_usd_per_hour"`
	Blocked *Blocked `json:"blocked"`
	LeftOut string   `json:"left_out,omitempty"` // the configuration key that excludes it

	Disk          Bytes   `json:"disk_bytes,omitempty"`                      // 0: a volume as large as the jobs need
	DiskPrice     float64 `json:"disk_price_usd_per_hour,omitempty"`         // for each GiB of that volume that the price does not include
	LocalDisk     Bytes   `json:"local_disk_bytes,omitempty"`                // additional scratch space
	QuotaGroup    string  `json:"quota_group,omitempty"`                     // the quota of the account that it shares with other offerings
	Interruptions int64   `json:"interruptions_per_million_hours,omitempty"` // how often its cloud reclaims an instance, if known
	Reserved      bool    `json:"reserved,omitempty"`                        // a commitment with room for another instance sets the price
}

// Blocked is why an offering is not rented at present, and until when: because of a block, a limit, a budget, or its
// cloud.
type Blocked struct {
	Code   string `json:"code,omitempty"` // as in Reason
	Reason string `json:"reason"`
	Until  Time   `json:"until"`
}

// Event is something that happened, for people who watch the fleet.
type Event struct {
	ID       string     `json:"id"`
	Time     Time       `json:"time"`
	Level    string     `json:"level"`
	Text     string     `json:"text"`
	Job      *JobID     `json:"job,omitempty"`
	Attempt  *AttemptID `json:"attempt,omitempty"`
	Instance string     `json:"instance,omitempty"` // name
	Cloud    string     `json:"cloud,omitempty"`
	Reason   *Reason    `json:"reason,omitempty"`
	Missed   int        `json:"missed,omitempty"` // if not 0, this stands for that many events that are no longer available; -1: for those before a restart of the controller
}

// Token is a bearer token, without its secret.
type Token struct {
	ID      string     `json:"id"`
	User    string     `json:"user"`
	Role    Role       `json:"role"`
	Created time.Time  `json:"created"`
	Expires *time.Time `json:"expires,omitempty"`
}

// NewToken is a new Token with its secret.
type NewToken struct {
	Token
	Secret string `json:"token"`
}

// Seconds is a duration that JSON represents as a number of seconds.
type Seconds time.Duration

// MarshalJSON writes the number of seconds.
func (s Seconds) MarshalJSON() ([]byte, error) {
	return []byte(formatSeconds(time.Duration(s))), nil
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *Seconds) UnmarshalJSON(b []byte) error {
	n, err := strconv.ParseFloat(string(b), 64)
	if err != nil || n < 0 || n*float64(time.Second) >= math.MaxInt64 {
		return fmt.Errorf("%s is not a number of seconds", b)
	}
	*s = Seconds(math.Round(n * float64(time.Second)))
	return nil
}

func formatSeconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }
