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

func TestAMessageAboutAFailureMentionsOtherJobsOnlyIfThereAreAny(t *testing.T) {
	for _, end := range []struct {
		jobs int
		want string
	}{{1, "batch b: 0 of 1 jobs succeeded, 1 failed"}, {2, "batch b: 0 of 2 jobs succeeded, 1 failed; the others continue"}} {
		s := sqliteOpener(t)(t)
		begun(t, s)
		batch := drover.Batch{Name: "b", User: "ada", Notify: &drover.Notify{URL: "https://ada.example.org", On: []string{drover.NotifyFailed}}}
		for _, name := range []string{"i", "j"}[:end.jobs] {
			batch.Jobs = append(batch.Jobs, drover.JobSpec{Name: name, Command: []string{"false"}})
		}
		if _, err := s.Submit(t.Context(), drover.Submission{Batch: batch}, Terms{}); err != nil {
			t.Fatal(err)
		}
		jobs, err := s.Pending(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		commit(t, s, engine.Write{Job: &jobs[0]}, engine.Write{Ended: &engine.JobEnd{Number: jobs[0].Number, State: drover.JobFailed, Failed: 1, At: 9}})
		due, err := s.Tellings(t.Context(), 10, 2)
		if err != nil || len(due) != 1 || due[0].Message.Text != end.want {
			t.Errorf("%v, %+v; want %q", err, due, end.want)
		}
	}
}
