package simtest

import (
	"maps"
	"slices"
	"time"

	"drover"
	"drover/internal/engine"
)

// copied is an older copy of everything on the disk.
type copied struct {
	disk      *Disk
	submit    []engine.Job
	cancelled map[drover.JobID]int64
}

// Replace puts an older copy of a disk in its place. The store detects this by its note beside the records, and reuses
// no number that was given since.
func (d *Disk) Replace(newest *Disk, now drover.Time) {
	d.epoch = newest.epoch
	d.last = max(d.last, newest.last) + engine.Leap
	d.leapt = max(d.leapt, newest.leapt) + engine.Leap
	d.successes = newest.successes // their log lies beside the records
	d.stale = &drover.Reason{Code: drover.ReasonUnproved, Text: "the records are an older copy", Since: now}
}

// Copy returns a copy of the disk that shares no mutable data with it.
func (d *Disk) Copy() *Disk {
	c := *d
	c.Final, c.jobs, c.ended, c.elements = maps.Clone(d.Final), maps.Clone(d.jobs), maps.Clone(d.ended), maps.Clone(d.elements)
	c.attempts, c.instances, c.again = maps.Clone(d.attempts), maps.Clone(d.instances), maps.Clone(d.again)
	c.numbers, c.begun, c.lost, c.wishes = maps.Clone(d.numbers), maps.Clone(d.begun), maps.Clone(d.lost), maps.Clone(d.wishes)
	c.spending, c.spent, c.pools = maps.Clone(d.spending), maps.Clone(d.spent), maps.Clone(d.pools)
	c.had = map[int64][]share{}
	for id, shares := range d.had {
		c.had[id] = slices.Clone(shares)
	}
	return &c
}

// takeCopy copies the disk, as a backup would.
func (w *World) takeCopy() {
	w.copied = copied{w.Disk.Copy(), slices.Clone(w.submit), maps.Clone(w.promises.cancelled)}
	w.raise()
}

// raise starts everything that the copy does not start by itself. A person wishes for that after the copy is made, and
// again after it is put back.
func (w *World) raise() {
	if w.peopled() {
		w.after(w.within(time.Minute), func() { w.wish(engine.QueueAsked{Resume: true}) })
	}
	for _, j := range w.recipe.Jobs {
		if j.Priority == 0 {
			w.raiseSoon(j.Number)
		}
	}
}

func (w *World) raiseSoon(job int64) {
	w.after(w.within(time.Minute), func() {
		_, there := w.Disk.jobs[job]
		_, ended := w.Disk.ended[job]
		switch {
		case w.over || ended:
		case there:
			w.wish(engine.PriorityAsked{Job: job, Again: w.Disk.again[job], Priority: 1})
		default: // no controller has it yet
			w.raiseSoon(job)
		}
	})
}

// putBack replaces the disk with the copy. What runs on instances keeps running, and nobody knows what the controller
// has learned and done since the copy.
func (w *World) putBack() {
	if w.over {
		return
	}
	newest, c := w.Disk, w.copied
	w.Disk = c.disk.Copy()
	w.Disk.Replace(newest, w.now)
	if n := len(w.Disk.successes); n > 0 && w.roll(3) == 0 { // the log lacks the last few
		w.Disk.successes = w.Disk.successes[:w.roll(n)]
	}
	w.paused = w.Disk.paused != nil
	w.submit, w.promises.cancelled = slices.Clone(c.submit), maps.Clone(c.cancelled)
	reclaimed := map[*vm]bool{}
	for _, in := range w.Disk.instances {
		if v := w.vmOf(in); v != nil {
			reclaimed[v] = in.Reclaimed != nil
		}
	}
	for _, cl := range w.clouds {
		for _, v := range cl.vms {
			v.book = book{}
			v.taken = v.taken && reclaimed[v] // unless a controller hears of it again
			w.bury(v)
			if w.roll(3) == 0 { // a controller hears from it only later
				v.hang(w.now.Add(w.within(5 * time.Minute)))
			}
		}
	}
	w.older = true
	w.raise()
	if w.controller.alive() {
		w.kill()
	}
}

// bury ends attempts on an instance that survived SIGKILL. No record says that they were ordered to end, or none will
// once the controller that ordered it has died.
func (w *World) bury(v *vm) {
	for _, r := range v.runs {
		if r.undead {
			w.after(w.within(5*time.Minute), func() {
				r.undead = false
				w.ends(r, drover.Exit{Code: 137, Signal: "killed", Cause: drover.CauseStopped})
			})
		}
	}
}
