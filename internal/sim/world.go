// Package sim is a modelled world around the real engine and the real loop: a cloud, its instances, their runners and a disk, under one
// seed, with as much bad luck as is asked for. The promises that the product makes are checked as the world goes on.
//
// The model: every effect lands in the world after a while, whether or not the controller that asked for it still lives, and its answer
// comes a while later, if that controller does. Time jumps from one thing that happens to the next.
package sim

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"drover"
	"drover/internal/engine"
	"drover/internal/loop"
	"drover/internal/pack"
)

// Luck is how often things go wrong, as one in so many; 0 is never. Nothing goes wrong after Until.
type Luck struct {
	Crash       int // the controller is killed after a step
	Freeze      int // the controller is stopped for a while, and goes on
	Commit      int // a commit fails
	CreateFails int // a create is refused, for lack of quota or capacity
	CreateLost  int // a create's answer is lost
	ListFails   int // a list fails
	BootFails   int // an instance never answers
	Death       int // an instance dies, at each thing that happens to it
	Cut         int // a connection is cut, likewise
	Hang        int // an instance cannot be reached for a while, and runs on, likewise
	ProbeFails  int // an instance's boot probe fails from now on, likewise
	ListMisses  int // an instance that is there is missing from a list
	DestroyLost int // a destroy is accepted and nothing comes of it
	TagFails    int // tags cannot be set, or were and the answer is lost
	Stubborn    int // an attempt does not end when it is told to
	People      int // a person wishes for something after a step: verbs, priorities, jobs done again, another configuration, a drained controller
	Until       time.Duration

	GiveUp time.Duration // cancel everything and close the fleet after this long, as an impatient person would; 0: when all is done
	Lose   time.Duration // lose the store after this long; 0: never
}

// World is the modelled world.
type World struct {
	Disk   *Disk
	Record func(engine.State) loop.Recorder // begins a recording for each controller; nil for none
	Events int                              // taken by engines
	Faults int                              // that happened

	rng      *rand.Rand
	luck     Luck
	settings engine.Settings
	begin    drover.Time
	now      drover.Time
	seq      int
	queue    agenda
	loop     *loop.Loop
	wake     int // number of the wake that is valid
	vms      map[string]*vm
	made     int             // instances, ever
	seen     map[string]bool // by this controller's lists
	running  map[drover.JobID]*run
	broken   error
	submit   []engine.Job // not yet known to be taken
	wishes   []engine.Body
	jobs     []engine.Job    // as they were submitted
	killed   map[string]bool // instances that somebody told to die, by name
	released map[string]bool // or to take work again
	before   seen            // the last step
	relented bool            // nobody wishes for anything any more but that all jobs succeed
}

// NewWorld makes a world in which a controller is to begin with the settings and the jobs.
func NewWorld(seed uint64, luck Luck, settings engine.Settings, jobs []engine.Job) *World {
	return &World{
		Disk: NewDisk(), rng: rand.New(rand.NewPCG(seed, 0)), luck: luck, settings: settings, begin: drover.Time(1e18), now: drover.Time(1e18),
		vms: map[string]*vm{}, running: map[drover.JobID]*run{}, submit: jobs,
		jobs: jobs, killed: map[string]bool{}, released: map[string]bool{},
	}
}

// happening is something that is to happen.
type happening struct {
	at  drover.Time
	seq int
	do  func()
}

type agenda []happening

func (a agenda) Len() int      { return len(a) }
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a agenda) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].seq < a[j].seq
}
func (a *agenda) Push(x any) { *a = append(*a, x.(happening)) }
func (a *agenda) Pop() any {
	last := len(*a) - 1
	x := (*a)[last]
	*a = (*a)[:last]
	return x
}

// after has something happen in a while.
func (w *World) after(d time.Duration, do func()) {
	w.seq++
	heap.Push(&w.queue, happening{w.now.Add(d), w.seq, do})
}

// delay is a while between nothing and most.
func (w *World) delay(most time.Duration) time.Duration {
	return time.Duration(w.rng.Int64N(int64(most)))
}

// chance reports whether the one in n happens now.
func (w *World) chance(n int) bool {
	if n == 0 || w.now.Sub(w.begin) > w.luck.Until || w.rng.IntN(n) != 0 {
		return false
	}
	w.Faults++
	return true
}

// fail ends the run with what was found.
func (w *World) fail(format string, args ...any) {
	if w.broken == nil {
		w.broken = fmt.Errorf("at %v: %s", w.now.Sub(w.begin), fmt.Sprintf(format, args...))
	}
}

// Run lets the world go on until the engine is at rest and nothing is left in the cloud, and says what promise was broken, if one was.
// A world that takes more than limit of its own time has come to no rest.
func (w *World) Run(limit time.Duration) error {
	w.boot()
	if w.luck.GiveUp > 0 {
		w.after(w.luck.GiveUp, w.giveUp)
	}
	if w.luck.Lose > 0 {
		w.after(w.luck.Lose, w.loseStore)
	}
	if w.luck.People > 0 {
		w.after(w.luck.Until+calm, w.relent)
	}
	for w.broken == nil {
		if w.loop.Engine.AtRest() && w.Disk.closing && w.loop.Store != nil && len(w.submit) == 0 {
			return w.leaks()
		}
		if len(w.queue) == 0 {
			return fmt.Errorf("nothing will ever happen again: %+v", w.loop.Engine.Status())
		}
		next := heap.Pop(&w.queue).(happening)
		w.now = max(w.now, next.at)
		if w.now.Sub(w.begin) > limit {
			return fmt.Errorf("no rest after %v: %+v", limit, w.loop.Engine.Status())
		}
		next.do()
	}
	return w.broken
}

// leaks is what the cloud still has when the engine says that nothing is left. A controller would end now and never look again.
func (w *World) leaks() error {
	w.now = w.now.Add(time.Minute)
	for len(w.queue) > 0 && w.queue[0].at <= w.now {
		heap.Pop(&w.queue).(happening).do()
	}
	for _, v := range w.vms {
		if v.listed {
			return fmt.Errorf("instance %s is there although the fleet is at rest", v.name)
		}
	}
	return w.broken
}

// giveUp is the wish to end, made to whichever controller lives then; it is durable, so the next one knows it.
func (w *World) giveUp() {
	w.wishes = []engine.Body{engine.CancelAsked{All: true, Reason: drover.Reason{Code: drover.ReasonCancelled}}, engine.CloseAsked{}}
	if w.loop.Store != nil {
		w.step(w.wishes...)
	}
}

// boot begins a controller with what the disk holds.
func (w *World) boot() {
	state := w.Disk.Begin()
	w.loop = &loop.Loop{Store: w.Disk}
	if w.Record != nil {
		w.loop.Recorder = w.Record(state)
	}
	var err error
	if w.loop.Engine, err = engine.New(state); err != nil {
		w.fail("beginning: %v", err)
		return
	}
	w.loop.Outside = &controller{w, w.loop}
	w.seen = map[string]bool{}
	for _, v := range w.vms {
		v.link = nil
	}
	opening := []engine.Body{engine.Configured{Settings: w.settings}, engine.Submitted{Jobs: w.submit}}
	w.step(slices.Concat(opening, w.wished(), w.wishes)...)
}

// step has the present controller take events in.
func (w *World) step(bodies ...engine.Body) {
	if w.broken != nil {
		return
	}
	var events []engine.Event
	for _, b := range bodies {
		events = append(events, engine.Event{At: w.now, Body: b})
	}
	w.Events += len(events)
	w.Disk.fail = w.chance(w.luck.Commit)
	wake, err := w.loop.Step(context.Background(), events)
	w.Disk.fail = false
	switch {
	case err != nil && !errors.Is(err, errDisk):
		w.fail("%v", err)
	case err != nil:
		w.crash()
		return
	}
	if w.luck.People > 0 {
		w.promises()
	}
	if w.chance(w.luck.Crash) {
		w.crash()
		return
	}
	w.taken()
	w.sleep(wake)
	w.person()
}

// taken drops the submitted jobs that are durable, and wishes for the end once all are final.
func (w *World) taken() {
	left := w.submit[:0:0]
	for _, j := range w.submit {
		_, queued := w.Disk.jobs[j.Number]
		_, ended := w.Disk.ended[j.Number]
		if j.Again > w.Disk.lastAgain || j.Again == 0 && !queued && !ended {
			left = append(left, j)
		}
	}
	w.submit = left
	if !w.allFinal() || w.Disk.closing || w.luck.People > 0 && !w.relented {
		return
	}
	if w.retry(); w.allFinal() {
		l := w.loop
		w.after(0, func() { w.answer(l, engine.CloseAsked{}) })
	}
}

func (w *World) allFinal() bool { return len(w.submit) == 0 && len(w.Disk.jobs) == 0 }

// sleep wakes the controller when it asked for that, sometimes much later.
func (w *World) sleep(wake drover.Time) {
	w.wake++
	if wake == 0 {
		return
	}
	if wake < w.now {
		wake = w.now
	}
	if w.chance(w.luck.Freeze) {
		wake = wake.Add(w.delay(10 * time.Minute))
	}
	n, l := w.wake, w.loop
	w.after(wake.Sub(w.now), func() {
		if n == w.wake {
			w.answer(l, engine.Ticked{})
		}
	})
}

// answer brings an event to the controller that it is meant for, if that one still lives.
func (w *World) answer(to *loop.Loop, body engine.Body) {
	if to == w.loop && to.Store != nil {
		w.step(body)
	}
}

// controller carries out one controller's effects in the world.
type controller struct {
	w *World
	l *loop.Loop
}

// reply answers the controller after a while.
func (c *controller) reply(most time.Duration, body engine.Body) {
	c.w.after(c.w.delay(most), func() { c.w.answer(c.l, body) })
}

// Release begins the effects.
func (c *controller) Release(effects []engine.Effect, _ []engine.Note) {
	for _, f := range effects {
		if f.Destroy != nil {
			c.w.mayDestroy(*f.Destroy)
		}
		c.w.after(c.w.delay(50*time.Millisecond), func() { c.do(f) })
	}
}

func (c *controller) do(f engine.Effect) {
	switch {
	case f.ListOfferings != nil:
		c.reply(time.Second, engine.Offered{Effect: f.ID, Cloud: f.ListOfferings.Cloud, Offerings: Offerings(f.ListOfferings.Cloud)})
	case f.ListInstances != nil:
		c.list(f.ID, f.ListInstances.Cloud)
	case f.Create != nil:
		c.create(f.ID, *f.Create)
	case f.Destroy != nil:
		c.destroy(f.ID, *f.Destroy)
	case f.SetTags != nil:
		c.setTags(f.ID, *f.SetTags)
	case f.Connect != nil:
		c.connect(f.ID, *f.Connect)
	case f.Start != nil:
		c.start(f.ID, *f.Start)
	case f.Stop != nil:
		c.stop(*f.Stop)
	case f.Collect != nil:
		c.collect(f.ID, *f.Collect)
	case f.Forget != nil:
		c.forget(*f.Forget)
	case f.Solve != nil:
		c.reply(100*time.Millisecond, engine.Solved{Effect: f.ID, Plan: pack.Solve(*f.Solve)})
	}
}
