package drover

import (
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
	Command    []string          `json:"command"`
	Image      string            `json:"image,omitempty"`
	Resources  Resources         `json:"resources"`
	Placement  Placement         `json:"placement"`
	Spot       SpotPolicy        `json:"spot"`
	After      []string          `json:"after,omitempty"`
	Timeout    Seconds           `json:"timeout,omitempty"`
	ExitCode   *int              `json:"exit_code,omitempty"`
	Reason     *Reason           `json:"reason,omitempty"`
	Submitted  time.Time         `json:"submitted"`
	Started    *time.Time        `json:"started,omitempty"`
	Ended      *time.Time        `json:"ended,omitempty"`
	Cost       float64           `json:"cost_usd"`
	Attempts   []Attempt         `json:"attempts"`
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
}

// Summary is what a fleet did and what it cost. Money and time of instances that are not gone count up to the moment of asking.
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
}

// Seconds is a duration that JSON shows as a number of seconds.
type Seconds time.Duration

// MarshalJSON writes the number of seconds.
func (s Seconds) MarshalJSON() ([]byte, error) {
	return []byte(formatSeconds(time.Duration(s))), nil
}

func formatSeconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }
