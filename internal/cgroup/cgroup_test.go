package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"drover"
)

func TestParse(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []Base
	}{
		"version 2": {"0::/user.slice/user-0.slice/session-3.scope\n", []Base{
			unified("/sys/fs/cgroup/user.slice/user-0.slice/session-3.scope"), unified("/sys/fs/cgroup")}},
		"version 2 at the top": {"0::/\n", []Base{unified("/sys/fs/cgroup")}},
		"version 1 and hybrid": {"5:memory:/a\n3:cpu,cpuacct:/b\n1:name=systemd:/c\n0::/d\n", []Base{
			{Memory: "/sys/fs/cgroup/memory/a", CPU: "/sys/fs/cgroup/cpu/b"}}},
		"none": {"", nil},
	} {
		t.Run("groups are made in the process's own group, or at the top: "+name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, candidates(parse(c.text))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// group makes a group, and skips the test if it cannot.
func group(t *testing.T, limits drover.Resources) *Group {
	b, err := Find()
	if err != nil {
		t.Skipf("no control groups can be made here: %v", err)
	}
	g := b.Group(fmt.Sprintf("drover-test-%d", os.Getpid()))
	if err := g.Make(limits); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Remove(10 * time.Second) })
	return g
}

// run runs a shell script in the group to its end.
func (g *Group) run(t *testing.T, script string) syscall.WaitStatus {
	attr := &syscall.SysProcAttr{}
	pid, err := g.Enter(attr, func() (int, error) {
		return syscall.ForkExec("/bin/sh", []string{"sh", "-c", script}, &syscall.ProcAttr{Env: os.Environ(), Sys: attr, Files: []uintptr{0, 1, 2}})
	})
	if err != nil {
		t.Fatal(err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil {
		t.Fatal(err)
	}
	return status
}

// hungry is a script that needs 200 MiB.
const hungry = `head -c 200000000 /dev/zero | tail -c 200000000 >/dev/null`

func TestMemory(t *testing.T) {
	g := group(t, drover.Resources{Memory: 32 * drover.MiB})
	t.Run("a process within the limit is left alone", func(t *testing.T) {
		if status := g.run(t, "exit 3"); status.ExitStatus() != 3 {
			t.Errorf("got %v", status)
		}
		if n, err := g.OutOfMemory(); n != 0 || err != nil {
			t.Errorf("%d processes were killed, %v", n, err)
		}
	})
	t.Run("a process that needs more is killed, and counted", func(t *testing.T) {
		if status := g.run(t, hungry); status.ExitStatus() == 0 {
			t.Errorf("got %v", status)
		}
		if n, err := g.OutOfMemory(); n == 0 || err != nil {
			t.Errorf("%d processes were killed, %v", n, err)
		}
	})
}

func TestCPU(t *testing.T) {
	t.Run("a process gets no more CPU time than its share", func(t *testing.T) {
		g := group(t, drover.Resources{CPU: 200})
		began, before := time.Now(), usedByChildren(t)
		g.run(t, `i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done`)
		cpu, wall := usedByChildren(t)-before, time.Since(began)
		if cpu > wall/2 {
			t.Errorf("it used %v of CPU time in %v", cpu, wall)
		}
	})
}

// usedByChildren returns the CPU time of all child processes that have been waited for.
func usedByChildren(t *testing.T) time.Duration {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_CHILDREN, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// covers D13
func TestRemove(t *testing.T) {
	t.Run("a process left in a group is killed, even if its parent and its environment are gone", func(t *testing.T) {
		g := group(t, drover.Resources{})
		g.run(t, `env -i setsid sleep 1000 </dev/null >/dev/null 2>&1 & sleep 0.1`)
		if err := g.Remove(10 * time.Second); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(g.memory); err == nil {
			t.Error("the group is still there")
		}
	})
	t.Run("so is a process in a subgroup that it made itself, as container runtimes do", func(t *testing.T) {
		g := group(t, drover.Resources{})
		inner := filepath.Join(g.memory, "inner", "innermost")
		g.run(t, `mkdir -p `+inner+`; (echo 0 > `+inner+`/cgroup.procs; exec sleep 1000) </dev/null >/dev/null 2>&1 & sleep 0.1`)
		if text, err := os.ReadFile(inner + "/cgroup.procs"); len(text) == 0 || err != nil {
			t.Fatalf("its own group holds %q, %v", text, err)
		}
		if err := g.Remove(10 * time.Second); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(g.memory); err == nil {
			t.Error("the group is still there")
		}
	})
	t.Run("an abandoned group is swept once it is old, unless it holds a process", func(t *testing.T) {
		g := group(t, drover.Resources{})
		name := filepath.Base(g.memory)
		g.base.Sweep(name, time.Now().Add(-time.Hour))
		if _, err := os.Stat(g.memory); err != nil {
			t.Error("a young group is gone")
		}
		g.run(t, `sleep 1000 </dev/null >/dev/null 2>&1 &`)
		g.base.Sweep(name, time.Now().Add(time.Hour))
		if _, err := os.Stat(g.memory); err != nil {
			t.Error("a group with a process is gone")
		}
		kill(g.memory)
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
			g.base.Sweep(name, time.Now().Add(time.Hour))
			if _, err := os.Stat(g.memory); err != nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("an empty group stays")
			}
		}
	})
	t.Run("removing a missing group is no error", func(t *testing.T) {
		if err := (Base{Memory: t.TempDir(), CPU: t.TempDir()}).Group("none").Remove(0); err != nil {
			t.Error(err)
		}
	})
}
