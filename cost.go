package drover

import (
	"slices"
	"strings"
	"time"
)

// CostBy is what costs are grouped by.
type CostBy string

// What money can be told apart by. By [CostByLabel] alone jobs are told apart by all their labels together, and with a
// colon and a name, as in "label:project", by that label's value.
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
	Since Time // from when on; 0: from the beginning
	Until Time // until when; 0, or a time to come: now
	Limit int  // at most so many lines, the dearest; 0, or more than MaxPage: MaxPage

	Step time.Duration // also over time, in steps of this length from Since on, at most MaxCostSteps; 0: not
}

// MaxCostSteps is the most steps of time that money is told apart by.
const MaxCostSteps = 500

// Costs are the costs from Since to Until. The lines, and Others if there are more lines than requested, add up to
// Total, the cost of the fleet.
type Costs struct {
	By     CostBy     `json:"by"`
	Since  Time       `json:"since,omitzero"` // left out: the beginning
	Until  Time       `json:"until"`
	Lines  []CostLine `json:"lines"`  // dearest first
	Others *CostLine  `json:"others"` // all further lines as one; null if there are none
	Total  CostLine   `json:"total"`
	Steps  []CostStep `json:"steps,omitempty"` // in the order of time, if they were asked for
}

// CostStep has the costs of one step of time: for each of the Lines, in their order, its part in this step, and that of
// all others.
type CostStep struct {
	Since Time      `json:"since"`
	Until Time      `json:"until"`
	Cost  []float64 `json:"cost_usd"`
	Other float64   `json:"others_usd"`
}

// CostLine is the cost of one job, label, user, pool, cloud or type.
type CostLine struct {
	Key   string  `json:"key"`            // empty: of none
	Name  string  `json:"name,omitempty"` // of a job
	Jobs  float64 `json:"jobs_usd"`       // while a job had the vCPUs
	Boot  float64 `json:"boot_usd"`       // until instances were ready
	Idle  float64 `json:"idle_usd"`       // vCPUs that no job had
	Waste float64 `json:"waste_usd"`      // what came to nothing: attempts that were lost or interrupted, instances that never ran a job
	Cost  float64 `json:"cost_usd"`       // all of it
}
