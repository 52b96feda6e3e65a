// Package budget tracks what the fleet has spent and committed in each window of each budget, and says what would
// exceed a limit.
//
// The model: a Claim is the cost and the commitment of one instance, as plain data. The Ledger holds an entry for each
// claim: what it adds to each account (one window of one budget). A Commitment is money that a decision would commit;
// it is refused if it would overdraw an account. The package knows neither instances nor jobs: the engine turns them
// into claims and reports changes.
//
// An instance is committed until the end of the longest job admitted to it, an attempt until its own end. Most entries
// stay the same as time passes. Some move: those of instances that are idle or booting, or whose jobs outlive their
// horizon. A moving entry holds its value at an earlier moment. Since then it has grown by at most its instance's
// price, so it is recomputed only where that could make a difference.
//
// The invariants: an account's sum is exactly the sum of its entries and of settled money; an answer takes time in
// proportion to what has changed since the last one, not to the size of the fleet; equal claims and times give equal
// answers.
package budget

import (
	"strings"

	"drover"
)

// Settings are the limits on what may be spent.
type Settings struct {
	Max     drover.Money // of the fleet's whole life; 0: no limit
	Budgets []Budget     // at most one per scope
}

// Budget limits spending in each hour, day and month of the UTC calendar (behaviour D24): of the fleet, of one user's
// jobs, or of the jobs with one label. The fleet's budget counts what instances cost; the others count their jobs'
// shares of instances.
type Budget struct {
	User  string  `json:"user,omitempty"`
	Label string  `json:"label,omitempty"` // NAME=VALUE
	Hard  Amounts `json:"hard"`            // no decision exceeds these
	Soft  Amounts `json:"soft"`            // exceeding one of these is only reported
	Stop  bool    `json:"stop,omitempty"`  // if a hard limit is exceeded anyway, running jobs are stopped and requeued
}

// Amounts are limits, one for each window; 0 means none.
type Amounts struct {
	Hourly  drover.Money `json:"hourly,omitempty"`
	Daily   drover.Money `json:"daily,omitempty"`
	Monthly drover.Money `json:"monthly,omitempty"`
}

// Of returns the limit for a window.
func (a Amounts) Of(w Window) drover.Money {
	return [windows]drover.Money{a.Hourly, a.Daily, a.Monthly}[w]
}

// Scope names whose money it is. It is unique among budgets.
func (b Budget) Scope() string {
	switch {
	case b.User != "":
		return "user " + b.User
	case b.Label != "":
		return "label " + b.Label
	}
	return "fleet"
}

// Whose names it in a sentence: "the fleet", "user ada".
func (b Budget) Whose() string { return Whose(b.Scope()) }

// Whose is the same of a budget's Scope.
func Whose(scope string) string {
	if scope == "fleet" {
		return "the fleet"
	}
	return scope
}

// OfFleet reports whether the budget covers the whole fleet.
func (b *Budget) OfFleet() bool { return b.User == "" && b.Label == "" }

// Payer is who pays for a job.
type Payer struct {
	User   string
	Labels string // the labels that budgets name, one NAME=VALUE a line
}

// Covers reports whether the budget counts the payer's jobs.
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
