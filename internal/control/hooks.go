package control

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"drover"
	"drover/driver"
	"drover/internal/engine"
	"drover/internal/logkey"
)

// Limits on hooks: how many run at a time, and how much of their output is logged.
const (
	hooksAtOnce = 8
	hookLines   = 100
	hookLine    = 1000
)

// runScript runs a hook's script, and logs its output and how it ended.
func (c *Controller) runScript(ctx context.Context, h engine.HookRow, script string) error {
	f := h.Fire
	log := c.cfg.Log.With(logkey.Hook, string(f.Hook), logkey.Instance, f.Name, logkey.Cloud, f.Cloud)
	ctx, cancel := context.WithTimeout(ctx, engine.HookTime)
	defer cancel()
	err := runHook(ctx, script, c.hookEnv(h), func(line string) { log.Info("hook output", logkey.Said, line) })
	switch {
	case ctx.Err() != nil:
		log.Warn("the hook was stopped", logkey.Script, script, logkey.TookSeconds, engine.HookTime.Seconds())
	case err != nil:
		log.Warn("the hook failed", logkey.Script, script, logkey.Error, err)
	}
	return cmp.Or(ctx.Err(), err)
}

// attributeScheme prefixes a hook whose script is in a cloud's attribute: attribute:CLOUD/NAME.
const attributeScheme = "attribute:"

func isAttribute(target string) bool { return strings.HasPrefix(target, attributeScheme) }

// runAttribute fetches a script from its cloud and runs it in a private folder. It returns the script's failure, and why
// it did not run.
func (c *Controller) runAttribute(ctx context.Context, h engine.HookRow, target string) (ran, failure error) {
	text, err := c.attribute(ctx, target)
	switch drover.KindOf(err) {
	case "":
	case drover.KindNotFound, drover.KindUnsupported, drover.KindInvalid:
		return nil, fmt.Errorf("fetching the script %s: %w", target, err)
	default: // this may be temporary
		return nil, drover.Errorf(drover.KindTransient, "fetching the script %s: %v", target, err)
	}
	dir, err := os.MkdirTemp(c.cfg.Spool, "hook-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	script := filepath.Join(dir, string(h.Fire.Hook))
	if err := writeProgram(script, text); err != nil {
		return nil, err
	}
	return c.runScript(ctx, h, script), nil
}

// sweepScripts removes scripts of hooks that were running when an earlier controller was killed.
func (c *Controller) sweepScripts() {
	if c.cfg.Spool == "" {
		return
	}
	left, err := filepath.Glob(filepath.Join(c.cfg.Spool, "hook-*"))
	for _, dir := range left {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	if err != nil {
		c.cfg.Log.Warn("leftover hook scripts cannot be removed", logkey.Error, err)
	}
}

// attribute returns the text of attribute:CLOUD/NAME.
func (c *Controller) attribute(ctx context.Context, target string) (string, error) {
	cloud, name, _ := strings.Cut(strings.TrimPrefix(target, attributeScheme), "/")
	cl, err := c.cloud(cloud)
	if err != nil {
		return "", err
	}
	from, can := driver.As[driver.Attributes](cl.Driver)
	if !can {
		return "", drover.Errorf(drover.KindUnsupported, "cloud %s does not support attributes", cloud)
	}
	ctx, cancel := context.WithTimeout(ctx, engine.HookTime)
	defer cancel()
	return from.Attribute(ctx, name)
}

// writeProgram writes a program that can be executed immediately: no process started meanwhile inherits the open file,
// which would keep it busy.
func writeProgram(path, text string) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, []byte(text), 0o700)
}

// hookEnv returns a hook's environment, with the names that old and new scripts use. It comes last, so that it
// overrides the controller's environment.
func (c *Controller) hookEnv(h engine.HookRow) []string {
	f := h.Fire
	return append(os.Environ(),
		"DROVER_HOOK="+string(f.Hook), "DROVER_FLEET="+c.cfg.Fleet, "DROVER_CLOUD="+f.Cloud, "DROVER_ZONE="+f.Zone, "DROVER_POOL="+f.Pool,
		"DROVER_INSTANCE="+f.Name, "DROVER_PROVIDER_ID="+f.ProviderID, "DROVER_ADDRESS="+h.Address, "DROVER_REASON="+f.Reason.Text,
		"DROVER_EVENT="+eventID(c.cfg.Fleet, f), "PROJECT="+c.project(f.Cloud), "ZONE="+f.Zone, "NAME="+f.Prefix+f.Name,
	)
}

// project returns the account or project of a cloud; empty if unknown.
func (c *Controller) project(cloud string) string {
	if cl, err := c.cloud(cloud); err == nil {
		return cl.own.Capabilities().Project
	}
	return ""
}

// eventID returns an ID that stays the same whenever a hook is repeated for one event.
func eventID(fleet string, f engine.Fire) string {
	what := []string{fleet, string(f.Hook), f.Cloud, f.Zone, f.Pool, f.Name, f.ProviderID}
	switch f.Hook {
	case drover.HookReady, drover.HookStopped, drover.HookBroken, drover.HookExhausted: // they can happen more than once
		what = append(what, strconv.FormatInt(int64(f.Reason.Since), 10))
	}
	sum := sha256.Sum256([]byte(strings.Join(what, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// runHook runs a script in its own process group, which ends with ctx, and reports the first lines of its output.
func runHook(ctx context.Context, script string, env []string, tell func(line string)) error {
	out, in, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("running %s: %w", script, err)
	}
	defer out.Close()
	cmd := exec.Command(script)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, in, in
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = cmd.Start()
	in.Close()
	if err != nil {
		return fmt.Errorf("running %s: %w", script, err)
	}
	// Processes left in its group are killed too, and with them the last writer of the pipe.
	kill := func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	unhook := context.AfterFunc(ctx, kill)
	defer unhook()
	told := make(chan struct{})
	go func() {
		defer close(told)
		tellLines(out, tell)
	}()
	err = cmd.Wait()
	kill()
	select {
	case <-told:
	case <-time.After(time.Second): // a process left the group and still holds the pipe
		err = errors.Join(err, out.Close())
		<-told
	}
	return err
}

// tellLines reports the first lines of r and skips the rest, so that the writer is never blocked.
func tellLines(r io.Reader, tell func(line string)) {
	lines := bufio.NewScanner(r)
	for n := 0; n < hookLines && lines.Scan(); n++ {
		tell(lines.Text()[:min(hookLine, len(lines.Text()))])
	}
	_, _ = io.Copy(io.Discard, r) // whatever ends it, there is nothing more to report
}
