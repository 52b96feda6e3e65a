package runner_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drover"
	"drover/internal/cgroup"
	"drover/internal/deadman"
	"drover/internal/wire"
)

// connectApart connects to an instance whose attempts must be isolated.
func (i *instance) connectApart() *controller {
	i.t.Helper()
	i.env = append(i.env, wire.ApartVariable+"=1")
	h := hello
	h.Apart = true
	c := i.connectAs(i.binary, h)
	if c.hello.Error != "" {
		i.t.Fatal(c.hello.Error)
	}
	return c
}

// apart returns the Start of an isolated attempt.
func apart(id drover.AttemptID, script string) start {
	s := sh(id, script)
	s.Apart, s.Limits = true, drover.Resources{CPU: 1000, Memory: 64 * drover.MiB}
	return s
}

// TestApart needs root, as isolation does.
func TestApart(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can isolate attempts")
	}
	if _, err := cgroup.Find(); err != nil {
		t.Skipf("no control groups can be made here: %v", err)
	}
	one, two := attempt(1, 1), attempt(2, 1)
	t.Run("a job cannot read, signal or see another user's job", func(t *testing.T) {
		i := newInstance(t)
		c := i.connectApart()
		victim := apart(one, `echo s3cret >secret; echo s3cret >/tmp/secret; trap 'echo hit' TERM INT HUP USR1; id -u; `+gate)
		victim.Env = map[string]string{"DROVER_TOKEN": "s3cret"}
		c.start(victim)
		i.awaitLine(one, "ready")
		pid := i.supervisor(one)
		c.start(apart(two, fmt.Sprintf(`id -u
for p in /proc/[0-9]*; do cat $p/environ $p/cmdline; done 2>/dev/null | grep -c 's3cre[t]'
cat /tmp/secret %s %s %s %s 2>/dev/null | wc -c
ls /proc | grep -c '^[0-9]'
kill -9 %d 2>/dev/null && echo killed the supervisor
kill -9 -1
echo done`, i.attemptPath(one, "work/secret"), i.attemptPath(one, "journal"), i.dir+"/daemon.log", "/etc/shadow", pid)))
		e := c.exited(two)
		said := strings.Fields(e.Stdout)
		if len(said) < 4 || said[0] == "0" || said[1] != "0" || said[2] != "0" || said[len(said)-1] != "done" || strings.Contains(e.Stdout, "killed the") {
			t.Errorf("got %+v", e)
		}
		i.openGate(one)
		if e := c.exited(one); e.Code != 5 || strings.Contains(e.Stdout, "hit") || strings.HasPrefix(e.Stdout, said[0]+"\n") {
			t.Errorf("the first attempt's exit is %+v, and the second ran as user %s", e, said[0])
		}
	})
	t.Run("a job has its folder, its output and a home, and cannot become another user", func(t *testing.T) {
		i := newInstance(t)
		c := i.connectApart()
		c.start(apart(one, `cd "$HOME" && pwd && echo made >made && echo again >/dev/stdout && grep NoNewPrivs /proc/self/status && [ -w /tmp ] && [ -w . ] && [ ! -w "$DROVER_NOTICE_FILE" ]`))
		if e := c.exited(one); e.Code != 0 || !strings.Contains(e.Stdout, "NoNewPrivs:\t1") {
			t.Errorf("got %+v", e)
		}
		if made, err := os.ReadFile(i.attemptPath(one, "work/made")); err != nil || string(made) != "made\n" {
			t.Errorf("got %q, %v", made, err)
		}
	})
	t.Run("the number of its processes is limited", func(t *testing.T) {
		c := newInstance(t).connectApart()
		c.start(apart(one, "ulimit -u 2>/dev/null || ulimit -p"))
		if e := c.exited(one); e.Stdout != "8192\n" {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("a stopped job chooses its exit code or is killed", func(t *testing.T) {
		i := newInstance(t)
		c := i.connectApart()
		c.start(apart(one, `trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.02; done`))
		i.awaitLine(one, "ready")
		c.stop(one, time.Minute)
		if e := c.exited(one); e.Code != 7 || e.Cause != drover.CauseStopped || e.Stdout != "ready\nbye\n" {
			t.Errorf("got %+v", e)
		}
		c.start(apart(two, `trap '' TERM; echo ready; while :; do sleep 0.02; done`))
		i.awaitLine(two, "ready")
		c.stop(two, 100*time.Millisecond)
		if e := c.exited(two); e.Code != 137 || e.Cause != drover.CauseStopped {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("exits are reported as for any other job", func(t *testing.T) {
		c := newInstance(t).connectApart()
		for script, want := range map[string]drover.Exit{
			"exit 3":        {Code: 3},
			"kill -9 $$":    {Code: 137, Signal: "killed"},
			"kill -TERM $$": {Code: 143, Signal: "terminated"},
			`head -c 200000000 /dev/zero | tail -c 200000000 >/dev/null`: {Code: 137, Cause: drover.CauseMemory},
		} {
			two.Number++
			c.start(apart(two, script))
			if e := c.exited(two); e.Code != want.Code || e.Cause != want.Cause || want.Signal != "" && e.Signal != want.Signal {
				t.Errorf("%s: got %+v", script, e)
			}
		}
		s := apart(one, "")
		s.Command = []string{"there-is-none"}
		c.start(s)
		if e := c.exited(one); e.Code != 127 || e.Cause != drover.CauseNoStart {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("a job outlives its daemon, but no process of it outlives its supervisor", func(t *testing.T) {
		i := newInstance(t)
		c := i.connectApart()
		c.start(apart(one, gate))
		c.started(one)
		i.kill(i.daemon())
		c = i.connectApart()
		i.openGate(one)
		if e := c.exited(one); e.Code != 5 {
			t.Errorf("got %+v", e)
		}
		c.start(apart(two, "setsid sleep 1000 & echo ready; sleep 1000"))
		i.awaitLine(two, "ready")
		i.kill(i.supervisor(two))
		if e := c.exited(two); e.Cause != drover.CauseLost {
			t.Errorf("got %+v", e)
		}
		until(t, "none of its processes runs", func() bool {
			return len(i.processes(func(pid int) bool {
				line, _ := os.ReadFile(procPath(pid, "cmdline"))
				return strings.Contains(string(line), "1000")
			})) == 0
		})
	})
	t.Run("another user's file in its folder is not sent as output", func(t *testing.T) {
		i := newInstance(t)
		c := i.connectApart()
		s := apart(one, "echo mine >mine; "+gate)
		s.Outputs = []string{"*"}
		c.start(s)
		c.started(one)
		if err := os.WriteFile(i.attemptPath(one, "work/foreign"), []byte("root's"), 0o600); err != nil {
			t.Fatal(err)
		}
		i.openGate(one)
		c.exited(one)
		got, r := i.bulk().outputs(one)
		if got["mine"] != "mine\n" || got["foreign"] != "" || got["go"] != "" || len(r.LeftOut) != 2 {
			t.Errorf("got %q, left out %q", got, r.LeftOut)
		}
	})
	t.Run("a job cannot take others' tokens by listening on the API's port", func(t *testing.T) {
		i := newInstance(t)
		c := i.connectApart()
		c.start(apart(one, `echo $DROVER_API`))
		if e := c.exited(one); len(e.Stdout) < 18 || len(e.Stdout) > len("http://127.0.0.1:1023\n") {
			t.Errorf("DROVER_API is %q, a port that any user may listen on", e.Stdout)
		}
	})
	t.Run("the job gets its variables, but its first process, which is root, gets none of them", func(t *testing.T) {
		i := newInstance(t)
		c := i.connectApart()
		s := apart(one, `echo "$MINE $LD_PRELOAD"; `+gate)
		s.Env = map[string]string{"MINE": "m1ne", "LD_PRELOAD": "./none.so"}
		c.start(s)
		c.started(one)
		for _, pid := range i.processes(subcommand("apart")) {
			if environ, _ := os.ReadFile(procPath(pid, "environ")); strings.Contains(string(environ), "m1ne") {
				t.Errorf("the first process has %q", environ)
			}
		}
		i.openGate(one)
		if e := c.exited(one); !strings.HasPrefix(e.Stdout, "m1ne ./none.so\n") {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("a job cannot power the instance off through its dead-man switch", func(t *testing.T) {
		i := newInstance(t)
		file := filepath.Join(t.TempDir(), "switch")
		if err := errors.Join(os.WriteFile(file, nil, 0o666), os.Chmod(file, 0o666)); err != nil {
			t.Fatal(err)
		}
		i.env = append(i.env, deadman.FileVariable+"="+file)
		i.connectApart()
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("its mode is %v (%v)", info.Mode(), err)
		}
	})
	t.Run("a runner refuses if others can read its folder", func(t *testing.T) {
		i := newInstance(t)
		i.connect()
		if err := os.Chmod(i.dir, 0o755); err != nil {
			t.Fatal(err)
		}
		h := hello
		h.Apart = true
		if c := i.connectAs(i.binary, h); !strings.Contains(c.hello.Error, "is not private to root") || !c.hello.Unfit {
			t.Errorf("got %+v", c.hello)
		}
	})
}
