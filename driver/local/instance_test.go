package local_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/crypto/ssh"

	"drover"
	"drover/driver/drivertest"
)

// pidOf returns the instance's own process.
func (w *world) pidOf(name string) int {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(w.folder, "fleet", name, "pid"))
	drivertest.Must(w.t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	drivertest.Must(w.t, err)
	return pid
}

// guestOf returns the guest's process, the parent of everything that runs in the instance.
func guestOf(t *testing.T, client *ssh.Client) int {
	t.Helper()
	pid, err := strconv.Atoi(run(t, client, "echo $PPID"))
	drivertest.Must(t, err)
	return pid
}

// daemon starts a process that leaves its session and so outlives the login.
func daemon(t *testing.T, client *ssh.Client, command string) int {
	t.Helper()
	run(t, client, "setsid "+command+" >/dev/null 2>&1 </dev/null & echo $! >daemon; true")
	var pid int
	until(t, "the daemon runs", func() bool {
		fmt.Sscan(run(t, client, "cat daemon"), &pid)
		return pid > 0 && running(pid)
	})
	return pid
}

func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func TestDestroyWithADamagedPIDFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	in := w.create("one")
	pid := w.pidOf("one")
	w.login(in)
	drivertest.Must(t, os.WriteFile(filepath.Join(w.folder, "fleet", "one", "pid"), []byte("?"), 0o600))
	drivertest.Must(t, w.cloud.Destroy(t.Context(), in.ID))
	if running(pid) || len(w.list()) > 0 {
		t.Errorf("process %d runs: %t; listed: %v", pid, running(pid), w.list())
	}
}

func TestDeath(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(t *testing.T, w *world, client *ssh.Client)
	}{
		{"killing the outer process ends the instance's processes", func(t *testing.T, w *world, _ *ssh.Client) { kill(t, w.pidOf("one")) }},
		{"killing the guest ends the instance's processes", func(t *testing.T, _ *world, c *ssh.Client) { kill(t, guestOf(t, c)) }},
		{"powering off from inside ends the instance's processes", func(t *testing.T, _ *world, c *ssh.Client) {
			s, err := c.NewSession()
			drivertest.Must(t, err)
			s.Run("poweroff")
		}},
		{"removing the instance's folder ends its processes", func(t *testing.T, w *world, _ *ssh.Client) {
			drivertest.Must(t, os.RemoveAll(filepath.Join(w.folder, "fleet", "one")))
		}},
		{"destroying the instance ends its processes", func(t *testing.T, w *world, _ *ssh.Client) {
			drivertest.Must(t, w.cloud.Destroy(t.Context(), w.list()[0].ID))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "")
			client := w.login(w.create("one"))
			pid := daemon(t, client, "sleep 1000")
			tt.end(t, w, client)
			until(t, "the daemon is gone before any list", func() bool { return !running(pid) })
			until(t, "the instance is no longer listed", func() bool { return len(w.list()) == 0 })
			if left, err := os.ReadDir(filepath.Join(w.folder, "fleet")); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}

	t.Run("a process that outlives both is ended before the instance is gone", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "")
		client := w.login(w.create("one"))
		pid := daemon(t, client, "sleep 1000")
		// A stopped guest cannot clean up, and neither can a dead outer process.
		guest := guestOf(t, client)
		drivertest.Must(t, syscall.Kill(guest, syscall.SIGSTOP))
		kill(t, w.pidOf("one"))
		if got := len(w.list()); got != 1 {
			t.Errorf("%d instances are listed while the guest lives", got)
		}
		kill(t, guest)
		until(t, "the instance is no longer listed", func() bool { return len(w.list()) == 0 })
		if running(pid) {
			t.Error("the instance is gone, but its daemon still runs")
		}
	})

	t.Run("a folder without processes is not listed and is removed", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "")
		half := filepath.Join(w.folder, "fleet", "half", "home")
		drivertest.Must(t, os.MkdirAll(half, 0o700))
		if got := w.list(); len(got) > 0 {
			t.Errorf("listed: %v", got)
		}
		if _, err := os.Stat(half); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the folder is still there: %v", err)
		}
		w.create("half")
	})
}

func TestSession(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "/run/user/1")
	w := newWorld(t, "")
	in := w.create("one")
	client := w.login(in)
	session := func(t *testing.T) *ssh.Session {
		t.Helper()
		s, err := client.NewSession()
		drivertest.Must(t, err)
		t.Cleanup(func() { s.Close() })
		return s
	}
	home := filepath.Join(w.folder, "fleet", "one", "home")

	t.Run("a command starts in the instance's home", func(t *testing.T) {
		if got, want := run(t, client, "pwd; echo $HOME"), home+"\n"+home; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
	t.Run("a command has the user's runtime folder, as after a login", func(t *testing.T) {
		if got := run(t, client, `printf %s "$XDG_RUNTIME_DIR"`); got != "/run/user/1" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("the client gets the exit code", func(t *testing.T) {
		var exit *ssh.ExitError
		if err := session(t).Run("exit 7"); !errors.As(err, &exit) || exit.ExitStatus() != 7 {
			t.Errorf("got %v", err)
		}
	})
	t.Run("the client gets the signal that ended a command", func(t *testing.T) {
		var exit *ssh.ExitError
		if err := session(t).Run("kill -TERM $$"); !errors.As(err, &exit) || exit.Signal() != "TERM" {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a signal reaches the command", func(t *testing.T) {
		s := session(t)
		out, err := s.StdoutPipe()
		drivertest.Must(t, err)
		drivertest.Must(t, s.Start("trap 'exit 9' USR1; echo ready; while :; do sleep 0.01; done"))
		if _, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
			t.Fatal(err)
		}
		drivertest.Must(t, s.Signal(ssh.SIGUSR1))
		var exit *ssh.ExitError
		if err := s.Wait(); !errors.As(err, &exit) || exit.ExitStatus() != 9 {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a shell reads its commands from standard input", func(t *testing.T) {
		s := session(t)
		s.Stdin = strings.NewReader("echo from the shell\n")
		var out strings.Builder
		s.Stdout = &out
		if err := errors.Join(s.Shell(), s.Wait()); err != nil || out.String() != "from the shell\n" {
			t.Errorf("got %q, %v", out.String(), err)
		}
	})
	t.Run("there is no terminal", func(t *testing.T) {
		if err := session(t).RequestPty("xterm", 24, 80, nil); err == nil {
			t.Error("a terminal was granted")
		}
	})
	t.Run("clients may add a limited number of variables and replace none", func(t *testing.T) {
		s := session(t)
		drivertest.Must(t, errors.Join(s.Setenv("GREETING", "hello"), s.Setenv("HOME", "/")))
		if got, err := s.Output("echo $GREETING $HOME"); err != nil || string(got) != "hello "+home+"\n" {
			t.Errorf("got %q, %v", got, err)
		}
		s = session(t)
		for i := range 100 {
			drivertest.Must(t, s.Setenv(fmt.Sprintf("V%d", i), "v"))
		}
		if err := s.Run("true"); err == nil {
			t.Error("a hundred variables were accepted")
		}
	})
	t.Run("large streams are complete in both directions", func(t *testing.T) {
		const total = 64 << 20
		s := session(t)
		s.Stdin = io.LimitReader(zeros{}, total)
		var got count
		s.Stdout = &got
		if err := s.Run("cat"); err != nil || got != total {
			t.Errorf("got %d of %d bytes, %v", got, total, err)
		}
	})
	t.Run("closing a session ends its command but not a daemon", func(t *testing.T) {
		stays := daemon(t, client, "sleep 1000")
		s := session(t)
		out, err := s.StdoutPipe()
		drivertest.Must(t, err)
		drivertest.Must(t, s.Start("exec 2>/dev/null; trap 'touch hung-up; exit' HUP; echo $$; while :; do sleep 0.01; done"))
		var goes int
		if _, err := fmt.Fscan(out, &goes); err != nil {
			t.Fatal(err)
		}
		s.Close()
		until(t, "the command is gone", func() bool { return !running(goes) })
		if _, err := os.Stat(filepath.Join(home, "hung-up")); err != nil {
			t.Errorf("the command did not get the hang-up: %v", err)
		}
		if !running(stays) {
			t.Error("the daemon ended with another session")
		}
	})
	t.Run("a command that ignores the hang-up is killed when its connection drops", func(t *testing.T) {
		other, err := w.dial(in)
		drivertest.Must(t, err)
		s, err := other.NewSession()
		drivertest.Must(t, err)
		out, err := s.StdoutPipe()
		drivertest.Must(t, err)
		drivertest.Must(t, s.Start("trap '' HUP; echo $$; exec sleep 1002"))
		var pid int
		if _, err := fmt.Fscan(out, &pid); err != nil {
			t.Fatal(err)
		}
		other.Close()
		until(t, "the command is gone", func() bool { return !running(pid) })
	})
	t.Run("orphaned processes are reaped", func(t *testing.T) {
		run(t, client, "mkfifo gate")
		pid := daemon(t, client, "cat gate")
		run(t, client, ": >gate")
		until(t, "nothing is left of the daemon, not even a zombie", func() bool {
			_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
			return err != nil
		})
	})
}

func TestInit(t *testing.T) {
	t.Run("the init command runs, and its text is in no argument list", func(t *testing.T) {
		w := newWorld(t, "")
		r := w.request("one")
		r.Init = drover.NewSecret("tr '\\0' ' ' </proc/$$/cmdline >cmdline; : a secret; echo done >result")
		in, _ := drivertest.Create(t, w.cloud, r)
		client := w.login(in)
		until(t, "the command is done", func() bool { return run(t, client, "cat result 2>/dev/null; true") == "done" })
		if got := run(t, client, "cat cmdline"); strings.Contains(got, "secret") || got == "" {
			t.Errorf("the command line is %q", got)
		}
	})
}

func TestSecrets(t *testing.T) {
	t.Run("the folder and the environment contain no private key", func(t *testing.T) {
		w := newWorld(t, "")
		client := w.login(w.create("one"))
		if found := run(t, client, "env; grep -rl 'PRIVATE KEY' .. ; true"); strings.Contains(found, "PRIVATE") {
			t.Errorf("found: %s", found)
		}
		if found := run(t, client, "find .. -type f -perm /077; find .. -type d -perm /077"); found != "" {
			t.Errorf("other users can access: %s", found)
		}
	})
}

// zeros is an endless stream.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// count is how much was written to it.
type count int64

func (c *count) Write(p []byte) (int, error) { *c += count(len(p)); return len(p), nil }
