package preview

import "drover"

// Rental is one kind of instance that a plan rents.
type Rental struct {
	Cloud     string        `json:"cloud"`
	Zone      string        `json:"zone"`
	Type      string        `json:"type"`
	Market    drover.Market `json:"market"`
	Instances int           `json:"instances"`
	Jobs      int           `json:"jobs"`               // that start at once
	Price     float64       `json:"price_usd_per_hour"` // of each

	RunnerUp *Alternative `json:"runner_up,omitempty"`
}

// Alternative is the cheapest offering of another cloud, type or market that could have been rented instead.
type Alternative struct {
	Cloud  string        `json:"cloud"`
	Type   string        `json:"type"`
	Market drover.Market `json:"market"`
	Price  float64       `json:"price_usd_per_hour"`
}

// Report is what `drover plan` prints.
type Report struct {
	Batch   string    `json:"batch"`
	Rent    []Rental  `json:"rent"`
	Hourly  float64   `json:"usd_per_hour"`
	Most    float64   `json:"most_usd"`            // if each of these instances costs as much, boots as slowly, and runs its jobs for as long as it may
	Above   *float64  `json:"percent_above_bound"` // by how much the rented instances cost more than the bound for the same jobs; null: nothing is rented
	Ready   int       `json:"ready"`               // jobs that depend on no other
	Later   int       `json:"later"`               // jobs that depend on others
	Waiting int       `json:"waiting"`             // ready jobs without a place at once
	Why     string    `json:"why,omitempty"`
	All     *Estimate `json:"estimate,omitempty"` // of the whole batch; null: it has too many jobs
}
