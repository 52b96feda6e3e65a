package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"drover"
	"drover/internal/config"
	"drover/internal/daemon"
)

// slowController answers only the second request for its status.
type slowController struct {
	fakeController
	asked chan struct{}
}

func (s *slowController) Status(ctx context.Context) (drover.Status, error) {
	select {
	case s.asked <- struct{}{}:
		<-ctx.Done()
		return drover.Status{}, ctx.Err()
	default:
		return drover.Status{Jobs: map[drover.JobState]int{drover.JobRunning: 1}}, nil
	}
}

func TestASignalBeforeTheControllerOfAResumedRunAnswersDetachesTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := &slowController{asked: make(chan struct{}, 1)}
		var said bytes.Buffer
		s := &session{app: &app{err: &said}, svc: svc, folder: &daemon.RunFolder{ID: "run-a", Path: t.TempDir()}, config: config.Default("run"), ui: &progress{err: &said}}
		signals := make(chan os.Signal, 2)
		signals <- syscall.SIGTERM
		signals <- syscall.SIGTERM // as timeout sends it
		err := s.submitOrLeave(t.Context(), signals)
		if !errors.Is(err, exit(exitInterrupted)) || !strings.Contains(said.String(), "running jobs (1) keep running") {
			t.Errorf("%v: %s", err, said.String())
		}
		if len(signals) > 0 {
			t.Error("a signal that was sent twice counts twice")
		}
	})
}

func TestARunWhoseResultCannotBePrintedIsOver(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	p := newPlace(t)
	r := p.startTo(full, "run", "-o", "json", "--", "true")
	if code := r.wait(time.Minute); code != exitUsage || !strings.Contains(r.err.String(), "no space left") {
		t.Errorf("exit code %d", code)
	}
	if said := p.run("runs").err.String(); !strings.Contains(said, "there is no run to resume") {
		t.Errorf("drover runs prints %s", said)
	}
}

func TestARerunOfFailedJobsRefusesOtherFlagsThanTheRunHad(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	home, err := daemon.StateHome()
	if err != nil {
		t.Fatal(err)
	}
	folder := daemon.RunFolder{ID: "run-a", Path: filepath.Join(daemon.EndedHome(home), "run-a")}
	if err := errors.Join(os.MkdirAll(folder.Path, 0o700), folder.Save(daemon.RunPlan{Began: time.Now()})); err != nil {
		t.Fatal(err)
	}
	droverCommand(t, "run", "--resume", "run-a", "--failed", "--max-cost", "5").want(t, 2, "", "run run-a was started without --max-cost")
}

func TestAnInterruptedPlanLeavesNoFiles(t *testing.T) {
	p := newPlace(t)
	p.write("slow.sh", "#!/bin/sh\nsleep 20\n")
	slow := filepath.Join(p.dir, "slow.sh")
	if err := os.Chmod(slow, 0o700); err != nil {
		t.Fatal(err)
	}
	p.write("drover.yaml", "version: 1\nclouds:\n  it: {driver: external, command: ["+slow+"]}\n")
	r := p.start("plan", "-c", "drover.yaml", "--", "true")
	home := filepath.Join(p.state, "drover")
	eventually(t, 10*time.Second, "the cloud is opened", func() bool {
		open, _ := filepath.Glob(filepath.Join(home, "plan-*", "it"))
		return open != nil
	})
	r.signal(os.Interrupt)
	if code := r.wait(10 * time.Second); code != exitInterrupted {
		t.Errorf("exit code %d", code)
	}
	if left, _ := filepath.Glob(filepath.Join(home, "plan-*")); left != nil {
		t.Errorf("it leaves %s", left)
	}
}
