package drover

import (
	"slices"
	"strings"
	"time"
)

// CostBy is a grouping of costs.
type CostBy string

// The groupings. [CostByLabel] alone groups jobs by all of their labels together; with a colon and a name, as in
// "label:project", by that label's value.
const (
	CostByJob   CostBy = "job"
	CostByLabel CostBy = "label"
	CostByUser  CostBy = "user"
	CostByPool  CostBy = "pool"
	CostByCloud CostBy = "cloud"
	CostByType  CostBy = "type"
)

// CostsBy lists all groupings.
func CostsBy() []CostBy {
	return []CostBy{CostByJob, CostByLabel, CostByUser, CostByPool, CostByCloud, CostByType}
}

// Label is the name of the label by whose values costs are grouped; empty if it is not a single label.
func (by CostBy) Label() string {
	name, _ := strings.CutPrefix(string(by), string(CostByLabel)+":")
	if name == string(by) {
		return ""
	}
	return name
}

// Known reports whether costs can be grouped by it.
func (by CostBy) Known() bool { return slices.Contains(CostsBy(), by) || by.Label() != "" }

// CostFilter selects costs.
type CostFilter struct {
	By    CostBy
	Since Time // start of the period; 0: the fleet's beginning
	Until Time // its end; 0, or in the future: now
	Limit int  // maximum number of lines, the most expensive ones; 0, or more than MaxPage: MaxPage

	Step time.Duration // also divide the costs into steps of this length from Since on, at most MaxCostSteps; 0: do not
}

// MaxCostSteps is the maximum number of steps.
const MaxCostSteps = 500

// Costs are the costs from Since to Until. The lines, and Others if there are more lines than requested, add up to
// Total, the cost of the fleet.
type Costs struct {
	By     CostBy     `json:"by"`
	Since  Time       `json:"since,omitzero"` // omitted: the fleet's beginning
	Until  Time       `json:"until"`
	Lines  []CostLine `json:"lines"`  // most expensive first
	Others *CostLine  `json:"others"` // all further lines as one; null if there are none
	Total  CostLine   `json:"total"`
	Steps  []CostStep `json:"steps,omitempty"` // in order of time, if requested
}

// CostStep is the costs of one step: the part of each of the Lines, in their order, and that of all others.
type CostStep struct {
	Since Time      `json:"since"`
	Until Time      `json:"until"`
	Cost  []float64 `json:"cost_usd"`
	Other float64   `json:"others_usd"`
}

// CostLine is the cost of one job, label, user, pool, cloud or type.
type CostLine struct {
	Key   string  `json:"key"`            // empty: none
	Name  string  `json:"name,omitempty"` // of a job
	Jobs  float64 `json:"jobs_usd"`       // vCPUs used by jobs
	Boot  float64 `json:"boot_usd"`       // until instances were ready
	Idle  float64 `json:"idle_usd"`       // vCPUs that no job used
	Waste float64 `json:"waste_usd"`      // attempts that were lost or interrupted, and instances that neither ran a job nor served a pool
	Cost  float64 `json:"cost_usd"`       // total
}
