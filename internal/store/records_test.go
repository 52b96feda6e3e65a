package store

import (
	"strings"
	"testing"

	"drover"
	"drover/internal/engine"
)

func TestAUsersRecordsAreLimited(t *testing.T) {
	s := sqliteOpener(t)(t)
	begun(t, s)
	submit := func(user, value string) error {
		batch := drover.Batch{Name: "b", User: user, Jobs: []drover.JobSpec{{Name: "j", Command: []string{"true"}, Env: map[string]string{"A": value}}}}
		_, err := s.Submit(t.Context(), drover.Submission{Batch: batch}, Terms{Limits: drover.UserLimits{Records: 64 * drover.KiB}})
		return err
	}
	if err := submit("mallory", strings.Repeat("x", 50<<10)); err != nil {
		t.Fatal(err)
	}
	// Jobs that become final free nothing.
	jobs, err := s.Pending(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	commit(t, s, engine.Write{Job: &jobs[0]}, engine.Write{Ended: &engine.JobEnd{Number: jobs[0].Number, State: drover.JobCancelled, At: 9}})
	if err := submit("mallory", strings.Repeat("x", 50<<10)); drover.KindOf(err) != drover.KindQuota || !strings.Contains(err.Error(), "limits.records") {
		t.Errorf("more records than allowed: %v", err)
	}
	if err := submit("ada", "small"); err != nil {
		t.Errorf("another user: %v", err)
	}
}
