// Package budget keeps what the fleet has spent and has promised to spend in each window of each budget, and says what would pass a limit.
//
// The model: a Claim is what one instance costs and was promised, as plain data. The Ledger holds an entry for each claim: what it adds to each
// account, which is one window of one budget. A Commitment is money that a decision would bind; it is refused if an account would be overdrawn by it.
// The package knows neither instances nor jobs: the engine makes claims of them and says when one has changed.
//
// What is committed is what runs: an instance up to the end of the longest job admitted to it, an attempt up to its own end. Most entries stay the same as
// time goes on. The others move: those of instances that are idle or on their way, or whose jobs take longer than was thought. They are as of a moment,
// since when each has grown by no more than its instance's price, and are worked out again only where that could make a difference.
//
// The invariants: an account's sum is that of its entries and of what is settled, to the nano-dollar; a question costs what has changed since the last, not
// what there is; equal claims and times give equal answers.
package budget

import (
	"strings"

	"drover"
)

// Settings are the limits on what may be spent.
type Settings struct {
	Max     drover.Money // of the fleet's whole life; 0: no limit
	Budgets []Budget     // no two of one scope
}

// Budget limits what may be spent in each hour, day and month of the UTC calendar (BEHAVIOUR D24): by the fleet, or on the jobs of a user or with
// a label. The fleet's counts what instances cost; the others what attempts have of them.
type Budget struct {
	User  string  `json:"user,omitempty"`
	Label string  `json:"label,omitempty"` // NAME=VALUE
	Hard  Amounts `json:"hard"`            // that no decision passes
	Soft  Amounts `json:"soft"`            // that are told of when they are passed
	Stop  bool    `json:"stop,omitempty"`  // once a hard one is passed nevertheless, running jobs are stopped and wait
}

// Amounts are limits, one for each window; 0 is none.
type Amounts struct {
	Hourly  drover.Money `json:"hourly,omitempty"`
	Daily   drover.Money `json:"daily,omitempty"`
	Monthly drover.Money `json:"monthly,omitempty"`
}

// Of is the limit for a window.
func (a Amounts) Of(w Window) drover.Money {
	return [windows]drover.Money{a.Hourly, a.Daily, a.Monthly}[w]
}

// Scope says whose money it is, and is unique among budgets.
func (b Budget) Scope() string {
	switch {
	case b.User != "":
		return "user " + b.User
	case b.Label != "":
		return "label " + b.Label
	}
	return "fleet"
}

// OfFleet reports whether the budget is everybody's.
func (b *Budget) OfFleet() bool { return b.User == "" && b.Label == "" }

// Payer is who pays for a job.
type Payer struct {
	User   string
	Labels string // those that budgets name, as NAME=VALUE, a line each
}

// Covers reports whether the payer's jobs count in the budget.
func (b *Budget) Covers(p Payer) bool {
	return b.OfFleet() || b.User != "" && b.User == p.User || b.Label != "" && p.has(b.Label)
}

func (p Payer) has(label string) bool {
	for line := range strings.SplitSeq(p.Labels, "\n") {
		if line == label {
			return true
		}
	}
	return false
}
