package runner

import (
	"context"
	"os"
	"strings"
	"time"

	"drover/internal/atomicfile"
	"drover/internal/backoff"
	"drover/internal/deadman"
)

const (
	// heardFile stores when a controller was last heard, for cleanup: `drover gc` reads it without a runner.
	heardFile = "heard"
	// holdInterval is how often the daemon holds the dead-man switch and updates heardFile.
	holdInterval = 10 * time.Second
)

// watchdog records whether anyone wants the instance. Its times since this daemon's start are by the monotonic clock.
type watchdog struct {
	heard  time.Time          // when a controller was last heard, perhaps by an earlier daemon; zero: never
	wanted time.Time          // when it last had a reason to stay: a controller heard, an attempt that ran, or this daemon's start
	off    context.CancelFunc // cancels powerOff; nil unless it is running
	broken string             // why the switch cannot be held
}

// readWatchdog counts this daemon's start as contact with a controller, since one logged in to start it. A file that
// cannot be read is ignored.
func readWatchdog() watchdog {
	v := watchdog{wanted: time.Now()}
	if text, err := os.ReadFile(heardFile); err == nil {
		v.heard, _ = time.Parse(time.RFC3339, strings.TrimSpace(string(text)))
	}
	return v
}

// hearLocked records a message from a controller of an acceptable epoch. If the instance tries to power off but cannot,
// the message cancels that.
func (d *daemon) hearLocked() {
	now := time.Now()
	d.watchdog.heard, d.watchdog.wanted = now, now
	if d.watchdog.off != nil {
		d.watchdog.off()
		d.watchdog.off = nil
	}
}

// runWatchdog holds the dead-man switch while the instance is wanted, and powers the instance off once nobody has
// wanted it for the given time; never, if that is 0.
func (d *daemon) runWatchdog(ctx context.Context, after time.Duration) {
	held := deadman.Find()
	interval := holdInterval
	if after > 0 {
		interval = min(interval, after/4)
	}
	for ctx.Err() == nil {
		left := d.wantedFor(after)
		if left <= 0 {
			d.powerOff(ctx, held, after)
			continue
		}
		d.hold(held)
		_ = backoff.For(ctx, min(interval, left))
	}
}

// wantedFor returns how much longer the instance is wanted if nothing happens. A running attempt keeps the instance
// alive. When one ends the time counts anew, since a controller may come for its results.
func (d *daemon) wantedFor(after time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range d.attempts {
		if a.exit == nil {
			d.watchdog.wanted = time.Now()
		}
	}
	if after <= 0 {
		return holdInterval
	}
	return after - time.Since(d.watchdog.wanted)
}

// hold holds the switch, records whether that works, and updates heardFile.
func (d *daemon) hold(s deadman.Switch) {
	broken := ""
	if err := s.Hold(); err != nil {
		broken = err.Error()
	}
	d.mu.Lock()
	heard := d.watchdog.heard
	d.watchdog.broken = broken
	d.mu.Unlock()
	if heard.IsZero() {
		return
	}
	if err := atomicfile.Write(heardFile, []byte(heard.UTC().Format(time.RFC3339)+"\n")); err != nil {
		d.log.Printf("recording the contact with a controller: %v", err)
	}
}

// powerOff ends the instance, unless a controller comes back while it cannot be ended.
func (d *daemon) powerOff(ctx context.Context, s deadman.Switch, after time.Duration) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d.mu.Lock()
	d.watchdog.off = cancel
	silent := time.Since(d.watchdog.wanted).Round(time.Second)
	d.mu.Unlock()
	d.log.Printf("no controller was in contact and no attempt ran for %v (the limit is %v): powering off", silent, after)
	s.PowerOff(ctx, d.log.Printf)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.watchdog.off = nil
}
