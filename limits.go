package drover

import "fmt"

// UserLimits limit how much of a controller one user may use. 0 means no limit.
type UserLimits struct {
	Inputs   Bytes `json:"inputs" yaml:"inputs" doc:"total size of a user's uploaded inputs; 0: no limit"`
	Results  Bytes `json:"results" yaml:"results" doc:"total size of the logs and outputs of a user's jobs; above this, the user cannot submit; 0: no limit"`
	Records  Bytes `json:"records" yaml:"records" doc:"total size of the records of a user's jobs, including final ones; above this, the user cannot submit; 0: no limit"`
	Jobs     int   `json:"jobs" yaml:"jobs" min:"0" doc:"a user's unfinished jobs; an array counts as one; 0: no limit"`
	Elements int   `json:"elements" yaml:"elements" min:"0" doc:"total elements of a user's unfinished jobs; 0: no limit"`

	Instances int      `json:"instances" yaml:"instances" min:"0" doc:"with sharing: user, the instances a user may have at once, not counting pools; 0: no limit"`
	VCPUs     MilliCPU `json:"cpu_milli" yaml:"vcpus" doc:"total vCPUs of a user's instances, counted in the same way; 0: no limit"`
}

// Default sets the default limits.
func (l *UserLimits) Default() {
	*l = UserLimits{Inputs: 100 * GiB, Results: 100 * GiB, Records: 16 * GiB, Jobs: 100_000, Elements: 1_000_000, Instances: 10_000, VCPUs: 1_000_000_000}
}

// Usage is how much of a controller a user uses.
type Usage struct {
	Inputs   Bytes
	Results  Bytes
	Records  Bytes
	Jobs     int // jobs that are not final; Elements are theirs
	Elements int
}

// CheckInputs refuses inputs that would take a user over the limit. The parameter used includes them.
func (l UserLimits) CheckInputs(user string, used Bytes) error {
	if l.Inputs == 0 || used <= l.Inputs {
		return nil
	}
	return over(user, "inputs", used.Rounded()+" of inputs", l.Inputs.Rounded()).
		WithHint("inputs that no job uses are deleted after a day; the controller's operator can raise limits: {inputs: …}")
}

// CheckBatch refuses a batch that exceeds a limit by itself, so that waiting would not help.
func (l UserLimits) CheckBatch(b Batch) error {
	elements := 0
	for _, j := range b.Jobs {
		elements += j.Array.Size()
	}
	alone := func(limit, have string, most int) error {
		return Errorf(KindInvalid, "the batch has %s, but limits.%s is %d", have, limit, most).
			WithHint("split the batch, or ask the controller's operator to raise limits: {%s: …}", limit)
	}
	switch {
	case l.Jobs > 0 && len(b.Jobs) > l.Jobs:
		return alone("jobs", fmt.Sprintf("%d jobs", len(b.Jobs)), l.Jobs)
	case l.Elements > 0 && elements > l.Elements:
		return alone("elements", fmt.Sprintf("%d elements", elements), l.Elements)
	}
	return nil
}

// CheckWork refuses jobs that would take a user over a limit. The parameter used includes them.
func (l UserLimits) CheckWork(user string, used Usage) error {
	switch {
	case l.Jobs > 0 && used.Jobs > l.Jobs:
		return over(user, "jobs", fmt.Sprintf("%d unfinished jobs", used.Jobs), fmt.Sprint(l.Jobs)).
			WithHint("wait until some of them finish, or cancel some; an array counts as one job")
	case l.Elements > 0 && used.Elements > l.Elements:
		return over(user, "elements", fmt.Sprintf("%d elements in unfinished jobs", used.Elements), fmt.Sprint(l.Elements)).
			WithHint("wait until some jobs finish, or cancel some")
	case l.Records > 0 && used.Records > l.Records:
		return over(user, "records", used.Records.Rounded()+" of records", l.Records.Rounded()).
			WithHint("submit many small jobs as one array, and large environments as inputs; the controller's operator can raise limits: {records: …}")
	case l.Results > 0 && used.Results > l.Results:
		e := Errorf(KindQuota, "the logs and outputs of %s's jobs take %s, but limits.results is %s", user, used.Results.Rounded(), l.Results.Rounded())
		return e.WithHint("ask the controller's operator to delete old logs and outputs, or to raise limits: {results: …}")
	}
	return nil
}

// over is the error for a request that would take a user over a limit.
func over(user, limit, have, most string) *Error {
	return Errorf(KindQuota, "%s would have %s, but limits.%s is %s", user, have, limit, most)
}
