package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"drover"
	"drover/internal/atomicfile"
	"drover/internal/backoff"
	"drover/internal/notice"
	"drover/internal/processes"
	"drover/internal/wire"
)

const (
	// noticeFile stores the notice in force, for the next daemon.
	noticeFile = "notice"
	// mostMargin is the longest time reserved between the killing of the attempts and the deadline, so that their
	// outputs can be fetched.
	mostMargin = 15 * time.Second
	// lateGrace is an attempt's grace if the orders give none, and its longest grace after the deadline: it gets some
	// even then, since clocks may differ.
	lateGrace = 10 * time.Second
	// handlesInterval is how often the daemon checks whether a job handles SIGTERM by now, and lastCall is how long
	// before SIGKILL every job gets SIGTERM.
	handlesInterval = time.Second
	lastCall        = 2 * time.Second
)

// interruption is the cloud's notice in force.
type interruption struct {
	Boot   string        `json:"boot"` // a notice from another boot is no longer in force
	Notice drover.Notice `json:"notice"`

	cancel context.CancelFunc // cancels carryOut
}

// readInterruption returns the folder's interruption, nil if none is in force. If it cannot be read, the cloud repeats
// the notice.
func readInterruption(boot string) *interruption {
	var i interruption
	if readJSON(noticeFile, &i) != nil || i.Boot != boot {
		return nil
	}
	return &i
}

// watchNotices obeys the cloud's notices from the source of this kind until ctx ends.
func (d *daemon) watchNotices(ctx context.Context, kind string) {
	if kind == "" {
		return
	}
	source, err := notice.Open(kind)
	if err != nil {
		d.log.Printf("watching for the cloud's notices: %v", err)
		return
	}
	notice.Watch(ctx, source, d.noticed, d.log.Printf)
}

// noticed takes the notice now in force, nil if there is none.
func (d *daemon) noticed(n *drover.Notice) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch stood := d.interruption; {
	case n == nil && stood == nil:
	case n == nil:
		d.callOffLocked()
	case stood == nil || *n != stood.Notice:
		d.interruptLocked(*n)
	}
}

// interruptLocked prepares for the instance to be reclaimed. A notice of the same cause with a later deadline, or
// without one, does not replace an earlier deadline.
func (d *daemon) interruptLocked(n drover.Notice) {
	if stood := d.interruption; stood != nil {
		if stood.Notice.Cause == n.Cause && stood.Notice.Deadline != 0 && (n.Deadline == 0 || stood.Notice.Deadline < n.Deadline) {
			return
		}
		stood.cancel()
	}
	d.log.Printf("the cloud is reclaiming the instance%s: %s", byDeadline(n), n.Cause)
	i := &interruption{Boot: d.boot, Notice: n}
	if err := atomicfile.WriteJSON(noticeFile, i); err != nil {
		d.log.Printf("storing the notice: %v", err)
	}
	d.interruption = i
	d.sendLocked(wire.Message{Notice: &wire.Notice{Notice: n}})
	d.standLocked()
}

func byDeadline(n drover.Notice) string {
	if n.Deadline == 0 {
		return ""
	}
	return " at " + n.Deadline.String()
}

// standLocked passes the notice to the attempts and has them ended in time.
func (d *daemon) standLocked() {
	i := d.interruption
	if text, err := json.Marshal(i.Notice); err == nil {
		for _, a := range d.attempts {
			d.showLocked(a, append(text, '\n'))
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	i.cancel = cancel
	go d.carryOut(ctx, i.Notice)
}

// showLocked writes the notice file of an attempt that was handed to a supervisor, and calls off one that was not.
func (d *daemon) showLocked(a *attempt, text []byte) {
	switch {
	case a.exit != nil:
	case !a.handed:
		a.callOffLocked(errInterrupted)
	default:
		if err := errors.Join(a.folder.makeTold(), atomicfile.Write(a.folder.notice(), text)); err != nil {
			d.log.Printf("attempt %v: passing on the cloud's notice: %v", a.id, err)
		}
	}
}

// carryOut stops the attempts: one that handles SIGTERM early enough to have its grace, the others at the last moment,
// since the signal would only end them sooner.
func (d *daemon) carryOut(ctx context.Context, n drover.Notice) {
	d.mu.Lock()
	grace := lateGrace
	if last := d.orders.last; last != nil && last.Grace > 0 {
		grace = last.Grace
	}
	d.mu.Unlock()
	s := plan(n.Deadline, time.Now(), grace)
	kill := s.term.Add(s.grace)
	told := map[*attempt]bool{}
	// The deadline is by the wall clock, which may be changed during the wait.
	for next := s.term; ctx.Err() == nil; next = time.Now().Add(handlesInterval) {
		for ctx.Err() == nil && time.Now().Before(next) {
			_ = backoff.For(ctx, min(time.Second, time.Until(next)))
		}
		if !d.interrupt(ctx, kill, told) {
			return
		}
	}
}

// interrupt stops the attempts whose time has come, and reports whether others are left.
func (d *daemon) interrupt(ctx context.Context, kill time.Time, told map[*attempt]bool) (left bool) {
	var running []*attempt
	d.mu.Lock()
	for _, a := range d.attempts {
		if a.exit == nil && a.handed && !told[a] {
			running = append(running, a)
		}
	}
	d.mu.Unlock()
	table, err := processes.ReadTable()
	for _, a := range running {
		grace := time.Until(kill)
		if grace > lastCall && err == nil && !a.handlesTerm(table) {
			left = true
			continue
		}
		told[a] = d.tellToEnd(ctx, a, max(0, grace))
		left = left || !told[a] && grace > -lateGrace
	}
	return left
}

// tellToEnd stops an attempt that has not ended, unless the notice was withdrawn. It reports whether that is done: if
// the order cannot be written, the caller tries again for a while.
func (d *daemon) tellToEnd(ctx context.Context, a *attempt, grace time.Duration) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if ctx.Err() != nil || a.exit != nil {
		return true
	}
	err := a.folder.stop(stopOrder{Grace: grace, Cause: drover.CauseInterrupted})
	if err != nil {
		d.log.Printf("attempt %v: interrupting it: %v", a.id, err)
	}
	return err == nil
}

// handlesTerm reports whether a process of a running attempt handles SIGTERM, or may.
func (a *attempt) handlesTerm(table processes.Table) bool {
	if a.sandbox.Runtime != "" {
		return true // its processes may be out of sight
	}
	h, err := a.folder.history()
	isolated := a.sandbox.UID != 0 // then the supervisor's child is ours, and passes the signal on
	return err != nil || h.begun == nil || table.Handle(h.begun.PID, unix.SIGTERM, isolated)
}

// schedule is when attempts that handle SIGTERM are told to end, and how long after that all are killed.
type schedule struct {
	term  time.Time
	grace time.Duration
}

// plan leaves attempts running as long as their grace allows, and has them killed early enough for their outputs to be
// fetched: it reserves a quarter of the time left for that, at most mostMargin. Without a deadline, attempts are told
// to end at once.
func plan(deadline drover.Time, now time.Time, grace time.Duration) schedule {
	if deadline == 0 {
		return schedule{now, grace}
	}
	now = now.Round(0) // as the deadline, by the wall clock only
	left := deadline.Std().Sub(now)
	if left <= 0 {
		return schedule{now, min(grace, lateGrace)}
	}
	kill := left - min(mostMargin, left/4)
	grace = min(grace, kill)
	return schedule{now.Add(kill - grace), grace}
}

// callOffLocked drops a notice that the cloud has withdrawn. Attempts already told to end still end.
func (d *daemon) callOffLocked() {
	d.log.Printf("the cloud has withdrawn its notice: %s", d.interruption.Notice.Cause)
	d.interruption.cancel()
	d.interruption = nil
	err := os.Remove(noticeFile)
	for _, a := range d.attempts {
		if gone := os.Remove(a.folder.notice()); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = cmp.Or(err, gone)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.log.Printf("removing the notice: %v", err)
	}
	d.sendLocked(wire.Message{Notice: &wire.Notice{}})
}

// leavingLocked returns why no attempt may begin here any more; nil if one may.
func (d *daemon) leavingLocked() error {
	switch {
	case d.interruption != nil:
		return notHere{fmt.Errorf("the cloud is reclaiming the instance: %s", d.interruption.Notice.Cause)}
	case d.watchdog.off != nil:
		return notHere{errors.New("the instance is powering itself off")}
	}
	return nil
}
