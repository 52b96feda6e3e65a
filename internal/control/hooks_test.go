package control

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"drover"
	"drover/driver"
	"drover/internal/engine"
	"drover/internal/store"
	"drover/internal/webhook"
)

// script writes a shell script and returns its path.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hook")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// recordEvent records an event as a decision would.
func recordEvent(t *testing.T, c *Controller, effect int64, f engine.Fire) {
	t.Helper()
	if err := c.cfg.Store.Commit(t.Context(), c.withHooks([]engine.Write{{Hook: &engine.HookRow{Effect: effect, Fire: f}}})); err != nil {
		t.Fatal(err)
	}
}

// fires records an event and runs hooks until none is due.
func fires(t *testing.T, c *Controller, f engine.Fire) {
	t.Helper()
	recordEvent(t, c, 1, f)
	for {
		due := must(c.cfg.Store.Hooks(t.Context(), c.clock.now(), 10))(t)
		for _, h := range due {
			c.runRow(t.Context(), h)
		}
		if len(due) == 0 {
			return
		}
	}
}

// covers D21 P4
func TestAHookGetsItsInstanceAndItsOutputIsLogged(t *testing.T) {
	t.Setenv("NAME", "inherited")
	t.Setenv("PROJECT", "inherited")
	f := newFixture(t)
	f.cfg.Clouds[0].Driver = ofProject{f.cfg.Clouds[0].Driver}
	var log strings.Builder
	f.cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	var ran hookRuns
	f.cfg.Observer = &ran
	f.cfg.Hooks = map[drover.Hook]string{
		drover.HookBroken: script(t, `echo "$DROVER_HOOK $DROVER_FLEET $DROVER_CLOUD $DROVER_ZONE $DROVER_POOL $DROVER_INSTANCE $DROVER_PROVIDER_ID, $PROJECT $ZONE $NAME: $DROVER_REASON"; exit 3`),
	}
	c := must(New(t.Context(), f.cfg))(t)
	fire := engine.Fire{Hook: drover.HookBroken, Name: "test-1", Cloud: "here", Zone: "z", Pool: "web", Prefix: "w-", ProviderID: "i-1", Reason: drover.Reason{Text: "it burns"}}
	fires(t, c, fire)
	fire.Hook = drover.HookCreated
	fires(t, c, fire)
	for _, want := range []string{`said="broken test here z web test-1 i-1, acme z w-test-1: it burns"`, "exit status 3"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, &log)
		}
	}
	if strings.Contains(log.String(), "hook=created") {
		t.Errorf("a hook that is not configured ran:\n%s", &log)
	}
	if want := []string{"broken: exit status 3"}; !slices.Equal(ran.all, want) {
		t.Errorf("the runs %q were counted, want %q", ran.all, want)
	}
}

// ofProject is a cloud with a project.
type ofProject struct{ driver.Cloud }

func (o ofProject) Capabilities() driver.Capabilities {
	can := o.Cloud.Capabilities()
	can.Project = "acme"
	return can
}

// hookRuns is an Observer of hooks.
type hookRuns struct {
	unobserved
	all []string
}

func (r *hookRuns) HookRan(hook drover.Hook, failure error) {
	r.all = append(r.all, fmt.Sprintf("%s: %v", hook, failure))
}

// covers P4
func TestTheEngineLearnsThatABrokenInstancesHookHasEnded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	done := filepath.Join(t.TempDir(), "done")
	f.cfg.Hooks = map[drover.Hook]string{drover.HookBroken: script(t, "sleep 0.1; touch "+done)}
	c := must(New(t.Context(), f.cfg))(t)
	c.events = make(chan engine.Event, 1)
	fire := engine.Fire{Hook: drover.HookBroken, Instance: 3, Cloud: "here"}
	recordEvent(t, c, 7, fire)
	go c.runHooks(t.Context())
	c.do(t.Context(), engine.Effect{ID: 7, Fire: &fire})
	if got := (<-c.events).Body; got != (engine.Fired{Effect: 7, Instance: 3}) {
		t.Errorf("the engine got %+v", got)
	}
	if _, err := os.Stat(done); err != nil {
		t.Errorf("the hook had not ended: %v", err)
	}
}

func TestAHookOfAGoneInstanceGetsItsLastAddress(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.cfg.Clouds[0].SSH.Port = 22
	c := must(New(t.Context(), f.cfg))(t)
	cl := must(c.cloud("here"))(t)
	cl.replace(map[string]driver.Instance{"i-1": {ID: "i-1", Addresses: driver.Addresses{Private: "10.0.0.7"}}})
	cl.replace(nil)
	c.setup.Hooks = map[drover.Hook]string{drover.HookDestroyed: "/bin/true"}
	rows := c.hookRows(engine.HookRow{Fire: engine.Fire{Hook: drover.HookDestroyed, Cloud: "here", ProviderID: "i-1"}})
	if env := c.hookEnv(*rows[0].Hook); !slices.Contains(env, "DROVER_ADDRESS=10.0.0.7:22") {
		t.Errorf("the hook's environment ends with %v", env[len(env)-12:])
	}
}

// covers P4
func TestAHookIsKilledWithAllItsProcesses(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var child string
	err := runHook(ctx, script(t, "sleep 1000 & echo $!; wait"), os.Environ(), func(line string) {
		child = line
		cancel()
	})
	if err == nil {
		t.Error("a killed hook returned no error")
	}
	for deadline := time.Now().Add(10 * time.Second); processLives(child); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("process %s, started by the hook, is still alive", child)
		}
	}
}

// processLives reports whether a process exists and is not a zombie.
func processLives(pid string) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func TestAHookWithEndlessOutputIsCutShortInTheLogButNotBlocked(t *testing.T) {
	var lines int
	if err := runHook(t.Context(), script(t, "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done"), os.Environ(), func(string) { lines++ }); err != nil {
		t.Fatal(err)
	}
	if lines != hookLines {
		t.Errorf("%d lines were reported, want %d", lines, hookLines)
	}
}

// covers P4
func TestHooksRunningAtOnceAreLimited(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	folder := t.TempDir()
	f.cfg.Hooks = map[drover.Hook]string{
		drover.HookCreated: script(t, fmt.Sprintf("touch %[1]s/$DROVER_INSTANCE; while [ ! -e %[1]s/go ]; do sleep 0.02; done", folder)),
	}
	c := must(New(t.Context(), f.cfg))(t)
	for i := range hooksAtOnce + 3 {
		recordEvent(t, c, int64(i+1), engine.Fire{Hook: drover.HookCreated, Name: fmt.Sprint("i", i), Cloud: "here"})
	}
	ctx, end := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { c.runHooks(ctx) })
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
	end() // hooks that are due still run
	running.Wait()
	if n := begun(); n != hooksAtOnce+3 {
		t.Errorf("%d hooks ran in all, want %d", n, hooksAtOnce+3)
	}
}

// covers P4
func TestAHookRunsAgainUntilItsRunIsRecorded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	told := filepath.Join(t.TempDir(), "told")
	f.cfg.Hooks = map[drover.Hook]string{drover.HookReady: script(t, "echo $DROVER_EVENT $DROVER_INSTANCE $DROVER_POOL >>"+told)}
	first := must(New(t.Context(), f.cfg))(t)
	recordEvent(t, first, 1, engine.Fire{Hook: drover.HookReady, Name: "a", Cloud: "here", Pool: "web"})
	h := must(first.cfg.Store.Hooks(t.Context(), first.clock.now(), 10))(t)[0]
	first.runScript(t.Context(), h.HookRow, f.cfg.Hooks[drover.HookReady]) // then the controller is killed

	second := must(New(t.Context(), f.cfg))(t)
	ctx, end := context.WithCancel(t.Context())
	end()
	second.runHooks(ctx)
	lines := strings.Split(strings.TrimSpace(string(must(os.ReadFile(told))(t))), "\n")
	if len(lines) != 2 || lines[0] != lines[1] || !strings.HasSuffix(lines[0], " a web") {
		t.Errorf("the hook got %q, want the same event twice", lines)
	}
	if left := must(second.cfg.Store.Hooks(t.Context(), second.clock.now(), 10))(t); len(left) > 0 {
		t.Errorf("still to be run: %+v", left)
	}
}

// covers P4
func TestAHookWhoseRunCannotBeRecordedIsNotRepeatedAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	told := filepath.Join(t.TempDir(), "told")
	f.cfg.Hooks = map[drover.Hook]string{drover.HookReady: script(t, "echo ran >>"+told)}
	c := must(New(t.Context(), f.cfg))(t)
	recordEvent(t, c, 1, engine.Fire{Hook: drover.HookReady, Name: "a", Cloud: "here"})
	other := must(store.Open(t.Context(), filepath.Join(filepath.Dir(filepath.Dir(f.logs)), "drover.db")))(t)
	defer other.Close()
	must(other.Begin(t.Context(), f.cfg.Fleet))(t) // from now on, the first controller may not write
	ctx, end := context.WithCancel(t.Context())
	time.AfterFunc(500*time.Millisecond, end)
	c.runHooks(ctx)
	if n := strings.Count(string(must(os.ReadFile(told))(t)), "ran"); n == 0 || n > 3 {
		t.Errorf("the hook ran %d times", n)
	}
}

// covers P4
func TestAURLGetsSignedEventsInOrderAndRetriesAfterFailures(t *testing.T) {
	t.Parallel()
	type message struct {
		signature string
		body      hookMessage
	}
	told := make(chan message, 10)
	fails := 1
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m := message{signature: r.Header.Get(webhook.SignatureHeader)}
		_ = json.NewDecoder(r.Body).Decode(&m.body)
		told <- m
		if fails--; fails >= 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer s.Close()
	f := newFixture(t)
	f.cfg.Notify.Secret = drover.NewSecret("s3cret")
	f.cfg.Pools = map[string]Pool{"web": {Hooks: map[drover.Hook]string{drover.HookReady: s.URL, drover.HookDestroyed: s.URL}}}
	c := must(New(t.Context(), f.cfg))(t)
	recordEvent(t, c, 1, engine.Fire{Hook: drover.HookReady, Name: "a", Prefix: "web-", Cloud: "here", Pool: "web"})
	recordEvent(t, c, 2, engine.Fire{Hook: drover.HookDestroyed, Name: "a", Prefix: "web-", Cloud: "here", Pool: "web"})
	ctx, end := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { c.runHooks(ctx) })
	var all []message
	for range 3 {
		select {
		case m := <-told:
			all = append(all, m)
		case <-time.After(20 * time.Second):
			t.Fatalf("only %+v arrived", all)
		}
	}
	end()
	running.Wait()
	for i, want := range []drover.Hook{drover.HookReady, drover.HookReady, drover.HookDestroyed} {
		if m := all[i]; m.body.Hook != want || m.body.Pool != "web" || m.body.Name != "web-a" || !strings.HasPrefix(m.signature, "t=") {
			t.Errorf("message %d is %+v, want %s, signed", i, m, want)
		}
	}
	if all[0].body.Event != all[1].body.Event || all[0].body.Event == all[2].body.Event {
		t.Errorf("the events are %q, %q and %q", all[0].body.Event, all[1].body.Event, all[2].body.Event)
	}
}
