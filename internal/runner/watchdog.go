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
	// heardFile says when a controller was last heard, for those who come to clean up: `drover gc` reads it without any
	// runner's help.
	heardFile = "heard"
	// holdInterval is how often the dead-man switch is told that the instance is wanted, and the file that a controller
	// is heard.
	holdInterval = 10 * time.Second
)

// watchdog is what the daemon knows of whether anybody wants the instance. Its times count by the clock that runs while
// the instance does.
type watchdog struct {
	heard  time.Time          // when a controller was last heard, by an earlier daemon perhaps; zero: never
	wanted time.Time          // when it last had a reason to stay: a controller heard, an attempt that ran, or this daemon's start
	off    context.CancelFunc // ends the powering off; nil unless that goes on
	broken string             // why the switch cannot be told that the instance is wanted
}

// readWatchdog begins with this daemon: whoever started it could log in. A file that cannot be read says nothing.
func readWatchdog() watchdog {
	v := watchdog{wanted: time.Now()}
	if text, err := os.ReadFile(heardFile); err == nil {
		v.heard, _ = time.Parse(time.RFC3339, strings.TrimSpace(string(text)))
	}
	return v
}

// hearLocked notes that a controller of an acceptable epoch has said something. One that comes back while the instance
// powers off, and cannot, has it again.
func (d *daemon) hearLocked() {
	now := time.Now()
	d.watchdog.heard, d.watchdog.wanted = now, now
	if d.watchdog.off != nil {
		d.watchdog.off()
		d.watchdog.off = nil
	}
}

// runWatchdog tells the dead-man switch that the instance is wanted, and powers it off itself once nobody has wanted it
// for the time given; never, if that is 0.
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

// wantedFor is how much longer the instance is wanted if nothing happens. An attempt that runs is a reason to stay, and
// so is one that has just ended: for as long again somebody may come for its results.
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

// hold tells the switch and the file how things stand.
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
	d.log.Printf("it has not heard from a controller and has run no attempt for %v (the limit is %v): this instance powers itself off", silent, after)
	s.PowerOff(ctx, d.log.Printf)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.watchdog.off = nil
}
