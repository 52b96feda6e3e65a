package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"drover"
	"drover/internal/container"
	"drover/internal/wire"
)

// attempt is an attempt that the daemon has: prepared, running or ended. Its fields from handed on are guarded by
// daemon.mu.
type attempt struct {
	id      drover.AttemptID
	folder  folder
	store   string                  // wire.Start.Store; empty if an older version started it
	proof   string                  // wire.Start.Proof
	sandbox sandbox                 // set before handed
	abort   context.CancelCauseFunc // cancels the preparation; nil if adopted

	handed   bool         // its journal exists, and a supervisor has it or will get it
	unwanted error        // why it must not begin, if called off before it was handed
	running  bool         // its command is running, or has run
	exit     *drover.Exit // set when it has ended
	known    time.Time    // when this daemon learned the exit, which may differ from exit.Ended
}

func (d *daemon) newAttempt(id drover.AttemptID) *attempt {
	path := filepath.Join(d.folder, attemptsFolder, id.Folder())
	return &attempt{id: id, folder: folder(path)}
}

// startLocked answers a Start with the attempt's state, with a refusal or with the missing blobs, or else launches the
// attempt.
func (d *daemon) startLocked(m wire.Start) {
	if a := d.attempts[m.ID]; a != nil {
		if a.store == "" || a.store == m.Store {
			d.tellLocked(a)
			return
		}
		d.forgetLocked(m.ID) // an attempt of the same number, from records that are lost
	}
	if err := d.admitLocked(m); err != nil {
		var here notHere
		d.sendLocked(wire.Message{Refused: &wire.Refused{ID: m.ID, Text: limit(err.Error()), NotHere: errors.As(err, &here)}})
		return
	}
	pins, missing := d.blobs.pin(m.Files)
	if len(missing) > 0 {
		d.sendLocked(wire.Message{Missing: &wire.Missing{ID: m.ID, Hashes: missing}})
		return
	}
	a := d.newAttempt(m.ID)
	a.store, a.proof = m.Store, m.Proof
	if m.Apart {
		uid, err := d.takeUIDLocked()
		if err != nil {
			d.blobs.unpin(pins)
			d.sendLocked(wire.Message{Refused: &wire.Refused{ID: m.ID, Text: limit(err.Error()), NotHere: true}})
			return
		}
		a.sandbox.UID = uid
	}
	ctx, abort := context.WithCancelCause(context.Background())
	a.abort = abort
	d.attempts[m.ID] = a
	go d.launch(ctx, a, m, pins)
}

// notHere is why this instance refuses a valid attempt. One case is a number that has begun although the daemon has no
// such attempt: a daemon died after it raised the fence and before a supervisor began, so the command never ran.
type notHere struct{ error }

// admitLocked returns why the attempt must never be started here; nil if it may be.
func (d *daemon) admitLocked(m wire.Start) error {
	if err := d.leavingLocked(); err != nil {
		return err
	}
	if d.attempts[m.ID] != nil {
		return notHere{fmt.Errorf("an earlier attempt (%v) is still running on this instance, but its records are lost", m.ID)}
	}
	if highest := d.fence.highest(fenced{m.Store, m.ID.Job}); m.ID.Number <= highest {
		return notHere{fmt.Errorf("attempt %d of job %v has already started here", highest, m.ID.Job)}
	}
	for id, a := range d.attempts {
		if id.Job == m.ID.Job && a.exit == nil {
			return notHere{fmt.Errorf("attempt %v of the job has not ended on this instance", id)}
		}
	}
	if len(d.attempts) >= maxAttempts {
		return notHere{fmt.Errorf("%d attempts are already kept here, which is the limit", len(d.attempts))}
	}
	if err := checkCommand(m); err != nil {
		return err
	}
	if err := checkPatterns(m.Outputs); err != nil {
		return err
	}
	return checkFiles(m.Files)
}

// checkCommand refuses what neither execve nor a container runtime could accept.
func checkCommand(m wire.Start) error {
	if m.Image != "" {
		if err := errors.Join(drover.CheckImage(m.Image), container.CheckEnv(m.Env)); err != nil {
			return err
		}
	}
	if len(m.Command) == 0 && m.Image == "" || len(m.Command) > 0 && m.Command[0] == "" {
		return errors.New("there is no command")
	}
	for _, arg := range m.Command {
		if strings.ContainsRune(arg, 0) {
			return errors.New("an argument contains a NUL byte")
		}
	}
	for key, value := range m.Env {
		if key == "" || strings.ContainsAny(key, "=\x00") || strings.ContainsRune(value, 0) {
			return fmt.Errorf("%q is not a valid environment variable", key)
		}
	}
	return nil
}

// tellLocked sends the controller an attempt's state.
func (d *daemon) tellLocked(a *attempt) {
	if a.running {
		d.sendLocked(wire.Message{Started: &wire.Started{ID: a.id}})
	}
	if a.exit != nil {
		d.sendLocked(wire.Message{Exited: &wire.Exited{ID: a.id, Exit: *a.exit, Proof: a.proof}})
	}
}

// launch takes a new attempt from its Start to its end.
func (d *daemon) launch(ctx context.Context, a *attempt, m wire.Start, pins []string) {
	defer a.abort(nil)
	err := d.prepare(ctx, a, m)
	d.blobs.unpin(pins)
	work := order{Folder: a.folder, Command: m.Command, Env: d.jobEnv(m.Env), Timeout: m.Timeout, Grace: m.Grace, Limits: m.Limits, Place: a.sandbox}
	if err == nil && m.Image != "" {
		work.Container, err = d.containerFor(ctx, a, m)
	}
	if err == nil {
		err = d.hand(a)
	}
	var e drover.Exit
	if err == nil {
		e, err = d.execute(a, work)
	}
	if err != nil {
		e = neverBegun(err)
		d.keepResult(a, e)
	}
	if instanceFails(err) || err == nil && failedBySupervisor(e) {
		d.ails(e.Text)
	}
	d.end(a, e)
}

// neverBegun returns the exit of an attempt whose command never began.
func neverBegun(err error) drover.Exit {
	var image *container.ImageError
	e := noStart(noStartCode, err)
	switch {
	case errors.Is(err, errInterrupted):
		e.Code, e.Cause = 128+int(unix.SIGTERM), drover.CauseInterrupted
	case errors.Is(err, errStopped):
		e.Code, e.Cause = 128+int(unix.SIGTERM), drover.CauseStopped
	case errors.As(err, &image):
		if e.Code, e.Cause = runtimeFailed, drover.CauseNoImage; image.Final() {
			e.Cause = drover.CauseImage
		}
	case !impossible(err):
		e.Cause = drover.CauseLost // the instance is at fault: the command was not tried
	}
	return e
}

// errStopped ends an attempt that was stopped before it began.
var errStopped = errors.New("stopped before it started")

// errInterrupted is errStopped for an attempt whose instance is reclaimed.
var errInterrupted = fmt.Errorf("%w, since the cloud is reclaiming the instance", errStopped)

// prepare creates and fills the attempt's folder.
func (d *daemon) prepare(ctx context.Context, a *attempt, m wire.Start) error {
	if err := a.folder.create(); err != nil {
		return fmt.Errorf("creating the attempt's folder: %w", err)
	}
	if err := d.lay(a.folder, m.Files); err != nil {
		return err
	}
	if a.sandbox.UID != 0 {
		if err := a.folder.openTo(a.sandbox.UID); err != nil {
			return fmt.Errorf("changing the owner of the attempt's folder: %w", err)
		}
	}
	nowhere := d.findPlace(ctx, a, m)
	return errors.Join(nowhere, a.folder.allow(record{m.ID, m.Outputs, a.sandbox, a.store, a.proof}))
}

// findPlace sets where the attempt will run.
func (d *daemon) findPlace(ctx context.Context, a *attempt, m wire.Start) error {
	a.sandbox.Name = d.sandboxName(m.ID)
	if m.Image == "" {
		a.sandbox.Groups = d.groups
		return nil
	}
	r, err := d.containers.find(ctx, d.wantedRuntime())
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return noRuntime(m.Image, err)
	}
	a.sandbox.Runtime = r.Name()
	return nil
}

// hand raises the fence: from then on no other attempt of this number can begin, and only a supervisor can stop this
// one.
func (d *daemon) hand(a *attempt) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if a.unwanted != nil {
		return a.unwanted
	}
	a.handed = true
	return d.fence.raise(a.store, a.id)
}

// callOffLocked keeps an attempt that is not yet handed from beginning, and cancels its preparation.
func (a *attempt) callOffLocked(why error) {
	a.unwanted = why
	a.abort(why)
}

// execute has a supervisor run the command to its end. A spare supervisor may have died while it waited, so a new one
// is tried next. If that one dies too, the attempt ends, begun or not.
func (d *daemon) execute(a *attempt, work order) (drover.Exit, error) {
	for _, take := range []func() (*overseer, error){d.supervisors.take, newOverseer} {
		o, err := take()
		if err != nil {
			return drover.Exit{}, err
		}
		e, err := o.carryOut(work, func() { d.started(a) })
		if err == nil {
			d.supervisors.put(o)
			return e, nil
		}
		d.log.Printf("attempt %v: its supervisor is gone: %v", a.id, err)
		if h, err := a.folder.history(); err != nil || h.begun != nil {
			break
		}
	}
	return d.aftermath(a), nil
}

func (d *daemon) jobEnv(given map[string]string) map[string]string {
	env := map[string]string{"DROVER_API": d.api.url()}
	maps.Copy(env, given)
	return env
}

// aftermath waits until no supervisor holds the attempt, then reads from its folder how it ended.
func (d *daemon) aftermath(a *attempt) drover.Exit {
	s, h, err := a.folder.settle(d.boot, true)
	if s == ended {
		return *h.exit
	}
	if err != nil {
		d.log.Printf("attempt %v: reading its result: %v", a.id, err)
	}
	// Clearing the sandbox also ends processes that have lost the marker from their environment.
	if err := a.sandbox.clear(); err != nil {
		d.log.Printf("attempt %v: %s", a.id, oneLine(err))
	}
	e := lostExit(a.folder, h, killMarked(string(a.folder)))
	d.keepResult(a, e)
	return e
}

// lostExit returns the exit of an attempt whose supervisor was killed. left counts its processes that could not be
// killed.
func lostExit(f folder, h history, left int) drover.Exit {
	now := drover.TimeOf(time.Now())
	e := drover.Exit{Code: 128 + int(unix.SIGKILL), Cause: drover.CauseLost, Started: now, Ended: now}
	text := "its supervisor was killed, or the instance restarted"
	if left > 0 {
		text += fmt.Sprintf("; %d of its processes could not be killed", left)
	}
	if len(h.log) > 0 {
		text += "; its log ends: " + strings.Join(h.log, "; ")
	}
	e.Text = limit(text)
	// Output that cannot be read is left out: the attempt is reported lost anyway.
	_ = f.addOutput(&e)
	return e
}

// keepResult writes a result that no supervisor wrote. If it cannot be written, the controller still gets it from
// memory.
func (d *daemon) keepResult(a *attempt, e drover.Exit) {
	if err := a.folder.finish(e); err != nil {
		d.log.Printf("attempt %v: storing its result: %v", a.id, err)
	}
}

// started records that the attempt's command is running, and reports it to the controller.
func (d *daemon) started(a *attempt) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a.running = true
	d.tellLocked(a)
}

// hasRun reports whether the attempt's command has run or may run. A supervisor may die before it says so, after it has
// recorded how the command ended.
func (d *daemon) hasRun(a *attempt) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return a.running || a.exit == nil || a.exit.Cause == ""
}

// end records how the attempt ended, and reports it to the controller.
func (d *daemon) end(a *attempt, e drover.Exit) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	a.exit, a.known, d.watchdog.wanted = &e, now, now
	d.sendLocked(wire.Message{Exited: &wire.Exited{ID: a.id, Exit: e, Proof: a.proof}})
}

// stopLocked ends an attempt. It ignores one that has ended or is unknown.
func (d *daemon) stopLocked(m wire.Stop) {
	a := d.attempts[m.ID]
	if a == nil || a.exit != nil {
		return
	}
	if !a.handed {
		a.callOffLocked(errStopped)
		return
	}
	if err := a.folder.stop(stopOrder{Grace: m.Grace}); err != nil {
		d.log.Printf("attempt %v: stopping it: %v", a.id, err)
	}
}

// forgetLocked drops an ended attempt and its folder.
func (d *daemon) forgetLocked(id drover.AttemptID) {
	a := d.attempts[id]
	if a == nil || a.exit == nil {
		return
	}
	if err := d.trash.throw(string(a.folder)); err != nil {
		d.log.Printf("attempt %v: removing its records: %v", id, err)
		return
	}
	delete(d.attempts, id)
}

// dropOld forgets the attempts whose end was known before the given time.
func (d *daemon) dropOld(before time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, a := range d.attempts {
		if a.exit != nil && a.known.Before(before) {
			d.forgetLocked(id)
		}
	}
}
