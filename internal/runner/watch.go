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
	// signalInterval is how often a command that was told to end is told again.
	signalInterval = 5 * time.Second
	// failedSignal is when one that could not be sent is tried again: a container may not run yet of which the client
	// does.
	failedSignal = 500 * time.Millisecond
	// reapInterval is how often the dead among a command's orphans are taken off the process table.
	reapInterval = time.Second
	// clearPatience bounds the killing of what a command left behind. What survives SIGKILL that long is either stuck
	// in the kernel, and will never run its own code again, or belongs to another user.
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
	killAt time.Time // when SIGTERM gives way to SIGKILL
}

// untilEnded stays with the command until its main process is a zombie. The zombie keeps the number of the process and
// of its group, so until it is reaped no signal can reach a stranger.
func (w *watch) untilEnded() {
	var timeout <-chan time.Time
	if w.order.Timeout > 0 {
		timeout = time.After(w.order.Timeout)
	}
	ended := w.payload.ended()
	reap := time.NewTicker(reapInterval)
	defer reap.Stop()
	w.readStops() // those that came before the attempt was begun
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
			// An attempt is a reason for the instance to stay, daemon or not. That the switch cannot be told is the
			// daemon's to say.
			_ = w.held.Hold()
			continue
		case <-again.C:
		}
		again.Reset(w.signal())
	}
}

// readStops obeys the journal's orders to stop. Those that it has obeyed before change nothing.
func (w *watch) readStops() {
	h, err := w.journal.read()
	if err != nil {
		w.journal.logf("%v", err)
	}
	for _, stop := range h.stops {
		w.tellToEnd(cmp.Or(stop.Cause, drover.CauseStopped), stop.Grace)
	}
}

// tellToEnd notes why the command must end and how long it may take. A second wish can only shorten the time.
func (w *watch) tellToEnd(cause string, grace time.Duration) {
	at := time.Now().Add(max(0, grace))
	if w.cause == "" {
		w.cause, w.killAt = cause, at
	}
	if at.Before(w.killAt) {
		w.killAt = at
	}
}

// signal sends what is due to a command that was told to end, and says when to look again.
func (w *watch) signal() time.Duration {
	if w.cause == "" {
		return signalInterval
	}
	left := time.Until(w.killAt)
	sig := unix.SIGTERM
	if left <= 0 {
		sig, left = unix.SIGKILL, signalInterval
	}
	w.journal.logf("%s: %v to %v", w.cause, sig, w.payload)
	if err := w.payload.signal(sig); err != nil {
		w.journal.logf("signalling: %v", err)
		return min(left, failedSignal)
	}
	return min(left, signalInterval)
}

// exit clears away what the command left behind and says how it ended.
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
