package runner

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"drover"
	"drover/internal/deadman"
)

const (
	// signalInterval is how often a command that was told to end gets the signal again.
	signalInterval = 5 * time.Second
	// failedSignal is how soon a signal that could not be sent is tried again: a container may not run yet although its
	// client does.
	failedSignal = 500 * time.Millisecond
	// reapInterval is how often a command's dead orphans are reaped.
	reapInterval = time.Second
	// clearPatience bounds the killing of what a command left behind. A process that survives SIGKILL that long is
	// either stuck in the kernel, and will never run its own code again, or belongs to another user.
	clearPatience = 10 * time.Second
)

// watch is the supervision of one running command.
type watch struct {
	payload payload
	order   order
	journal journal
	pokes   <-chan os.Signal
	held    deadman.Switch

	cause  string    // why it was told to end, if it was
	killAt time.Time // when SIGKILL replaces SIGTERM
}

// untilEnded waits until the command's main process is a zombie. The zombie keeps the ids of the process and its group,
// so until it is reaped no signal can reach an unrelated process.
func (w *watch) untilEnded() {
	var timeout <-chan time.Time
	if w.order.Timeout > 0 {
		timeout = time.After(w.order.Timeout)
	}
	ended := w.payload.ended()
	reap := time.NewTicker(reapInterval)
	defer reap.Stop()
	w.readStops() // orders from before the attempt began
	again := time.NewTimer(w.signal())
	defer again.Stop()
	for {
		select {
		case <-ended:
			return
		case <-w.pokes:
			w.readStops()
		case <-timeout:
			w.tellToEnd(drover.CauseTimeout, w.order.Grace)
		case <-reap.C:
			w.payload.reapOrphans()
			// A running attempt keeps the instance alive, even without a daemon. The daemon reports a switch that
			// fails.
			_ = w.held.Hold()
			continue
		case <-again.C:
		}
		again.Reset(w.signal())
	}
}

// readStops obeys the journal's orders to stop. Obeying one again changes nothing.
func (w *watch) readStops() {
	h, err := w.journal.read()
	if err != nil {
		w.journal.logf("%v", err)
	}
	for _, stop := range h.stops {
		w.tellToEnd(cmp.Or(stop.Cause, drover.CauseStopped), stop.Grace)
	}
}

// tellToEnd sets why the command must end and how long it may take. A second call can only shorten the time.
func (w *watch) tellToEnd(cause string, grace time.Duration) {
	at := time.Now().Add(max(0, grace))
	if w.cause == "" {
		w.cause, w.killAt = cause, at
	}
	if at.Before(w.killAt) {
		w.killAt = at
	}
}

// signal sends the signal that is due to a command that was told to end, and returns when to call it again.
func (w *watch) signal() time.Duration {
	if w.cause == "" {
		return signalInterval
	}
	left := time.Until(w.killAt)
	sig := unix.SIGTERM
	if left <= 0 {
		sig, left = unix.SIGKILL, signalInterval
	}
	w.journal.logf("%s: sending %v to %v", w.cause, sig, w.payload)
	if err := w.payload.signal(sig); err != nil {
		w.journal.logf("signalling: %v", err)
		return min(left, failedSignal)
	}
	return min(left, signalInterval)
}

// exit kills and removes what the command left behind, and returns how it ended.
func (w *watch) exit(began time.Time) drover.Exit {
	ended := time.Now()
	e := w.payload.finish()
	e.Started, e.Ended = drover.TimeOf(began), drover.TimeOf(ended)
	if w.cause != "" {
		e.Cause = w.cause
	}
	var text string
	switch e.Cause {
	case drover.CauseTimeout:
		text = fmt.Sprintf("ran longer than its timeout of %v", w.order.Timeout)
	case drover.CauseInterrupted:
		text = "stopped, since the cloud is reclaiming the instance"
	case drover.CauseMemory:
		text = fmt.Sprintf("needed more than its %v of memory", w.order.memory())
	}
	if e.Text != "" {
		w.journal.logf("%s", e.Text)
		text = strings.TrimPrefix(text+"; "+e.Text, "; ")
	}
	e.Text = limit(text)
	return e
}
