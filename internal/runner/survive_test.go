package runner_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/internal/wire"
)

// gate is a script that waits for a file named go in its working folder.
const gate = `echo ready; while [ ! -e go ]; do sleep 0.01; done; echo gone on; exit 5`

func (i *instance) openGate(id drover.AttemptID) {
	i.t.Helper()
	if err := os.WriteFile(i.attemptPath(id, "work/go"), nil, 0o600); err != nil {
		i.t.Fatal(err)
	}
}

// supervisor returns the pid of an attempt's supervisor.
func (i *instance) supervisor(id drover.AttemptID) (pid int) {
	i.t.Helper()
	until(i.t, "the attempt is claimed", func() bool {
		text, _ := os.ReadFile(i.attemptPath(id, "journal"))
		pid = pidIn(text)
		return pid > 1
	})
	return pid
}

// covers D1 D9
func TestDaemonKilled(t *testing.T) {
	t.Run("a running attempt continues, and the next daemon reports its result", func(t *testing.T) {
		i := newInstance(t)
		c, id := i.connect(), attempt(1, 1)
		c.start(sh(id, gate))
		c.started(id)
		i.kill(i.daemon())
		c.hungUp()

		c = i.connect()
		if want := []wire.Attempt{{ID: id}}; !cmp.Equal(c.hello.Attempts, want) {
			t.Fatalf("the new daemon has %+v, want %+v", c.hello.Attempts, want)
		}
		c.start(sh(id, gate))
		c.started(id)
		i.openGate(id)
		if e := c.exited(id); e.Code != 5 || e.Stdout != "ready\ngone on\n" {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("the next daemon knows an attempt that ended without a daemon", func(t *testing.T) {
		i := newInstance(t)
		c, id := i.connect(), attempt(1, 1)
		c.start(sh(id, gate))
		c.started(id)
		i.kill(i.daemon())
		i.openGate(id)
		until(t, "the result is written", func() bool {
			text, err := os.ReadFile(i.attemptPath(id, "journal"))
			return err == nil && strings.Contains(string(text), `"exit"`)
		})
		attempts := i.connect().hello.Attempts
		if len(attempts) != 1 || attempts[0].Exit == nil || attempts[0].Exit.Code != 5 {
			t.Errorf("got %+v", attempts)
		}
	})
	t.Run("an adopted attempt can be stopped", func(t *testing.T) {
		i := newInstance(t)
		c, id := i.connect(), attempt(1, 1)
		c.start(sh(id, "exec sleep 1000"))
		c.started(id)
		i.kill(i.daemon())
		c = i.connect()
		c.stop(id, time.Minute)
		if e := c.exited(id); e.Code != 143 || e.Cause != drover.CauseStopped {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("under load, killed again and again, every attempt runs exactly once", func(t *testing.T) {
		i := newInstance(t)
		counts := t.TempDir()
		const jobs = 30
		done := make(map[drover.AttemptID]bool)
		refused := make(map[drover.AttemptID]bool)
		for round := 0; len(done) < jobs; round++ {
			c := i.connect()
			// A refused attempt never started: the daemon died after it raised the fence and before a supervisor began.
			for n := int64(1); n <= jobs; n++ {
				c.start(sh(attempt(n, 1), `echo x >> `+counts+`/$DROVER_JOB; sleep 0.05`).withEnv("DROVER_JOB", attempt(n, 1).Folder()))
			}
			for range jobs {
				m := c.want("an end", func(m wire.Message) bool { return m.Exited != nil || m.Refused != nil })
				if m.Refused != nil {
					if !m.Refused.NotHere {
						t.Errorf("%v is refused permanently: %s", m.Refused.ID, m.Refused.Text)
					}
					done[m.Refused.ID], refused[m.Refused.ID] = true, true
					continue
				}
				done[m.Exited.ID] = true
				if m.Exited.Exit.Code != 0 {
					t.Errorf("%v: %+v", m.Exited.ID, m.Exited.Exit)
				}
				if round < 4 && len(done) > (round+1)*jobs/6 {
					break
				}
			}
			i.kill(i.daemon())
		}
		files, err := filepath.Glob(counts + "/*")
		if err != nil || len(files)+len(refused) < jobs {
			t.Errorf("%d attempts ran and %d were refused, of %d", len(files), len(refused), jobs)
		}
		for _, f := range files {
			if text, _ := os.ReadFile(f); string(text) != "x\n" {
				t.Errorf("%s ran %d times", filepath.Base(f), strings.Count(string(text), "x"))
			}
		}
	})
}

// covers L21
func TestSupervisorKilled(t *testing.T) {
	for name, killDaemon := range map[string]bool{"its daemon is alive": false, "its daemon is dead too": true} {
		t.Run("an attempt is lost and its processes are killed when "+name, func(t *testing.T) {
			i := newInstance(t)
			c, id := i.connect(), attempt(1, 1)
			c.start(sh(id, `echo ready; setsid sleep 1000 & echo $$ > left; sleep 1000`))
			c.started(id)
			i.awaitLine(id, "ready")
			pid := i.number(id, "left")
			if killDaemon {
				i.kill(i.daemon())
			}
			i.kill(i.supervisor(id))
			if killDaemon {
				c = i.connect()
			}
			// The new daemon may have settled it before its Hello.
			c.start(sh(id, "true"))
			e := c.exited(id)
			if e.Cause != drover.CauseLost || e.Stdout != "ready\n" || e.Text == "" {
				t.Errorf("got %+v", e)
			}
			rest := i.processes(func(p int) bool {
				return !subcommand("daemon")(p) && !subcommand("control")(p) && !subcommand("supervise")(p)
			})
			if alive(pid) || len(rest) > 0 {
				t.Errorf("its processes %v still run", rest)
			}
		})
	}
}

// covers D12
func TestSparesKilled(t *testing.T) {
	t.Run("an attempt runs even after every idle supervisor was killed", func(t *testing.T) {
		i := newInstance(t)
		c := i.connect()
		const several = 3
		for n := int64(1); n <= several; n++ {
			c.start(sh(attempt(n, 1), gate))
			c.started(attempt(n, 1))
		}
		for n := int64(1); n <= several; n++ {
			i.openGate(attempt(n, 1))
			c.exited(attempt(n, 1))
		}
		for _, pid := range i.processes(subcommand("supervise")) {
			i.kill(pid)
		}
		id := attempt(several+1, 1)
		c.start(sh(id, "echo hello"))
		if e := c.exited(id); e.Code != 0 || e.Stdout != "hello\n" {
			t.Errorf("got %+v", e)
		}
	})
}

// covers L23
func TestUpgrade(t *testing.T) {
	t.Run("a control stream from another version replaces the daemon and keeps the attempts", func(t *testing.T) {
		i := newInstance(t)
		c, id := i.connect(), attempt(1, 1)
		c.start(sh(id, gate))
		c.started(id)
		old := i.daemon()

		c2 := i.connectAs(i.install("drover-runner-two"), hello)
		c.hungUp()
		if len(c2.hello.Attempts) != 1 || alive(old) {
			t.Errorf("got %+v, old daemon alive: %v", c2.hello, alive(old))
		}
		i.openGate(id)
		if e := c2.exited(id); e.Code != 5 {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("a daemon behind a hanging predecessor exits when its bridge does", func(t *testing.T) {
		i := newInstance(t)
		if err := os.Mkdir(i.dir, 0o700); err != nil {
			t.Fatal(err)
		}
		hanging, err := os.Create(filepath.Join(i.dir, "daemon.lock"))
		if err != nil {
			t.Fatal(err)
		}
		defer hanging.Close()
		if err := syscall.Flock(int(hanging.Fd()), syscall.LOCK_EX); err != nil {
			t.Fatal(err)
		}
		i.open(i.binary, "control", "--fleet", "lab", "--instance", "lab-1")
		waiting := func() int { return len(i.processes(subcommand("daemon"))) }
		until(t, "a daemon is started", func() bool { return waiting() == 1 })
		i.kill(i.processes(subcommand("control"))[0])
		until(t, "it has ended", func() bool { return waiting() == 0 })
	})
	t.Run("concurrent streams start one daemon", func(t *testing.T) {
		i := newInstance(t)
		var channels []*channel
		for range 8 {
			channels = append(channels, i.open(i.binary, "control", "--fleet", "lab", "--instance", "lab-1"))
		}
		var answers int
		for _, ch := range channels {
			var m wire.Message
			if ch.Write(wire.Message{Hello: &hello}) == nil && ch.Read(&m) == nil && m.Hello != nil {
				answers++
			}
		}
		if i.daemon(); answers != len(channels) {
			t.Errorf("%d of %d were answered", answers, len(channels))
		}
	})
}

func TestReboot(t *testing.T) {
	t.Run("a result from an earlier boot is not trusted", func(t *testing.T) {
		i := newInstance(t)
		c, id := i.connect(), attempt(1, 1)
		c.ran(id, "true")
		i.kill(i.daemon())
		path := i.attemptPath(id, "journal")
		text, err := os.ReadFile(path)
		boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
		earlier := strings.ReplaceAll(string(text), strings.TrimSpace(string(boot)), "earlier")
		if err != nil || earlier == string(text) || os.WriteFile(path, []byte(earlier), 0o600) != nil {
			t.Fatalf("the journal has no boot id: %s", text)
		}
		c = i.connect()
		c.start(sh(id, "true"))
		if e := c.exited(id); e.Cause != drover.CauseLost {
			t.Errorf("got %+v", e)
		}
	})
}

// covers D8
func TestIsolation(t *testing.T) {
	t.Run("the command, its supervisor and the daemon have separate sessions", func(t *testing.T) {
		i := newInstance(t)
		c, id := i.connect(), attempt(1, 1)
		c.start(sh(id, "echo $$ > pid; echo ready; sleep 1000"))
		i.awaitLine(id, "ready")
		sessions := []int{session(i.number(id, "pid")), session(i.supervisor(id)), session(i.daemon())}
		slices.Sort(sessions)
		if len(slices.Compact(sessions)) != 3 {
			t.Errorf("sessions %v", sessions)
		}
	})
	t.Run("secrets in the environment reach the command, but no argument list and no file", func(t *testing.T) {
		i := newInstance(t)
		c, id := i.connect(), attempt(1, 1)
		const secret = "b5d2ce0e-not-for-others"
		c.start(sh(id, "test -n \"$DROVER_TOKEN\" && echo ready; sleep 1000").withEnv("DROVER_TOKEN", secret))
		i.awaitLine(id, "ready")
		for _, pid := range i.processes(func(int) bool { return true }) {
			if line, _ := os.ReadFile(procPath(pid, "cmdline")); strings.Contains(string(line), secret) {
				t.Errorf("process %d shows the secret", pid)
			}
		}
		err := filepath.WalkDir(i.dir, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				if text, _ := os.ReadFile(path); strings.Contains(string(text), secret) {
					t.Errorf("%s contains the secret", path)
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}
