package drover

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// Job is what a program reads of a job, or of one element of an array: the object of `-o json` and of the HTTP API.
type Job struct {
	ID         JobID             `json:"id"`
	Name       string            `json:"name"`
	Batch      string            `json:"batch"`
	User       string            `json:"user,omitempty"`
	State      JobState          `json:"state"`
	Priority   int               `json:"priority"`
	Labels     map[string]string `json:"labels,omitempty"`
	ArrayIndex *int              `json:"array_index,omitempty"`
	File       string            `json:"file,omitempty"` // that the element is for
	Command    []string          `json:"command"`
	Image      string            `json:"image,omitempty"`
	Resources  Resources         `json:"resources"`
	Placement  Placement         `json:"placement"`
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
	Attempts   []Attempt         `json:"attempts"` // none of an array as a whole

	// Of an array as a whole.
	Array  *Array           `json:"array,omitempty"`
	Gang   int              `json:"gang,omitempty"`   // so many elements in a row begin together
	Counts map[JobState]int `json:"counts,omitempty"` // elements in each state
}

// Attempt is what a program reads of one execution of a job.
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
	Warnings   []string     `json:"warnings,omitempty"` // what its outputs lack: what was left out, and patterns that matched nothing
}

// Instance is what a program reads of an instance.
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
	User       string        `json:"user,omitempty"` // whose jobs alone it runs, while it is there
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
	Login      *Login        `json:"login,omitempty"` // while it is known

	Attempts []InstanceAttempt `json:"attempts,omitempty"` // the last on it, as far as they were asked for, the latest first

	// The last lines of its runner's own log, oldest first, of one instance that is asked for alone. They are kept of
	// those that died.
	RunnerLog []string `json:"runner_log,omitempty"`
}

// InstanceAttempt is an attempt as its instance knows it.
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

// Summary is what a fleet did and what it cost. Money and time of instances that are not gone count up to the moment of
// asking.
type Summary struct {
	Jobs            int     `json:"jobs"` // every element of an array counts
	Succeeded       int     `json:"succeeded"`
	Failed          int     `json:"failed"`
	Cancelled       int     `json:"cancelled"`
	Attempts        int     `json:"attempts"`
	Instances       int     `json:"instances"`
	InstanceSeconds float64 `json:"instance_seconds"`
	Cost            Money   `json:"cost_nano_usd"`
	JobCost         Money   `json:"job_cost_nano_usd"` // the part of Cost during which a job had the vCPUs
	CPUSeconds      float64 `json:"cpu_seconds"`

	Warnings []Warning `json:"warnings,omitempty"` // of up to MaxWarned jobs or elements; for those who may read what everybody's jobs leave
}

// Warning is something that the outputs of a job's last attempt lack.
type Warning struct {
	Job  JobID  `json:"job"`
	Name string `json:"name"`
	Text string `json:"text"`
}

// MaxWarned is the most jobs and elements with whose warnings a Summary comes.
const MaxWarned = 1000

// Status is a fleet at a glance.
type Status struct {
	Fleet     string                `json:"fleet"`
	Version   string                `json:"version"` // of the controller
	Time      Time                  `json:"time"`
	Jobs      map[JobState]int      `json:"jobs"` // elements, in each state
	Waiting   []Waiting             `json:"waiting"`
	Instances map[InstanceState]int `json:"instances"`
	Standing  []Waiting             `json:"instances_waiting"` // those on which nothing runs, by what they wait for
	Hourly    float64               `json:"hourly_usd"`        // of all that is billed now
	Spent     float64               `json:"spent_usd"`
	Budgets   []BudgetUse           `json:"budgets,omitempty"`               // the fleet's and the caller's own; for operators, all
	Paused    *Reason               `json:"paused,omitempty"`                // the queue is: what waits is not started, nor rented for
	Draining  bool                  `json:"draining,omitempty"`              // it starts nothing any more, and ends
	SetAside  []string              `json:"set_aside,omitempty"`             // records that could not be read, whose jobs are held with priority 0 since
	Refused   string                `json:"configuration_refused,omitempty"` // why the configuration's file, as it is now, is not in use; for operators
	Suspended *Reason               `json:"suspended,omitempty"`             // why it can change nothing for now, such as a full disk; it goes on by itself
}

// BudgetUse is how much of a budget is used in its present window.
type BudgetUse struct {
	Scope    string  `json:"scope"`              // fleet, user NAME, or label NAME=VALUE
	Window   string  `json:"window"`             // hourly, daily or monthly
	Hard     float64 `json:"hard_usd,omitempty"` // 0: none
	Soft     float64 `json:"soft_usd,omitempty"` // 0: none
	Spent    float64 `json:"spent_usd"`
	Promised float64 `json:"promised_usd"` // beside that, to what runs
	Until    Time    `json:"until"`        // when it begins anew
}

// Waiting is how many jobs, or instances, wait for one reason.
type Waiting struct {
	Count  int    `json:"count"`
	Reason Reason `json:"reason"`
}

// Explanation says why something is as it is.
type Explanation struct {
	Subject string   `json:"subject"` // a job's id, the name of an instance or a cloud, an offering as CLOUD/ZONE/TYPE/MARKET, "fleet" or "records"
	Waiting bool     `json:"waiting"`
	Count   int      `json:"count,omitempty"` // of the jobs, or elements, that wait
	Jobs    int      `json:"jobs,omitempty"`  // of how many jobs those are, if of others like the subject too
	Since   Time     `json:"since,omitempty"`
	Likely  Seconds  `json:"likely,omitempty"` // of a job: how long one attempt is taken to run, by what was said and what was seen
	Reasons []Reason `json:"reasons"`
}

// Offer is what a program reads of an offering.
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
	LeftOut string   `json:"left_out,omitempty"` // which key of the configuration keeps it from being rented

	Disk          Bytes   `json:"disk_bytes,omitempty"`                      // 0: a volume as large as the work asks
	DiskPrice     float64 `json:"disk_price_usd_per_hour,omitempty"`         // of each GiB of that volume beyond what is in the price
	LocalDisk     Bytes   `json:"local_disk_bytes,omitempty"`                // scratch space beside it
	QuotaGroup    string  `json:"quota_group,omitempty"`                     // the account's quota that it counts under with others
	Interruptions int64   `json:"interruptions_per_million_hours,omitempty"` // how often its cloud takes one back, where that is known
	Reserved      bool    `json:"reserved,omitempty"`                        // the price is that of a commitment, which has room for one more
}

// Blocked is why none of an offering is rented now, and until when: it is left alone, a limit or a budget keeps it from
// being rented, or its cloud does.
type Blocked struct {
	Code   string `json:"code,omitempty"` // as in Reason
	Reason string `json:"reason"`
	Until  Time   `json:"until"`
}

// Event is one thing that happened, for people who watch.
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
	Missed   int        `json:"missed,omitempty"` // events that are no longer remembered, in place of which this one stands
}

// Token is a bearer token, without its secret.
type Token struct {
	ID      string     `json:"id"`
	User    string     `json:"user"`
	Role    Role       `json:"role"`
	Created time.Time  `json:"created"`
	Expires *time.Time `json:"expires,omitempty"`
}

// NewToken is a Token just made, and what its bearer sends.
type NewToken struct {
	Token
	Secret string `json:"token"`
}

// Seconds is a duration that JSON shows as a number of seconds.
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
