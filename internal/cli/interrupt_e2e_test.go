//go:build e2e

package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// wantRun checks that `drover runs` lists one run, in this state.
func (p *place) wantRun(state runState) runRow {
	p.t.Helper()
	listed := p.run("runs", "-o", "json")
	var rows []runRow
	if err := json.Unmarshal([]byte(listed.out.String()), &rows); err != nil || len(rows) != 1 || rows[0].State != state {
		p.t.Fatalf("drover runs lists %s, not one run that is %s (%v)", listed.out.String(), state, err)
	}
	return rows[0]
}

// wantResumed resumes the only run of the place, from its folder, and checks that every job succeeds.
func (p *place) wantResumed(folder string, jobs int) outcome {
	p.t.Helper()
	r := p.start("run", "-v", "-o", "json", "--resume")
	if code := r.wait(time.Minute); code != 0 {
		p.t.Errorf("exit code %d of the resume", code)
	}
	wantOnce(p.t, folder, jobs)
	o := r.outcome()
	if o.Succeeded != jobs {
		p.t.Errorf("%+v", o)
	}
	return o
}

func TestDetaching(t *testing.T) {
	t.Run("SIGTERM detaches a run, and a resume collects its jobs", func(t *testing.T) {
		t.Parallel()
		p := newPlace(t)
		folder := p.witnesses(12, "2s", ", attempts: 1")
		r := p.start("run", "-c", "drover.yaml", "--max-instances", "2", "batch.yaml")
		p.waitBegun(folder, 4)
		id := p.runID()
		p.wantRun(runRunning)
		r.signal(syscall.SIGTERM)
		if code := r.wait(2 * time.Second); code != 130 {
			t.Errorf("exit code %d", code)
		}
		said := r.err.String()
		for _, want := range []string{"SIGTERM: detached: ", ") wait until you resume", "drover run --resume " + id, "powers itself off at "} {
			if !strings.Contains(said, want) {
				t.Errorf("%q is not printed", want)
			}
		}
		if row := p.wantRun(runDetached); row.Jobs != 12 || row.Instances != 2 || row.Folder != p.dir || row.Run != id {
			t.Errorf("%+v", row)
		}
		eventually(t, 20*time.Second, "the running jobs end without a controller", func() bool {
			_, ended := begun(t, folder)
			return ended >= 4
		})
		if o := p.wantResumed(folder, 12); o.Attempts != 12 {
			t.Errorf("%+v", o)
		}
	})
	t.Run("closing its terminal detaches a run", func(t *testing.T) {
		t.Parallel()
		p := newPlace(t)
		folder := p.witnesses(2, "2s", "")
		run, hangUp := p.onTerminal("run", "-c", "drover.yaml", "batch.yaml")
		p.waitBegun(folder, 2)
		hangUp()
		if err := run.Wait(); run.ProcessState.ExitCode() != 130 {
			t.Errorf("it ended with %v", err)
		}
		p.wantRun(runDetached)
		if o := p.wantResumed(folder, 2); o.Attempts != 2 {
			t.Errorf("%+v", o)
		}
	})
	t.Run("SIGHUP under nohup does not detach a run", func(t *testing.T) {
		t.Parallel()
		p := newPlace(t)
		folder := p.witnesses(2, "1s", "")
		cmd := exec.Command("sh", "-c", `trap "" HUP; exec drover run -c drover.yaml batch.yaml`)
		cmd.Dir, cmd.Env = p.dir, p.environ()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		p.waitBegun(folder, 2)
		if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("it ended with %v", err)
		}
		wantOnce(t, folder, 2)
	})
}

func TestInterruptOfKeptInstances(t *testing.T) {
	p := newPlace(t)
	r := p.start("run", "--keep", "1h", "--", "sh", "-c", "exit 7")
	eventually(t, 20*time.Second, "the instance is kept", func() bool { return strings.Contains(r.err.String(), "Ctrl-C destroys them now") })
	r.signal(os.Interrupt)
	if code := r.wait(time.Minute); code != 1 {
		t.Errorf("exit code %d", code)
	}
	if said := r.err.String(); !strings.Contains(said, "SIGINT: destroying the instances;") {
		t.Errorf("got %s", said)
	}
}

// onTerminal starts the binary on its own terminal, and returns a function that closes it.
func (p *place) onTerminal(args ...string) (cmd *exec.Cmd, hangUp func()) {
	p.t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		p.t.Skipf("there are no terminals: %v", err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	slave, err := os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		p.t.Fatal(err)
	}
	defer slave.Close()
	cmd = exec.Command(filepath.Join(binaries, "drover"), args...)
	cmd.Dir, cmd.Env = p.dir, append(p.environ(), "TERM=xterm")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { cmd.Process.Kill() })
	return cmd, func() { master.Close() }
}

func TestStopping(t *testing.T) {
	t.Run("a resume continues a stopped run without counting attempts", func(t *testing.T) {
		t.Parallel()
		p := newPlace(t)
		folder := p.witnesses(6, "2s", ", attempts: 1")
		r := p.start("run", "-c", "drover.yaml", "--max-instances", "2", "batch.yaml")
		p.waitBegun(folder, 4)
		r.signal(syscall.SIGINT)
		if code := r.wait(15 * time.Second); code != 130 {
			t.Errorf("exit code %d", code)
		}
		for _, want := range []string{"SIGINT: stopping: ", "send a second signal to exit immediately", "stopped: 0 of 6 jobs final", "drover run --resume " + p.runID()} {
			if !strings.Contains(r.err.String(), want) {
				t.Errorf("%q is not printed", want)
			}
		}
		if left := processesOf(p.state); len(left) > 0 {
			t.Errorf("%d processes are left", len(left))
		}
		if row := p.wantRun(runStopped); row.Queued != 6 || row.Instances != 0 {
			t.Errorf("%+v", row)
		}
		if o := p.wantResumed(folder, 6); o.Attempts != 10 {
			t.Errorf("%+v", o)
		}
	})
	t.Run("another signal does not detach a stopping run", func(t *testing.T) {
		t.Parallel()
		p := newPlace(t)
		p.write("drover.yaml", strings.Replace(impatient, "term_timeout: 500ms", "term_timeout: 2s", 1))
		r := p.start("run", "-c", "drover.yaml", "--", "sh", "-c", `trap "" TERM; echo ready; while :; do sleep 0.02; done`)
		eventually(t, 10*time.Second, "the job runs", func() bool { return strings.Contains(r.out.String(), "ready") })
		r.signal(syscall.SIGINT)
		eventually(t, 5*time.Second, "the first signal is reported", func() bool { return strings.Contains(r.err.String(), "send a second signal to exit immediately") })
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
			r.signal(sig)
			eventually(t, 5*time.Second, "the run reports that it is already stopping", func() bool {
				return strings.Contains(r.err.String(), signalName(sig)+": already stopping")
			})
		}
		if code := r.wait(15 * time.Second); code != 130 {
			t.Errorf("exit code %d", code)
		}
		if row := p.wantRun(runStopped); row.Queued != 1 {
			t.Errorf("%+v", row)
		}
		if gc := p.run("gc", "--fleet", p.runID(), "--destroy"); gc.code() != 0 {
			t.Errorf("exit code %d of gc", gc.code())
		}
	})
}
