package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"drover"
	"drover/internal/backoff"
	"drover/internal/wire"
)

const (
	// looksToChange is how many checks in a row must agree before the instance's reported health changes.
	looksToChange = 2
	// leastDisk is the free space that the disk under the runner's folder needs, or a hundredth of the disk if that is
	// less.
	leastDisk = 100 * drover.MiB
	// healthOutput is how many bytes of a health command's output are kept.
	healthOutput = 512
)

// health is the instance's reported health.
type health struct {
	ailing string // what is wrong; empty: nothing
	other  int    // how many checks in a row disagree with ailing
}

// judge takes one check's result: what is wrong, or nothing. It reports whether the reported health changes.
func (h *health) judge(wrong string) (changed bool) {
	if (wrong == "") == (h.ailing == "") {
		h.other = 0
		return false
	}
	if h.other++; h.other < looksToChange {
		return false
	}
	*h = health{ailing: wrong}
	return true
}

// watchHealth checks the instance's health at the interval ordered, until ctx ends.
func (d *daemon) watchHealth(ctx context.Context, o wire.Orders) {
	if o.Interval <= 0 {
		return
	}
	for ctx.Err() == nil {
		wrong := d.look(ctx, o)
		if ctx.Err() != nil {
			return
		}
		d.judge(limit(wrong))
		_ = backoff.For(ctx, o.Interval)
	}
}

// judge takes one check's result and reports a change to the controller.
func (d *daemon) judge(wrong string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.health.judge(wrong) {
		d.reportHealthLocked()
	}
}

func (d *daemon) reportHealthLocked() {
	if d.health.ailing == "" {
		d.log.Print("the instance is healthy again")
	} else {
		d.log.Printf("the instance is not healthy: %s", d.health.ailing)
	}
	d.sendLocked(wire.Message{Ailing: &wire.Ailing{Text: d.health.ailing}})
}

// ails reports at once that something is wrong with the instance, so that it is not given the next attempt and loses
// that too. Later checks find when it is healthy again.
func (d *daemon) ails(wrong string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.health.ailing == "" {
		d.health = health{ailing: limit(wrong)}
		d.reportHealthLocked()
	}
}

// look checks the instance and returns what is wrong, if anything: first by the runner's own checks, then by the health
// command, and last by the dead-man switch.
func (d *daemon) look(ctx context.Context, o wire.Orders) string {
	d.mu.Lock()
	broken := d.watchdog.broken
	d.mu.Unlock()
	for _, err := range []error{tryToWrite(), diskRoom(), runHealth(ctx, o)} {
		if err != nil {
			return err.Error()
		}
	}
	return broken
}

// tryToWrite returns an error if the runner's folder cannot be written to.
func tryToWrite() error {
	const name = "look"
	err := os.WriteFile(name, []byte("is there room?\n"), 0o600)
	if err = errors.Join(err, os.Remove(name)); err != nil {
		return fmt.Errorf("the runner's folder cannot be written to: %w", err)
	}
	return nil
}

// diskRoom returns an error if the disk under the runner's folder is nearly full.
func diskRoom() error {
	free, all, err := diskSpace()
	if err != nil {
		return fmt.Errorf("checking the disk: %w", err)
	}
	if drover.Bytes(free) < min(leastDisk, drover.Bytes(all)/100) {
		return fmt.Errorf("its disk is full: only %v of %v is free", drover.Bytes(free), drover.Bytes(all))
	}
	return nil
}

// runHealth runs the health command, if there is one. At the deadline it kills the command's process group.
func runHealth(ctx context.Context, o wire.Orders) error {
	if o.Health == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, o.Deadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", o.Health)
	said := &capped{left: healthOutput}
	cmd.Stdout, cmd.Stderr = said, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case ctx.Err() == context.DeadlineExceeded:
		return fmt.Errorf("its health command did not end within %v", o.Deadline)
	}
	text := strings.Join(strings.Fields(strings.ToValidUTF8(said.text.String(), "?")), " ")
	if text != "" {
		text = ": " + text
	}
	return fmt.Errorf("its health command failed (%v)%s", err, text)
}

// capped keeps the beginning of what is written to it.
type capped struct {
	text bytes.Buffer
	left int
}

// Write accepts everything.
func (c *capped) Write(p []byte) (int, error) {
	n, _ := c.text.Write(p[:min(len(p), c.left)])
	c.left -= n
	return len(p), nil
}
