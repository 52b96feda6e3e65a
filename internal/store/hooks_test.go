package store

import (
	"fmt"
	"testing"
	"time"

	"drover"
	"drover/internal/engine"
)

// covers P4
func TestHooks(t *testing.T) {
	s := sqliteOpener(t)(t)
	row := func(effect int64, name, pool string) engine.Write {
		return engine.Write{Hook: &engine.HookRow{Epoch: 1, Effect: effect, Pool: pool, Fire: engine.Fire{Hook: drover.HookReady, Name: name}}}
	}
	commit(t, s, row(1, "a", ""), row(1, "a", "web"), row(2, "a", ""), row(3, "b", ""), row(4, "", ""), row(5, "", ""))
	commit(t, s, row(3, "b", "")) // a repeated commit
	now := drover.Time(time.Hour)
	due := func() (all []string) {
		t.Helper()
		hooks, err := s.Hooks(t.Context(), now, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range hooks {
			all = append(all, fmt.Sprint(h.Effect, h.Fire.Name, h.Pool))
		}
		return all
	}
	run := func(failure error, done bool) {
		t.Helper()
		hooks, err := s.Hooks(t.Context(), now, 1)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := s.HookRun(t.Context(), hooks[0], failure, now); err != nil || got != done {
			t.Fatalf("done %v (%v), want %v", got, err, done)
		}
	}
	equal(t, "due", due(), []string{"1a", "1aweb", "3b", "4", "5"})
	run(drover.Errorf(drover.KindTransient, "nobody there"), false)
	equal(t, "due while one waits to be repeated", due(), []string{"1aweb", "3b", "4", "5"})
	now = now.Add(time.Second)
	run(nil, true)
	equal(t, "due after the repetition", due(), []string{"1aweb", "2a", "3b", "4", "5"})
	run(drover.Errorf(drover.KindInvalid, "refused"), true)
	equal(t, "due once one has failed permanently", due(), []string{"2a", "3b", "4", "5"})
	for try := 1; try < mostTries; try++ {
		run(drover.Errorf(drover.KindTransient, "nobody there"), false)
		now = now.Add(3 * time.Hour)
	}
	run(drover.Errorf(drover.KindTransient, "nobody there"), true)
	equal(t, "due once one was given up", due(), []string{"3b", "4", "5"})
}
