package control

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"drover"
	"drover/driver"
	"drover/internal/engine"
)

// script writes a program of a shell's and returns its path.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hook")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// covers D21 P4
func TestAHookIsToldOfItsInstanceAndWhatItSaysIsLogged(t *testing.T) {
	t.Setenv("NAME", "inherited")
	f := newFixture(t)
	var log strings.Builder
	f.cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	f.cfg.Hooks = map[drover.Hook]string{
		drover.HookBroken: script(t, `echo "$DROVER_HOOK $DROVER_FLEET $DROVER_CLOUD $DROVER_ZONE $DROVER_INSTANCE $DROVER_PROVIDER_ID, $NAME $ZONE: $DROVER_REASON"; exit 3`),
	}
	c := must(New(t.Context(), f.cfg))(t)
	fire := engine.Fire{Hook: drover.HookBroken, Name: "test-1", Cloud: "here", Zone: "z", ProviderID: "i-1", Reason: drover.Reason{Text: "it burns"}}
	c.fire(t.Context(), fire)
	fire.Hook = drover.HookCreated
	c.fire(t.Context(), fire)
	for _, want := range []string{`said="broken test here z test-1 i-1, test-1 z: it burns"`, "exit status 3"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has not %q:\n%s", want, &log)
		}
	}
	if strings.Contains(log.String(), "hook=created") {
		t.Errorf("a hook that is not there was run:\n%s", &log)
	}
}

// covers P4
func TestTheEngineIsToldThatTheHookOfABrokenInstanceHasEnded(t *testing.T) {
	f := newFixture(t)
	done := filepath.Join(t.TempDir(), "done")
	f.cfg.Hooks = map[drover.Hook]string{drover.HookBroken: script(t, "sleep 0.1; touch "+done)}
	c := must(New(t.Context(), f.cfg))(t)
	c.events = make(chan engine.Event, 1)
	c.do(t.Context(), engine.Effect{ID: 7, Fire: &engine.Fire{Hook: drover.HookBroken, Instance: 3, Cloud: "here"}})
	if got := (<-c.events).Body; got != (engine.Fired{Effect: 7, Instance: 3}) {
		t.Errorf("it is told %+v", got)
	}
	if _, err := os.Stat(done); err != nil {
		t.Errorf("the hook had not ended: %v", err)
	}
}

func TestAHookOfAnInstanceThatIsGoneIsToldWhereItWas(t *testing.T) {
	f := newFixture(t)
	f.cfg.Clouds[0].SSH.Port = 22
	c := must(New(t.Context(), f.cfg))(t)
	cl := must(c.cloud("here"))(t)
	cl.replace(map[string]driver.Instance{"i-1": {ID: "i-1", Addresses: driver.Addresses{Private: "10.0.0.7"}}})
	cl.replace(nil)
	if env := c.hookEnv(engine.Fire{Hook: drover.HookDestroyed, Cloud: "here", ProviderID: "i-1"}); !slices.Contains(env, "DROVER_ADDRESS=10.0.0.7:22") {
		t.Errorf("the hook is told %v", env[len(env)-12:])
	}
}

// covers P4
func TestAHookIsEndedWithAllThatItBegan(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var child string
	err := runHook(ctx, script(t, "sleep 1000 & echo $!; wait"), os.Environ(), func(line string) {
		child = line
		cancel()
	})
	if err == nil {
		t.Error("a hook that was killed ended well")
	}
	for deadline := time.Now().Add(10 * time.Second); processLives(child); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("process %s, which the hook began, lives", child)
		}
	}
}

// processLives reports whether there is such a process that is not merely waiting to be reaped.
func processLives(pid string) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func TestAHookThatWritesWithoutEndIsCutShortInTheLogAndNotHeldUp(t *testing.T) {
	var lines int
	if err := runHook(t.Context(), script(t, "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done"), os.Environ(), func(string) { lines++ }); err != nil {
		t.Fatal(err)
	}
	if lines != hookLines {
		t.Errorf("%d lines were told, want %d", lines, hookLines)
	}
}

// covers P4
func TestOnlySoManyHooksRunAtOnce(t *testing.T) {
	f := newFixture(t)
	folder := t.TempDir()
	f.cfg.Hooks = map[drover.Hook]string{
		drover.HookCreated: script(t, fmt.Sprintf("touch %[1]s/$DROVER_INSTANCE; while [ ! -e %[1]s/go ]; do sleep 0.02; done", folder)),
	}
	c := must(New(t.Context(), f.cfg))(t)
	var firing sync.WaitGroup
	for i := range hooksAtOnce + 3 {
		firing.Go(func() {
			c.fire(t.Context(), engine.Fire{Hook: drover.HookCreated, Name: fmt.Sprint("i", i), Cloud: "here"})
		})
	}
	begun := func() int { return len(must(filepath.Glob(filepath.Join(folder, "i*")))(t)) }
	for deadline := time.Now().Add(10 * time.Second); begun() < hooksAtOnce && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
	if n := begun(); n != hooksAtOnce {
		t.Errorf("%d hooks run at once, want %d", n, hooksAtOnce)
	}
	if err := os.WriteFile(filepath.Join(folder, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	firing.Wait()
	if n := begun(); n != hooksAtOnce+3 {
		t.Errorf("%d hooks ran in all, want %d", n, hooksAtOnce+3)
	}
}

// covers P4
func TestAControllerThatEndsDoesNotWaitForHooksThatHangInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Controller{hooks: make(chan struct{}, 1)}
		if !c.hookTurn(t.Context()) {
			t.Fatal("a hook waits although none runs")
		}
		ctx, end := context.WithCancel(t.Context())
		began := time.Now()
		time.AfterFunc(time.Hour, end)
		if c.hookTurn(ctx) {
			t.Error("two hooks run where one may")
		}
		if took := time.Since(began); took != time.Hour+engine.HookTime {
			t.Errorf("a hook waited %v for its turn, which ends %v after the controller's end", took, engine.HookTime)
		}
	})
}
