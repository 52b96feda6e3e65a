package store

import (
	"testing"
	"time"

	"drover"
	"drover/internal/engine"
)

// spentSuite runs in a month that is two and a half days old. The first attempt ran when its instance was cheap.
func spentSuite(t *testing.T, openers func(testing.TB) opener) {
	s := openers(t)(t)
	submitted(t, s)
	month := drover.TimeOf(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC))
	now := month + 60*hour + hour/2
	at := func(h drover.Time) func(*engine.Instance) {
		return func(in *engine.Instance) { in.Created, in.Ready = month+h*hour, month+h*hour }
	}
	folded := func(in *engine.Instance) {
		in.Rates = []drover.Rate{{Since: in.Created, Until: in.Created + 10*hour, Paid: 10 * drover.Dollar}}
	}
	commit(t, s,
		paidInstance(1, "small", at(-5), folded), paidInstance(2, "small", at(50)), paidInstance(3, "small", at(50)), paidInstance(4, "small", at(-9)),
		paidAttempt(drover.JobID{Number: 1, Index: -1}, 1, 1, drover.AttemptSucceeded, month-4*hour, month+4*hour, drover.Dollar),
		paidAttempt(drover.JobID{Number: 2, Index: 1}, 1, 2, drover.AttemptLost, month+58*hour, now-hour/4, 9*drover.Dollar/16),
		paidAttempt(drover.JobID{Number: 2, Index: 2}, 1, 3, drover.AttemptRunning, month+52*hour, 0, 0),
		goneAt(1, month+5*hour), goneAt(2, now-hour/4), goneAt(4, month-hour),
	)
	budgets := []engine.Budget{{}, {User: "ada"}, {Label: "of=greet"}, {Label: "of=none"}, {User: "bob"}}
	spent, err := s.Spent(t.Context(), now, budgets)
	if err != nil {
		t.Fatal(err)
	}
	const quarter = drover.Dollar / 4
	for i, want := range [][3]drover.Money{
		{quarter, 10*drover.Dollar + quarter, 15*drover.Dollar + quarter},
		{quarter / 4, 9 * quarter / 4, 9*quarter/4 + drover.Dollar/2},
		{quarter / 4, 9 * quarter / 4, 9 * quarter / 4},
		{}, {},
	} {
		var got [3]drover.Money
		for w, window := range spent[i].Windows {
			got[w] = window.Cost
		}
		equal(t, "spent of "+budgets[i].Scope(), got, want)
	}
	equal(t, "since", spent[0].Since(), month)
}
