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
	t.Run("a command that needs more memory than it has is ended for that", func(t *testing.T) {
		if e := limited(t, hungry); e.Code == 0 || e.Cause != drover.CauseMemory || e.Text != "needed more than its 64Mi of memory" {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("one that copes with a child's want of memory has succeeded", func(t *testing.T) {
		if e := limited(t, hungry+" || exit 0"); e.Code != 0 || e.Cause != "" {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("one that kills itself did not run out of memory", func(t *testing.T) {
		if e := limited(t, "kill -9 $$"); e.Code != 137 || e.Cause != "" {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("what has left its parents and cleared its environment is killed all the same when the supervisor is", func(t *testing.T) {
		i := newInstance(t)
		c := i.connect()
		c.start(sh(id, `env -i PATH="$PATH" setsid sh -c 'echo $$ > left; exec sleep 1000' & sleep 1000`))
		pid := i.number(id, "left")
		i.kill(i.supervisor(id))
		if e := c.exited(id); e.Cause != drover.CauseLost || alive(pid) {
			t.Errorf("process %d lives: %v; got %+v", pid, alive(pid), e)
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
			t.Errorf("it was in none: %s", e.Stdout)
		}
	})
}

func TestNoRuntime(t *testing.T) {
	t.Run("an instance without docker and podman says so, and others are not tried", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		c, id := newInstance(t).connect(), attempt(1, 1)
		c.start(sh(id, "true").in("busybox"))
		e := c.exited(id)
		if e.Cause != drover.CauseImage || !strings.Contains(e.Text, "docker: it is not installed; podman: it is not installed") {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("where one is installed and does not work, another instance may run the attempt", func(t *testing.T) {
		docker(t, `echo "the daemon does not run" >&2; exit 1`)
		c, id := newInstance(t).connect(), attempt(1, 1)
		c.start(sh(id, "true").in("busybox"))
		if e := c.exited(id); e.Cause != drover.CauseNoImage || !strings.Contains(e.Text, "the daemon does not run") {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("orders that name a runtime are kept to", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		c, id := newInstance(t).connect(), attempt(1, 1)
		c.send(wire.Message{Orders: &wire.Orders{Runtime: "podman"}})
		c.start(sh(id, "true").in("busybox"))
		if e := c.exited(id); !strings.Contains(e.Text, "podman: it is not installed") || strings.Contains(e.Text, "docker: ") {
			t.Errorf("got %+v", e)
		}
	})
}

// docker installs the script as docker and hides podman. It returns the folder in which the script stands.
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
	t.Run("an attempt for which none can be made or started is lost to the instance: the job may do well elsewhere", func(t *testing.T) {
		docker(t, `case $1 in info) echo "[]";; image) echo "{}";; create) echo "no space left on device" >&2; exit 1;; esac`)
		c := newInstance(t).connect()
		c.start(sh(attempt(1, 1), "true").in("busybox"))
		if e := c.exited(attempt(1, 1)); e.Cause != drover.CauseLost || e.Code != 125 || e.Text != "creating the container: no space left on device" {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("one that hangs does not keep an attempt that is to begin in it from being stopped", func(t *testing.T) {
		dir := docker(t, `case $1 in info) echo "[]";; image) echo "{}";; create) echo >"${0%/*}/creating"; exec sleep 1000;; esac`)
		c := newInstance(t).connect()
		c.start(sh(attempt(1, 1), "true").in("busybox"))
		until(t, "its container is made", func() bool { _, err := os.Stat(dir + "/creating"); return err == nil })
		c.stop(attempt(1, 1), time.Hour)
		if e := c.exited(attempt(1, 1)); e.Cause != drover.CauseStopped || e.Code != 143 {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("one that hangs does not keep attempts that wait for it from being stopped", func(t *testing.T) {
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
		t.Run("what is no image is refused: "+image, func(t *testing.T) {
			id := attempt(int64(n+1), 1)
			c.start(sh(id, "true").in(image))
			if text := c.refused(id); !strings.Contains(text, "not a valid image name") {
				t.Errorf("got %s", text)
			}
		})
	}
	t.Run("so is a variable that no container can have", func(t *testing.T) {
		id := attempt(9, 1)
		c.start(sh(id, "true").in("busybox").withEnv("#x", ""))
		if text := c.refused(id); !strings.Contains(text, `"#x"`) {
			t.Errorf("got %s", text)
		}
	})
	t.Run("and a command of nothing without an image", func(t *testing.T) {
		id := attempt(10, 1)
		c.start(start{ID: id})
		if text := c.refused(id); !strings.Contains(text, "no command") {
			t.Errorf("got %s", text)
		}
	})
}
