package runner_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"drover"
	"drover/internal/cgroup"
	"drover/internal/wire"
)

// covers D1
func TestLimits(t *testing.T) {
	if _, err := cgroup.Find(); err != nil {
		t.Skipf("no control groups can be made here: %v", err)
	}
	const hungry = `head -c 200000000 /dev/zero | tail -c 200000000 >/dev/null`
	id := attempt(1, 1)
	limited := func(t *testing.T, script string) drover.Exit {
		c := newInstance(t).connect()
		s := sh(id, script)
		s.Limits = drover.Resources{CPU: 1000, Memory: 64 * drover.MiB}
		c.start(s)
		return c.exited(id)
	}
	t.Run("a command that exceeds its memory is reported as out of memory", func(t *testing.T) {
		if e := limited(t, hungry); e.Code == 0 || e.Cause != drover.CauseMemory || e.Text != "needed more than its 64Mi of memory" {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("a command that copes with its child's lack of memory succeeds", func(t *testing.T) {
		if e := limited(t, hungry+" || exit 0"); e.Code != 0 || e.Cause != "" {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("a command that kills itself is not reported as out of memory", func(t *testing.T) {
		if e := limited(t, "kill -9 $$"); e.Code != 137 || e.Cause != "" {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("when the supervisor is killed, even an orphan that has cleared its environment is killed", func(t *testing.T) {
		i := newInstance(t)
		c := i.connect()
		c.start(sh(id, `env -i PATH="$PATH" setsid sh -c 'echo $$ > left; exec sleep 1000' & sleep 1000`))
		pid := i.number(id, "left")
		i.kill(i.supervisor(id))
		if e := c.exited(id); e.Cause != drover.CauseLost || alive(pid) {
			t.Errorf("process %d is alive: %v; got %+v", pid, alive(pid), e)
		}
	})
	t.Run("an ended attempt leaves no control group", func(t *testing.T) {
		i := newInstance(t)
		c := i.connect()
		c.start(sh(id, `cat /proc/self/cgroup`))
		e := c.exited(id)
		for line := range strings.Lines(e.Stdout) {
			if _, path, _ := strings.Cut(line, ":/"); strings.Contains(path, "drover-lab-") {
				for _, top := range []string{"", "memory/", "cpu/"} {
					if _, err := os.Stat("/sys/fs/cgroup/" + top + strings.TrimSpace(path)); err == nil {
						t.Errorf("%s is still there", line)
					}
				}
				return
			}
		}
		if !strings.Contains(e.Stdout, "/drover-lab-") {
			t.Errorf("it ran in no control group: %s", e.Stdout)
		}
	})
}

func TestNoRuntime(t *testing.T) {
	t.Run("without docker and podman the attempt fails, and no other instance is tried", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		c, id := newInstance(t).connect(), attempt(1, 1)
		c.start(sh(id, "true").in("busybox"))
		e := c.exited(id)
		if e.Cause != drover.CauseImage || !strings.Contains(e.Text, "docker: it is not installed; podman: it is not installed") {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("if a runtime is installed but broken, another instance may run the attempt", func(t *testing.T) {
		docker(t, `echo "the daemon does not run" >&2; exit 1`)
		c, id := newInstance(t).connect(), attempt(1, 1)
		c.start(sh(id, "true").in("busybox"))
		if e := c.exited(id); e.Cause != drover.CauseNoImage || !strings.Contains(e.Text, "the daemon does not run") {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("only the runtime named in the orders is used", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		c, id := newInstance(t).connect(), attempt(1, 1)
		c.send(wire.Message{Orders: &wire.Orders{Runtime: "podman"}})
		c.start(sh(id, "true").in("busybox"))
		if e := c.exited(id); !strings.Contains(e.Text, "podman: it is not installed") || strings.Contains(e.Text, "docker: ") {
			t.Errorf("got %+v", e)
		}
	})
}

// docker installs the script as docker and hides podman. It returns the script's folder.
func docker(t *testing.T, script string) (folder string) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/docker", []byte("#!/bin/sh\nPATH=/bin:/usr/bin\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	return dir
}

// covers D12
func TestRuntimesThatFail(t *testing.T) {
	t.Run("an attempt whose container cannot be created is lost, since its job may succeed elsewhere", func(t *testing.T) {
		docker(t, `case $1 in info) echo "[]";; image) echo "{}";; create) echo "no space left on device" >&2; exit 1;; esac`)
		c := newInstance(t).connect()
		c.start(sh(attempt(1, 1), "true").in("busybox"))
		if e := c.exited(attempt(1, 1)); e.Cause != drover.CauseLost || e.Code != 125 || e.Text != "creating the container: no space left on device" {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("an attempt can be stopped while the runtime hangs creating its container", func(t *testing.T) {
		dir := docker(t, `case $1 in info) echo "[]";; image) echo "{}";; create) echo >"${0%/*}/creating"; exec sleep 1000;; esac`)
		c := newInstance(t).connect()
		c.start(sh(attempt(1, 1), "true").in("busybox"))
		until(t, "its container is being created", func() bool { _, err := os.Stat(dir + "/creating"); return err == nil })
		c.stop(attempt(1, 1), time.Hour)
		if e := c.exited(attempt(1, 1)); e.Cause != drover.CauseStopped || e.Code != 143 {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("attempts that wait for a hanging runtime can be stopped", func(t *testing.T) {
		docker(t, "exec sleep 1000")
		c := newInstance(t).connect()
		for n := range int64(3) {
			c.start(sh(attempt(n+1, 1), "true").in("busybox"))
		}
		for n := range int64(3) {
			c.stop(attempt(n+1, 1), time.Hour)
		}
		for range 3 {
			if m := c.want("an end", func(m wire.Message) bool { return m.Exited != nil }); m.Exited.Exit.Cause != drover.CauseStopped {
				t.Errorf("got %+v", m.Exited)
			}
		}
	})
}

func TestRefusedImages(t *testing.T) {
	c := newInstance(t).connect()
	for n, image := range []string{"--privileged", "-v", "a b", "https://x/y"} {
		t.Run("an invalid image name is refused: "+image, func(t *testing.T) {
			id := attempt(int64(n+1), 1)
			c.start(sh(id, "true").in(image))
			if text := c.refused(id); !strings.Contains(text, "not a valid image name") {
				t.Errorf("got %s", text)
			}
		})
	}
	t.Run("a variable that no container can have is refused", func(t *testing.T) {
		id := attempt(9, 1)
		c.start(sh(id, "true").in("busybox").withEnv("#x", ""))
		if text := c.refused(id); !strings.Contains(text, `"#x"`) {
			t.Errorf("got %s", text)
		}
	})
	t.Run("a Start with neither a command nor an image is refused", func(t *testing.T) {
		id := attempt(10, 1)
		c.start(start{ID: id})
		if text := c.refused(id); !strings.Contains(text, "no command") {
			t.Errorf("got %s", text)
		}
	})
}
