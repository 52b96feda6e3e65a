package store

import (
	"testing"

	"drover"
	"drover/internal/engine"
)

func TestASlowReceiverDelaysNobodyElsesMessages(t *testing.T) {
	s := sqliteOpener(t)(t)
	begun(t, s)
	submit := func(user, on string) int64 {
		t.Helper()
		batch := drover.Batch{Name: "b", User: user, Notify: &drover.Notify{URL: "https://" + user + ".example.org", On: []string{on}}, Jobs: []drover.JobSpec{{Name: "j", Command: []string{"true"}}}}
		numbers, err := s.Submit(t.Context(), drover.Submission{Batch: batch}, Terms{})
		if err != nil {
			t.Fatal(err)
		}
		return numbers[0]
	}
	for range 5 {
		submit("mallory", drover.NotifyFinal)
	}
	ada := submit("ada", drover.NotifyFinal)
	unneeded := submit("ada", drover.NotifyFailed) // none of its jobs fails
	var ends []engine.Write
	jobs, err := s.Pending(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range jobs {
		ends = append(ends, engine.Write{Job: &j}, engine.Write{Ended: &engine.JobEnd{Number: j.Number, State: drover.JobSucceeded, Succeeded: 1, At: 9}})
	}
	commit(t, s, ends...)
	due, err := s.Tellings(t.Context(), 10, 2)
	if err != nil {
		t.Fatal(err)
	}
	if len(due) != 3 || due[2].Message.FirstJob != ada {
		t.Errorf("%d messages are due, want two of mallory's and ada's: %+v", len(due), due)
	}
	if err := s.ForgetTold(t.Context()); err != nil {
		t.Fatal(err)
	}
	var left, unneededLeft int
	if err := s.read.QueryRow(`SELECT count(*), coalesce(sum(submission = ?), 0) FROM notify`, unneeded).Scan(&left, &unneededLeft); err != nil || left != 6 || unneededLeft != 0 {
		t.Errorf("%d batches are remembered, %d of them needlessly, %v; want 6", left, unneededLeft, err)
	}
}
