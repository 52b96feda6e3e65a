package simtest

import (
	"fmt"
	"slices"
	"time"

	"drover"
	"drover/internal/engine"
)

// vm is an instance of a modelled cloud.
type vm struct {
	w        *World
	cloud    *cloud
	provider string
	name     string
	offering drover.Offering
	tag      drover.IdleBehavior
	pool     string              // its pool tag
	template string              // its template tag
	owner    string              // its owner tag
	first    *string             // the user whose job was the first on it
	shownTag drover.IdleBehavior // its idle tag in the last list
	missing  drover.Time         // start of the last received list that left it out, by that controller's clock; 0: it was listed
	disk     drover.Bytes        // size of its volume; 0: its disk comes with its type

	// As its cloud sees it.
	created   drover.Time // when its bill begins
	appears   drover.Time // when lists begin to show it
	billed    drover.Time // when its bill ended; 0: still running
	destroyed bool        // a destroy ended it
	gone      drover.Time // when lists stop showing it; 0: never
	stopped   bool        // its cloud stopped it, or it powered itself off
	off       bool        // it was stopped at a controller's request
	kept      drover.Time // its tag with the time at which it was stopped
	reclaimed bool
	unmade    *drover.Error // why its cloud could not make it
	hides     drover.Time   // when lists begin to lack it for a while
	back      drover.Time   // when lists show it again
	lacking   drover.Time   // start of the first list that lacks it, by its controller's clock; 0: the last list has it
	lacked    drover.Time   // when the last list that lacks it was requested
	seen      look
	madeFor   *controller // the controller that received the create call's answer
	candid    bool        // its cloud lists it as being destroyed
	dated     bool        // its cloud reports when it ended
	located   drover.Time // when its cloud reports its address

	createTold string // its address in the create call's answer

	// As it really is.
	alive    bool
	boots    drover.Time // when it answers; 0: never
	hangs    drover.Time // it is unreachable until then
	stuck    drover.Time // commands on it hang until then
	full     drover.Time // its disk is full until then
	bad      bool        // its boot probe fails
	ill      string      // what it reports is wrong with it
	notice   *drover.Notice
	taken    bool          // a controller knows of its interruption
	key      string        // the host key that it proves
	clock    time.Duration // how far its clock is ahead
	address  string        // where it answers
	moves    int           // how often its address changed
	versions []version     // past states that lists may show
	runs     []*run
	fence    map[fenced]int // the highest attempt number seen, by job
	unfit    unfit          // how its health checks fail
	proved   int            // the last controller life that saw its boot probe
	failed   bool           // a controller was told that the probe failed

	// Its control stream.
	link     *controller   // nil: none
	number   int64         // the engine's number for it, over the link
	session  int           // number of its current link
	halfOpen bool          // nothing gets through, and nobody has noticed
	heard    drover.Time   // when its controller last heard from it
	quiet    time.Duration // how long previous controllers have listened without hearing from it
	unheard  drover.Time   // since when it has had no link; 0 while it has one
	untold   int           // how many link cuts the controller does not know of yet
	lost     drover.Time   // since when it has had no controller

	book book
}

// there reports whether the cloud has the instance.
func (v *vm) there() bool { return v.gone == 0 || v.w.now < v.gone }

// ended reports whether the instance is gone, or will be without another destroy.
func (v *vm) ended() bool { return v.gone != 0 }

// unbill ends the instance's bill, if it is still running.
func (v *vm) unbill() {
	if v.billed == 0 {
		v.billed = v.w.now
	}
}

// destroy ends the instance at a controller's request.
func (v *vm) destroy() {
	v.destroyed = v.destroyed || v.billed == 0
	v.die()
	if v.gone == 0 {
		v.gone = v.w.now.Add(v.w.within(30 * time.Second))
		if v.w.happens(Lingers) {
			v.gone = v.gone.Add(v.w.within(5 * time.Minute))
		}
	}
}

// vanish ends the instance without a request.
func (v *vm) vanish() {
	v.die()
	if v.gone == 0 {
		v.gone = v.w.now.Add(v.w.within(time.Minute))
	}
}

// die ends everything that runs on the instance, and its bill.
func (v *vm) die() {
	v.unbill()
	v.alive = false
	v.w.stopAll(v)
	v.w.cut(v)
}

// stopAll ends all attempts on an instance without a report.
func (w *World) stopAll(v *vm) {
	for _, r := range v.runs {
		if w.running[r.id.Job] == r {
			delete(w.running, r.id.Job)
		}
	}
}

// reclaim makes the cloud interrupt the instance: it is listed as stopped, or briefly as reclaimed, or just vanishes.
func (v *vm) reclaim() {
	if !v.alive {
		return
	}
	switch v.w.roll(3) {
	case 0:
		v.die()
		v.reclaimed, v.stopped = true, true
	case 1:
		v.reclaimed = true
		v.vanish()
		v.gone = v.gone.Add(2 * time.Minute)
	default:
		v.vanish()
	}
}

// noticed is how long a cloud's notice precedes the interruption.
const noticed = 2 * time.Minute

// interrupt makes the cloud announce an interruption, and mostly carry it out.
func (v *vm) interrupt() {
	w := v.w
	if !v.alive || v.notice != nil || !v.reachable() {
		return
	}
	v.notice = &drover.Notice{Cause: "spot interruption", Deadline: w.now.Add(noticed + v.clock)}
	v.tell(engine.Noticed{Instance: v.number, Notice: *v.notice})
	for _, r := range v.runs {
		w.after(w.within(noticed), func() { w.ends(r, drover.Exit{Code: 143, Signal: "terminated", Cause: drover.CauseInterrupted}) })
	}
	if w.roll(4) > 0 {
		w.after(noticed, v.reclaim)
	}
}

// move gives the instance another address.
func (v *vm) move() {
	v.moves++
	v.address = fmt.Sprintf("%s-%d", v.provider, v.moves)
	v.change()
}

// hang makes the instance unreachable for a while.
func (v *vm) hang(until drover.Time) {
	if until > v.w.now {
		v.hangs = max(v.hangs, until)
		v.w.cut(v)
	}
}

// reboot ends all attempts on the instance; its runner can report that once it is back.
func (v *vm) reboot() {
	for _, r := range slices.Clone(v.runs) {
		v.w.ends(r, drover.Exit{Code: 137, Cause: drover.CauseLost})
	}
	v.w.cut(v)
	v.boots = v.w.now.Add(v.w.within(time.Minute))
}

// reachable reports whether the instance would answer.
func (v *vm) reachable() bool {
	return v.alive && v.boots != 0 && v.w.now >= max(v.boots, v.hangs)
}

// tell sends a report of the runner to its controller, if the link works.
func (v *vm) tell(body engine.Body) {
	if to := v.link; to != nil && !v.halfOpen {
		v.w.after(v.w.within(50*time.Millisecond), func() { to.take(body) })
	}
}

// cut ends an instance's control stream, if there is one. Its controller learns of it soon, or once it resumes if it is
// paused.
func (w *World) cut(v *vm) {
	if v == nil || v.link == nil {
		return
	}
	to, ev := v.link, engine.Disconnected{Instance: v.number, Heard: v.link.now(), Text: "reset"}
	if v.halfOpen {
		ev.Heard = v.heard
	}
	v.link, v.halfOpen, v.heard, v.unheard = nil, false, ev.Heard, max(w.now, to.until)
	v.untold++
	if to.links[v.number] == v {
		delete(to.links, v.number)
	}
	w.after(w.within(20*time.Second), func() { to.take(ev) })
	w.orphan(v)
}

// orphanTimeout is how long an instance waits for a controller before it powers itself off.
const orphanTimeout = time.Hour

// orphan makes an instance that has long had no controller decide whether to power itself off. In clouds where that
// does not end the bill, it is listed as stopped.
func (w *World) orphan(v *vm) {
	since := w.now
	v.lost = since
	w.after(orphanTimeout, func() {
		switch {
		case !v.alive || v.link != nil || v.lost != since:
		case slices.ContainsFunc(v.runs, func(r *run) bool { return r.exit == nil }):
			w.orphan(v)
		case v.cloud == w.clouds[0]:
			v.vanish()
		default:
			v.die()
			v.stopped = true
		}
	})
}

// misfortune sometimes causes a fault on an instance.
func (v *vm) misfortune() {
	w := v.w
	switch {
	case w.happens(Death):
		v.vanish()
	case v.offering.Market == drover.Spot && w.happens(Reclaimed):
		v.reclaim()
	case v.offering.Market == drover.Spot && w.happens(Interrupted):
		v.interrupt()
	case w.happens(Reboot):
		v.reboot()
	case w.happens(Hang):
		v.hang(w.now.Add(w.within(10 * time.Minute)))
	case w.happens(Cut):
		w.cut(v)
	case w.happens(HalfOpen):
		v.goDeaf()
	case w.happens(Moved):
		v.move()
		w.cut(v)
	case w.happens(WrongKey):
		v.key = "another"
		w.cut(v)
	case w.happens(ProbeFails):
		v.bad = true
	case w.happens(ProbeHangs):
		v.stuck = w.now.Add(w.within(5 * time.Minute))
	case w.happens(DiskFull):
		v.full = w.now.Add(w.within(10 * time.Minute))
	case w.happens(Ailing):
		v.ill = "its disk is slow"
		v.tell(engine.HealthReported{Instance: v.number, Text: v.ill})
	}
}

// patience is the longest time until a controller notices that a connection is dead.
const patience = 30 * time.Second

// goDeaf blocks the instance's control stream until its controller notices.
func (v *vm) goDeaf() {
	to := v.link
	if to == nil || v.halfOpen {
		return
	}
	v.halfOpen, v.heard = true, to.now()
	v.w.after(5*time.Second+v.w.within(patience-5*time.Second), func() {
		if v.link == to && v.halfOpen {
			v.w.cut(v)
		}
	})
}
