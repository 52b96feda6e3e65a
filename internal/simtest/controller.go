package simtest

import (
	"context"
	"errors"
	"slices"
	"time"

	"drover"
	"drover/internal/engine"
	"drover/internal/loop"
	"drover/internal/pack"
)

// controller is one life of the controller, from its start until it is killed.
type controller struct {
	w     *World
	life  int
	born  drover.Time
	loop  *loop.Loop
	links map[int64]*vm // by the engine's number

	settings engine.Settings // the settings that it was given
	decided  []drover.Time   // when each write that waits for its commit was decided
	decides  drover.Time     // when the write now being committed was decided
	planned  drover.Time     // when the last plan came

	offered map[string]drover.Time // when each cloud's types first came

	until  drover.Time // it is stopped, or waits for its disk, until then
	looks  drover.Time // since when it has been looking without a gap; by its own clock
	drains bool        // it was asked to drain
	frozen bool        // so it handles what comes meanwhile only then
	inbox  []engine.Event
	steps  int           // that it has taken
	faults int           // number of faults when the engine was last checked
	alone  bool          // the step has a single event, so its decision follows from what is written down
	wakes  int           // number of the wake that is valid
	lag    time.Duration // of its last commit
	doomed bool          // it is killed within the current step

	lists    map[string]int64       // the last list that was answered, by cloud
	prices   map[string]*pricesTold // by cloud
	calls    map[int64]string       // creates in flight, by effect: their cloud
	accepted map[int64]*vm          // destroys that were accepted, by effect
	lack     map[int64][]*vm        // instances that lists still to be delivered lack, by effect
	noCreate map[string]drover.Time
	noList   map[string]drover.Time // earliest next list by rate limit, by cloud
	refusals []*refusal             // of creates
	impostor map[int64]bool         // instances that did not prove who they are
	cries    map[int64]drover.Time  // broken instances: until when their hooks may run
	unmade   []unmade               // instances that the current step reports could not be made
}

// boot starts a controller with what is on the disk.
func (w *World) boot() {
	w.lives++
	c := &controller{
		w: w, life: w.lives, born: w.now, links: map[int64]*vm{}, lists: map[string]int64{}, prices: map[string]*pricesTold{}, offered: map[string]drover.Time{}, calls: map[int64]string{}, accepted: map[int64]*vm{}, lack: map[int64][]*vm{}, noCreate: map[string]drover.Time{},
		noList: map[string]drover.Time{}, impostor: map[int64]bool{}, cries: map[int64]drover.Time{},
	}
	state := w.Disk.Begin()
	w.Disk.told(state)
	eng, err := engine.New(state)
	if err != nil {
		w.fail("beginning: %v", err)
		return
	}
	c.loop = &loop.Loop{Engine: eng, Store: c, Outside: c, Recorder: recorders{c, tracer{w}, w.recorder(state)}}
	w.controller = c
	c.looks = c.now()
	opening := []engine.Body{engine.Configured{Settings: w.settings}, engine.Submitted{Jobs: slices.Clone(w.submit)}}
	for _, b := range slices.Concat(opening, w.wished(), w.wishes) {
		c.inbox = append(c.inbox, engine.Event{At: c.now(), Body: b})
	}
	c.resume()
}

func (w *World) recorder(s engine.State) loop.Recorder {
	if w.Record == nil {
		return nil
	}
	return w.Record(s)
}

// now is the time by the controller's clock.
func (c *controller) now() drover.Time { return c.w.now.Add(c.w.leapt) }

// alive reports whether this is the present controller and has not been killed.
func (c *controller) alive() bool { return c.w.controller == c && c.loop != nil }

// kill ends the controller and starts another later.
func (w *World) kill() {
	c := w.controller
	c.listened()
	c.loop = nil
	for _, cl := range w.clouds {
		cl.forsaken(c)
	}
	pause := w.within(time.Minute)
	if w.happens(Orphaned) {
		pause = w.within(4 * time.Hour)
	}
	w.after(pause, func() {
		if w.controller == c {
			w.boot()
		}
	})
}

// take delivers an event, now or when the controller is able to handle it.
func (c *controller) take(body engine.Body) {
	if !c.alive() {
		return
	}
	c.inbox = append(c.inbox, engine.Event{At: c.now(), Body: body})
	if c.w.now >= c.until {
		c.resume()
	}
}

// resume handles the events that have arrived meanwhile.
func (c *controller) resume() {
	events := c.inbox
	c.inbox = nil
	if c.frozen {
		for i := range events {
			events[i].At = c.now()
		}
	}
	c.frozen = false
	for len(events) > 0 && c.alive() {
		if c.w.now < c.until {
			c.inbox = append(events, c.inbox...)
			return
		}
		n := together(events)
		c.step(events[:n])
		events = events[n:]
	}
}

// together is how many of the next events one step handles. A wish comes alone, so that the step can check a promise
// about it.
func together(events []engine.Event) int {
	for i, ev := range events {
		switch ev.Body.(type) {
		case engine.Configured, engine.DrainAsked, engine.CloseAsked, engine.CancelAsked, engine.PriorityAsked, engine.InstructAsked, engine.QueueAsked, engine.ResizeAsked, engine.GroupAsked, engine.CreateFailed:
			return max(i, 1)
		}
	}
	return len(events)
}

// step lets the engine decide.
func (c *controller) step(events []engine.Event) {
	w := c.w
	if w.broken != nil {
		return
	}
	w.Events += len(events)
	c.alone = len(events) == 1
	for _, ev := range events {
		c.answered(ev)
	}
	twin := c.twin()
	wake, err := c.loop.Step(context.Background(), events)
	switch {
	case err != nil && !errors.Is(err, errDisk):
		w.fail("%v", err)
		return
	case err != nil:
		w.kill()
		return
	}
	c.sameAs(twin, events)
	c.addsUp()
	for _, ev := range events {
		c.heard(ev)
	}
	if len(events) == 1 { // otherwise another event may have ended it before
		c.mayFail()
	}
	c.unmade = nil
	if c.doomed || w.happens(Crash) {
		w.kill()
		return
	}
	if c.steps++; c.steps%slack == 0 {
		w.glance()
	}
	w.taken()
	c.rest(wake)
	w.person()
}

// listened records how long the controller has listened without hearing from each silent instance. It is called before
// a time in which the controller does not listen.
func (c *controller) listened() {
	for _, cl := range c.w.clouds {
		for _, v := range cl.vms {
			if v.link == nil && v.heard != 0 {
				v.quiet += max(0, c.now().Sub(max(v.heard, c.looks)))
			}
		}
	}
}

// blink is the longest gap in its looking that a controller need not notice.
const blink = 20 * time.Second

// rest waits for the wake that the engine requested, or longer.
func (c *controller) rest(wake drover.Time) {
	c.wakes++
	pause := c.lag
	switch {
	case c.w.happens(Freeze):
		c.listened()
		pause += blink + c.w.within(10*time.Minute)
		c.frozen, c.looks = true, c.now().Add(pause)
	case c.w.happens(Leap):
		c.listened()
		c.w.leapt += blink + c.w.within(30*time.Minute)
		c.looks = c.now()
	}
	if c.lag = 0; pause > 0 {
		c.until = c.w.now.Add(pause)
		c.w.after(pause, func() { c.wakeUp() })
	}
	if wake == 0 {
		return
	}
	n := c.wakes
	c.w.after(max(wake.Sub(c.now()), pause), func() {
		if n == c.wakes {
			c.take(engine.Ticked{})
		}
	})
}

func (c *controller) wakeUp() {
	if c.alive() && c.w.now >= c.until {
		c.resume()
	}
}

// Append records when the coming writes were decided. Events of one step each have their own time.
func (c *controller) Append(ev engine.Event, d engine.Decision) {
	for range d.Writes {
		c.decided = append(c.decided, ev.At)
	}
	for _, f := range d.Effects {
		if f.Fire != nil { // the loop writes it down as well
			c.decided = append(c.decided, ev.At)
		}
	}
}

// Commit writes to the disk, unless the disk fails.
func (c *controller) Commit(ctx context.Context, writes []engine.Write) error {
	w, decided := c.w, c.decided
	c.decided = c.decided[:0]
	if w.happens(CommitFails) {
		return errDisk
	}
	for i := range writes {
		c.decides = decided[i]
		w.mayWrite(writes[i])
		if err := w.Disk.Commit(ctx, writes[i:i+1]); err != nil {
			return err
		}
	}
	w.mayBeTogether(writes)
	w.mayAsk(writes, decided)
	if w.happens(CommitLost) {
		return errDisk
	}
	if w.happens(Lag) {
		c.lag = w.within(20 * time.Second)
	}
	return nil
}

// Release begins the effects, or only the first few.
func (c *controller) Release(effects []engine.Effect, _ []engine.Note) {
	if len(effects) > 0 && c.w.happens(HalfDone) {
		effects, c.doomed = effects[:c.w.roll(len(effects))], true
	}
	for _, f := range effects {
		c.mayDo(f)
		session := 0
		switch {
		case f.Start != nil:
			session = c.session(f.Start.Instance)
		case f.Forget != nil:
			session = c.session(f.Forget.Instance)
		}
		c.w.after(c.lag+c.w.within(50*time.Millisecond), func() { c.do(f, session) })
	}
}

// reply answers the controller after a while.
func (c *controller) reply(most time.Duration, body engine.Body) {
	c.w.after(c.w.within(most), func() { c.take(body) })
	if c.w.happens(Doubled) {
		c.w.after(c.w.within(2*most), func() { c.take(body) })
	}
}

// do carries out an effect. Start and Forget go over the link that existed when they were released.
func (c *controller) do(f engine.Effect, session int) {
	switch {
	case f.ListOfferings != nil:
		c.offer(f.ID, *f.ListOfferings)
	case f.ListInstances != nil:
		c.list(f.ID, c.w.cloud(f.ListInstances.Cloud))
	case f.Describe != nil:
		c.describe(f.ID, *f.Describe)
	case f.Create != nil:
		c.create(f.ID, *f.Create)
	case f.Destroy != nil:
		c.destroy(f.ID, *f.Destroy)
	case f.Switch != nil:
		c.switchInstance(f.ID, *f.Switch)
	case f.SetTags != nil:
		c.setTags(f.ID, *f.SetTags)
	case f.GrowDisk != nil:
		c.growDisk(f.ID, *f.GrowDisk)
	case f.Connect != nil:
		c.connect(f.ID, *f.Connect)
	case f.Disconnect != nil:
		c.w.cut(c.links[f.Disconnect.Instance])
	case f.Start != nil:
		c.start(f.ID, *f.Start, session)
	case f.Stop != nil:
		c.stop(*f.Stop)
	case f.Collect != nil:
		c.collect(f.ID, *f.Collect)
	case f.Forget != nil:
		c.forget(*f.Forget, session)
	case f.Fire != nil && f.Fire.Hook == drover.HookBroken:
		c.reply(2*engine.HookTime, engine.Fired{Effect: f.ID, Instance: f.Fire.Instance})
	case f.Solve != nil:
		plan := pack.Solve(*f.Solve)
		c.w.spreads(*f.Solve, plan)
		c.reply(100*time.Millisecond, engine.Solved{Effect: f.ID, Plan: plan})
	}
}
