// Package simtest is a modelled world around the real engine and the real loop: clouds, their instances, what runs on
// them, people and a disk, under one seed, with as much bad luck as is asked for. The promises that the product makes
// are checked as the world goes on.
//
// The model: time jumps from one thing that happens to the next. Every effect lands in the world after a while, whether
// or not the controller that asked for it still lives, and its answer comes a while later, if that controller does.
// What goes wrong is a table of faults (luck.go); each has dice of its own. A controller lives until it is killed, and
// the next one begins with what is on the disk; its clock may leap ahead, and those of the instances are all different.
//
// The invariants:
//   - Equal recipes make equal worlds, to the last event.
//   - Promises are checked where something changes, so that a check costs no more than the change: when a write is
//     committed (written.go) or an instance paid (bill.go), when an effect is released, when something begins or ends
//     on an instance (released.go).
//   - The world is honest within bounds: lists lag behind no further than their cloud says, what it said would be
//     destroyed it destroys when told again, and once Until has passed nothing goes wrong any more. Then all must come
//     to rest (rest.go).
//
// That worlds can find what is wrong is shown by mutants (testdata/mutants): engines that are broken on purpose, each
// of which has to fail.
package simtest

import (
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"time"

	"drover"
	"drover/internal/engine"
	"drover/internal/engine/pool"
	"drover/internal/eventqueue"
	"drover/internal/loop"
)

// Recipe is all that a world follows from.
type Recipe struct {
	Seed     uint64
	Luck     Luck
	Settings engine.Settings
	Jobs     []engine.Job
	Late     time.Duration // submit the last of the jobs only after this long; 0: all at once
	GiveUp   time.Duration // cancel everything and close the fleet after this long, as an impatient person would; 0: when all is done
	Lose     time.Duration // lose the store after this long; 0: never
	Copy     time.Duration // copy the store after this long
	PutBack  time.Duration // put the copy in its place after this long, and once more after twice that; 0: never. Jobs of priority 0 are wanted once it was made
	Closely  bool          // look at the engine itself in each step, and not only now and then
}

// World is the modelled world.
type World struct {
	Disk   *Disk
	Record func(engine.State) loop.Recorder // begins a recording for each controller; nil for none
	Events int                              // taken by engines
	Faults int                              // that happened
	Made   int                              // instances, ever

	recipe   Recipe
	settings engine.Settings
	dice     *dice
	scrutiny *rand.PCG // says when the engine itself is looked at closely
	begin    drover.Time
	now      drover.Time
	leapt    time.Duration // how far the controller's clock is ahead
	paused   bool          // the queue is, by the last wish that was granted
	switched drover.Time   // when the queue was last paused or resumed
	agenda   eventqueue.Queue
	struck   [faults]int // how often each fault came
	broken   error
	breach   string // what kind of promise it is: the same words in every world
	trace    trace

	controller    *controller
	lives         int
	clouds        []*cloud
	storms        []storm
	running       map[drover.JobID]*run
	submit        []engine.Job // not yet known to be taken
	people        []engine.Job // that people know of
	late          bool         // one is still to be submitted
	wishes        []engine.Body
	heard         drover.Time            // when the last wish is
	asked         map[string]bool        // names of instances that a cloud was asked for
	begun         map[string]*controller // and by whom those were that were written down to be
	copied        copied
	older         bool                       // the copy was put back, so that the records do not have all that was
	over          bool                       // all has come to rest
	restful       bool                       // nobody wishes for anything any more but that all jobs succeed
	interruptions map[string]drover.Offering // of which a controller was told, by the cloud's id of the instance
	promises      promises
	passed        map[string]drover.Time // when a health check last passed, by cloud
	vouched       map[string]bool        // instances of which a controller was told that others pass while they do not
}

// NewWorld makes a world in which a controller is to begin.
func NewWorld(r Recipe) *World {
	const begin = drover.Time(1e18)
	w := &World{
		Disk: NewDisk(), recipe: r, settings: r.Settings, dice: throw(r.Seed), scrutiny: rand.NewPCG(r.Seed, 7), begin: begin, now: begin,
		running: map[drover.JobID]*run{}, asked: map[string]bool{}, begun: map[string]*controller{}, interruptions: map[string]drover.Offering{}, submit: r.Jobs, people: r.Jobs, promises: newPromises(), passed: map[string]drover.Time{}, vouched: map[string]bool{},
	}
	if r.Late > 0 {
		w.submit, w.people, w.late = r.Jobs[:len(r.Jobs)-1], r.Jobs[:len(r.Jobs)-1], true
	}
	for _, c := range r.Settings.Clouds {
		w.clouds = append(w.clouds, &cloud{w: w, name: c.Name, lag: c.ListLag, prices: newCatalogue(c)})
	}
	if r.Settings.Nodes {
		w.after(time.Minute, w.cluster)
	}
	if slices.ContainsFunc(r.Settings.Pools, func(s pool.Spec) bool { return s.CheckWithin > 0 }) {
		w.after(time.Minute, w.checkUp)
	}
	return w
}

// after has something happen in a while.
func (w *World) after(d time.Duration, do func()) {
	w.agenda.Add(w.now.Add(d), do)
}

// within is a while between nothing and most.
func (w *World) within(most time.Duration) time.Duration { return time.Duration(w.roll(int(most))) }

// roll is a number from 0 to n-1.
func (w *World) roll(n int) int { return int(w.dice.below(faults, uint64(n))) }

func pick[T any](w *World, from []T) T { return from[w.roll(len(from))] }

// happens reports whether a fault comes now.
func (w *World) happens(f Fault) bool {
	odds := w.recipe.Luck.Odds[f]
	if odds == 0 || w.now.Sub(w.begin) > w.recipe.Luck.Until || w.dice.below(f, uint64(odds)) != 0 {
		return false
	}
	w.Faults++
	w.struck[f]++
	w.trace.add(note{at: w.now, fault: f})
	return true
}

// fail ends the world with what was found.
func (w *World) fail(format string, args ...any) {
	if w.broken == nil {
		w.breach = format
		w.broken = fmt.Errorf("after %v: %s", w.age(), fmt.Sprintf(format, args...))
	}
}

func (w *World) age() time.Duration { return w.now.Sub(w.begin) }

// Run lets the world go on until the engine is at rest and nothing is left in the clouds, and says what promise was
// broken, if one was. A world that takes more than limit of its own time has come to no rest.
func (w *World) Run(limit time.Duration) (broken error) {
	defer func() {
		if p := recover(); p != nil {
			w.fail("panic: %v\n%s", p, debug.Stack())
			broken = w.broken
		}
	}()
	w.boot()
	w.foretell()
	for w.broken == nil && !w.rests() {
		switch _, more := w.agenda.Next(); {
		case !more:
			w.fail("nothing will ever happen again: %s", w.status())
		case w.age() > limit:
			w.fail("it comes to no rest: %s", w.status())
		default:
			w.goOn()
		}
	}
	if w.broken == nil {
		w.afterAll()
	}
	return w.broken
}

// goOn lets the next thing happen.
func (w *World) goOn() {
	at, do := w.agenda.Take()
	w.now = max(w.now, at)
	do()
}

// status is what the present controller says of itself.
func (w *World) status() string {
	if !w.controller.alive() {
		return "there is no controller"
	}
	return fmt.Sprintf("%+v", w.controller.loop.Engine.Status())
}

// foretell has what the recipe sets a time for come then.
func (w *World) foretell() {
	r := w.recipe
	if r.Late > 0 {
		w.after(r.Late, w.submitLate)
	}
	if r.GiveUp > 0 {
		w.after(r.GiveUp, w.giveUp)
	}
	if r.Lose > 0 {
		w.after(r.Lose, w.loseStore)
	}
	if r.PutBack > 0 {
		w.after(r.Copy, w.takeCopy)
		w.after(r.PutBack, w.putBack)
		w.after(2*r.PutBack, w.putBack)
	}
	if w.peopled() {
		w.after(r.Luck.Until+calm, w.relent)
	}
	w.after(w.within(season), w.weather)
}
