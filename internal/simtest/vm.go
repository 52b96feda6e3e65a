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
	pool     string              // its tag of its pool
	template string              // and of the template that it was made from
	owner    string              // its tag of whose it is
	first    *string             // the user whose job was the first on it
	shownTag drover.IdleBehavior // what a list said of it last
	missing  drover.Time         // as of when the last list that a controller has heard left it out, by that one's clock; 0: it did not
	disk     drover.Bytes        // of its volume; 0: its disk comes with its type

	// As its cloud has it.
	created   drover.Time // its bill begins
	appears   drover.Time // in lists
	billed    drover.Time // its bill ended then; 0: it goes on
	destroyed bool        // a destroy ended it
	gone      drover.Time // from lists; 0: never
	stopped   bool        // its cloud stopped it, or it powered itself off
	off       bool        // it was stopped because a controller asked for that
	kept      drover.Time // its tag of when
	reclaimed bool
	unmade    *drover.Error // why its cloud could not make it
	hides     drover.Time   // from lists, from then on
	back      drover.Time   // in lists, from then on
	lacking   drover.Time   // when the first of the lists began that lack it, by its controller's clock; 0: the last has it
	lacked    drover.Time   // when the last list was asked for that lacks it
	seen      look
	madeFor   *controller // that was told of it when it was made
	candid    bool        // its cloud lists it as being destroyed when it is
	dated     bool        // its cloud says when it ended
	located   drover.Time // when its cloud tells its address

	createTold string // its address, as its create call said

	// As it is.
	alive    bool
	boots    drover.Time // when it answers; 0: never
	hangs    drover.Time // until then it cannot be reached
	stuck    drover.Time // until then commands on it hang
	full     drover.Time // until then its disk is
	bad      bool        // its boot probe fails
	ill      string      // what it says is wrong with it
	notice   *drover.Notice
	taken    bool          // a controller knows that its cloud takes it back
	key      string        // that it proves to hold
	clock    time.Duration // how far its clock is ahead
	address  string        // where it answers
	moves    int           // how often that has changed
	versions []version     // of what lists may show as it was
	runs     []*run
	fence    map[fenced]int // the highest attempt seen
	unfit    unfit          // how its health checks fail
	proved   int            // the life of the controller that has seen its boot probe
	failed   bool           // a controller was told that the probe failed

	// Its control stream.
	link     *controller   // nil: none
	number   int64         // the engine's, over the link
	session  int           // of its links
	halfOpen bool          // nothing comes through, and nobody has noticed
	heard    drover.Time   // when its controller last heard of it
	quiet    time.Duration // how long controllers before have listened to it in vain since it was last heard
	unheard  drover.Time   // since when it has no link, 0 while it has one
	untold   int           // how many cuts of its links the controller has still to be told of
	lost     drover.Time   // since when it has had no controller

	book book
}

// there reports whether the cloud has the instance.
func (v *vm) there() bool { return v.gone == 0 || v.w.now < v.gone }

// ended reports whether the cloud has taken it away, or will without being told again.
func (v *vm) ended() bool { return v.gone != 0 }

// unbill ends the instance's bill, if it goes on.
func (v *vm) unbill() {
	if v.billed == 0 {
		v.billed = v.w.now
	}
}

// destroy ends the instance because it was asked for.
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

// vanish ends the instance by itself.
func (v *vm) vanish() {
	v.die()
	if v.gone == 0 {
		v.gone = v.w.now.Add(v.w.within(time.Minute))
	}
}

// die ends all that runs on the instance, and its bill.
func (v *vm) die() {
	v.unbill()
	v.alive = false
	v.w.stopAll(v)
	v.w.cut(v)
}

// stopAll ends what runs on an instance without a word.
func (w *World) stopAll(v *vm) {
	for _, r := range v.runs {
		if w.running[r.id.Job] == r {
			delete(w.running, r.id.Job)
		}
	}
}

// reclaim has the cloud take the instance back: it is seen to be stopped, or reclaimed for a while, or is just gone.
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

// noticed is how long before it takes an instance back a cloud says so.
const noticed = 2 * time.Minute

// interrupt has the cloud say that it will take the instance back, and do it, mostly.
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

// hang has nobody reach the instance for a while.
func (v *vm) hang(until drover.Time) {
	if until > v.w.now {
		v.hangs = max(v.hangs, until)
		v.w.cut(v)
	}
}

// reboot ends what runs on the instance in a way that its runner can tell when it is back.
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

// tell has the runner say something to its controller, if that hears it.
func (v *vm) tell(body engine.Body) {
	if to := v.link; to != nil && !v.halfOpen {
		v.w.after(v.w.within(50*time.Millisecond), func() { to.take(body) })
	}
}

// cut ends an instance's control stream, if there is one, of which its controller soon hears: not before it goes on, if
// it is stopped.
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

// orphan has an instance look, when it has heard from nobody for long, whether to power itself off. In clouds where
// that does not end the bill it is seen to be stopped.
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

// misfortune has something befall an instance now and then.
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

// patience is the most that it takes a controller to notice that a connection is dead.
const patience = 30 * time.Second

// goDeaf has nothing come through the instance's control stream any more, until its controller notices.
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
