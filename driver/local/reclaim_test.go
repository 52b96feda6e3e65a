package local_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"drover"
	"drover/driver"
	"drover/driver/drivertest"
)

// covers D12
func TestReclaim(t *testing.T) {
	t.Run("an instance gets a notice, is taken back, and stays listed until destroyed", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "faults: {reclaim: {after: 50ms, notice: 3s}}") // a login and a process must fit in it on a busy host
		client := w.login(w.create("one"))
		pid := daemon(t, client, "sleep 1000")
		file := run(t, client, `printf %s "$DROVER_NOTICES"`)
		var n drover.Notice
		until(t, "the notice arrives", func() bool {
			text, err := os.ReadFile(file)
			return err == nil && json.Unmarshal(text, &n) == nil
		})
		if left := time.Until(n.Deadline.Std()); n.Cause == "" || left > 3*time.Second {
			t.Errorf("the notice is %+v, due in %v", n, left)
		}
		if in := w.list()[0]; !in.Reclaimed || in.State != driver.Running {
			t.Errorf("after the notice it is listed as %+v", in)
		}
		until(t, "its processes are gone", func() bool { return !running(pid) })
		until(t, "it is listed as stopped", func() bool { return w.list()[0].State == driver.Stopped })
		in := w.list()
		if len(in) != 1 || !in[0].Reclaimed {
			t.Fatalf("once taken back it is listed as %+v", in)
		}
		if in, err := w.describe("one"); err != nil || !in.Reclaimed || in.State != driver.Stopped {
			t.Errorf("once taken back it is described as %+v, %v", in, err)
		}
		if again := w.create("one"); again.State != driver.Stopped {
			t.Errorf("repeating the create made another instance: %+v", again)
		}
		if err := w.cloud.SetTags(t.Context(), in[0].ID, map[string]string{driver.TagFleet: "fleet", driver.TagIdle: "hold"}); err != nil || w.list()[0].Tags[driver.TagIdle] != "hold" {
			t.Errorf("its tags are %v, %v", w.list()[0].Tags, err)
		}
		if err := w.cloud.Destroy(t.Context(), in[0].ID); err != nil || len(w.list()) != 0 {
			t.Errorf("after the destroy: listed %+v, %v", w.list(), err)
		}
	})
	t.Run("with a fraction, only some instances are taken back", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "faults: {seed: 3, reclaim: {after: 1ms, fraction: 0.5}}")
		for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
			w.create(name)
		}
		taken := func() (n int) {
			for _, in := range w.list() {
				if in.State == driver.Stopped {
					n++
				}
			}
			return n
		}
		until(t, "some are taken back", func() bool { return taken() > 0 })
		if n := taken(); n == 6 {
			t.Error("all are taken back")
		}
	})
}

// covers C11
func TestPowerOffThatOnlyStops(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "faults: {power_off: stops}")
	if w.cloud.Capabilities().PowerOff != driver.PowerOffStops {
		t.Error("the capabilities do not declare it")
	}
	client := w.login(w.create("one"))
	pid := daemon(t, client, "sleep 1000")
	s, err := client.NewSession()
	drivertest.Must(t, err)
	s.Run(`"$DROVER_POWEROFF"`)
	until(t, "its processes are gone", func() bool { return !running(pid) })
	until(t, "it is listed as stopped", func() bool { l := w.list(); return len(l) == 1 && l[0].State == driver.Stopped })
	if w.list()[0].Reclaimed {
		t.Error("it is listed as reclaimed")
	}
	if in, err := w.describe("one"); err != nil || in.State != driver.Stopped || in.Tags[driver.TagName] != "one" {
		t.Errorf("it is described as %+v, %v", in, err)
	}
	if err := w.cloud.Destroy(t.Context(), w.list()[0].ID); err != nil || len(w.list()) != 0 {
		t.Errorf("after the destroy: listed %+v, %v", w.list(), err)
	}
	if left, err := os.ReadDir(filepath.Join(w.folder, "fleet")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// covers C11
func TestStopAndStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	in := w.create("one")
	starter, can := driver.As[driver.Starter](w.cloud)
	if !can || !w.cloud.Capabilities().StopSaves {
		t.Fatal("the cloud is no Starter, or does not declare that stopping saves")
	}
	client := w.login(in)
	pid := daemon(t, client, "sleep 1000")
	run(t, client, "echo kept > file")
	for range 2 { // repeating it succeeds
		drivertest.Must(t, starter.Stop(t.Context(), in.ID))
	}
	if running(pid) || w.list()[0].State != driver.Stopped || w.list()[0].Reclaimed {
		t.Errorf("stopped: %+v, its process runs: %v", w.list(), running(pid))
	}
	again := w.open("fleet") // another controller than the one that stopped it may start it
	starter, _ = driver.As[driver.Starter](again)
	for range 2 {
		drivertest.Must(t, starter.Start(t.Context(), in.ID))
	}
	in = w.list()[0]
	if got := run(t, w.login(in), "cat file; ls .. | grep stopped; true"); got != "kept" || in.State != driver.Running {
		t.Errorf("started again: %q, %+v", got, in)
	}
	if err := starter.Stop(t.Context(), "fleet.none"); drover.KindOf(err) != drover.KindNotFound {
		t.Errorf("stop none: %v", err)
	}
	if err := starter.Start(t.Context(), "fleet.none"); drover.KindOf(err) != drover.KindNotFound {
		t.Errorf("start none: %v", err)
	}
	// An instance that is killed while it stops is dead: nobody can start it again.
	drivertest.Must(t, os.WriteFile(filepath.Join(w.folder, "fleet", "one", "stopped"), nil, 0o600))
	kill(t, w.pidOf("one"))
	until(t, "it is gone", func() bool { return len(w.list()) == 0 })
}

// covers C11
func TestPowerOffAfterTheProcessesWereKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	in := w.create("one")
	client := w.login(in)
	leftBehind := daemon(t, client, "sleep 1000")
	program := run(t, client, `printf %s "$DROVER_POWEROFF"`)
	marked := "DROVER_LOCAL_INSTANCE=" + run(t, client, `printf %s "$DROVER_LOCAL_INSTANCE"`)
	kill(t, w.pidOf("one"), guestOf(t, client))

	// By now another process may have the outer one's number.
	stranger := exec.Command("sleep", "1000")
	drivertest.Must(t, stranger.Start())
	defer stranger.Process.Kill()
	pidFile := filepath.Join(w.folder, "fleet", "one", "pid")
	drivertest.Must(t, os.WriteFile(pidFile, []byte(strconv.Itoa(stranger.Process.Pid)), 0o600))

	off := exec.Command(program)
	off.Env = append(os.Environ(), marked)
	if out, err := off.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	until(t, "the instance's leftover process is gone", func() bool { return !running(leftBehind) })
	if !running(stranger.Process.Pid) {
		t.Error("the power-off killed a process that was never the instance's")
	}
}

// kill ends processes together, before any of them sees another end.
func kill(t *testing.T, pids ...int) {
	t.Helper()
	for _, sig := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL} {
		for _, pid := range pids {
			drivertest.Must(t, syscall.Kill(pid, sig))
		}
	}
}

// covers P11
func TestAttributesAreFiles(t *testing.T) {
	folder := t.TempDir()
	drivertest.Must(t, os.WriteFile(filepath.Join(folder, "pool"), []byte("{}\n"), 0o600))
	attributes, can := driver.As[driver.Attributes](newWorld(t, "attributes: "+folder).cloud)
	if !can {
		t.Fatal("the cloud has no attributes")
	}
	if text, err := attributes.Attribute(t.Context(), "pool"); text != "{}\n" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	for _, name := range []string{"other", "../" + filepath.Base(folder) + "/pool", "."} {
		if _, err := attributes.Attribute(t.Context(), name); err == nil {
			t.Errorf("there is an attribute %q", name)
		}
	}
	for size, want := range map[int]drover.ErrorKind{256 << 10: "", 256<<10 + 1: drover.KindInvalid} {
		drivertest.Must(t, os.WriteFile(filepath.Join(folder, "large"), make([]byte, size), 0o600))
		if text, err := attributes.Attribute(t.Context(), "large"); drover.KindOf(err) != want || want == "" && len(text) != size {
			t.Errorf("of %d bytes, %d were read: %v", size, len(text), err)
		}
	}
	if _, err := attributes.Attribute(t.Context(), "."); drover.KindOf(err) != drover.KindTransient {
		t.Errorf("a folder is not an attribute: %v", err)
	}
}
