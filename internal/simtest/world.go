// Package simtest is a modelled world around the real engine and the real loop: clouds, instances, the attempts on
// them, people and a disk. One seed determines the world, and a Recipe says how much bad luck it has. The world checks
// the product's promises as it goes on.
//
// The model: time jumps from one event to the next. Every effect reaches the world after a while, even if the
// controller that released it is dead; the answer follows later, if that controller still lives. The faults are a table
// (luck.go), each with its own dice. A controller lives until it is killed; the next one starts from the disk. Its
// clock may leap ahead, and the instances' clocks all differ.
//
// The invariants:
//   - Equal recipes make equal worlds, to the last event.
//   - Promises are checked where something changes, so that a check costs no more than the change: when a write is
//     committed (written.go), when a bill is settled (bill.go), when an effect is released, and when something begins
//     or ends on an instance (released.go).
//   - The world's faults are limited: lists lag no further than their cloud promises, a destroy that was accepted
//     without effect works when it is repeated, and nothing goes wrong after Until. Then everything must come to rest
//     (rest.go).
//
// Mutants (testdata/mutants) show that the worlds find faults: these engines are broken on purpose, and each must fail.
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

// Recipe is everything that determines a world.
type Recipe struct {
	Seed     uint64
	Luck     Luck
	Settings engine.Settings
	Jobs     []engine.Job
	Changes  []Change        // of the settings
	Late     []time.Duration // submit as many of the last jobs only after these times, in ascending order
	GiveUp   time.Duration   // cancel everything and close the fleet after this long, as an impatient person would; 0: when all is done
	Lose     time.Duration   // lose the store after this long; 0: never
	Copy     time.Duration   // copy the store after this long
	PutBack  time.Duration   // put the copy in the store's place after this long, and again after twice that; 0: never. Jobs of priority 0 are started once the copy exists
	Closely  bool            // check the engine itself in each step, not only now and then
}

// Change is when a controller gets other settings: those that people do not change.
type Change struct {
	At time.Duration
	To engine.Settings
}

// World is the modelled world.
type World struct {
	Disk   *Disk
	Record func(engine.State) loop.Recorder // starts a recording for each controller; nil for none
	Events int                              // taken by engines
	Faults int                              // that occurred
	Made   int                              // instances created in total
	Unused int                              // of them, those for the queue that ran nothing

	recipe   Recipe
	settings engine.Settings
	dice     *dice
	scrutiny *rand.PCG // decides when the engine itself is checked closely
	begin    drover.Time
	now      drover.Time
	leapt    time.Duration // how far the controller's clock is ahead
	paused   bool          // whether the queue is, by the last granted wish
	switched drover.Time   // when the queue was last paused or resumed
	agenda   eventqueue.Queue
	struck   [faults]int // how often each fault occurred
	broken   error
	breach   string // the kind of broken promise: the same text in every world
	trace    trace

	controller    *controller
	lives         int
	clouds        []*cloud
	storms        []storm
	running       map[drover.JobID]*run
	submit        []engine.Job // not yet known to be stored
	people        []engine.Job // that people know
	late          int          // how many of the last jobs are still to be submitted
	wishes        []engine.Body
	heard         drover.Time            // when the controller hears the last wish
	asked         map[string]bool        // names of instances that were requested from a cloud
	begun         map[string]*controller // the controller that first recorded each instance as requested
	copied        copied
	older         bool                       // the copy was put back, so the records are incomplete
	over          bool                       // everything has come to rest
	restful       bool                       // people now wish only that all jobs succeed
	interruptions map[string]drover.Offering // those that a controller was told of, by the cloud's id of the instance
	promises      promises
	passed        map[string]drover.Time // when a health check last passed, by cloud
	vouched       map[string]bool        // instances that a controller was told fail while others pass
}

// NewWorld makes a world in which a controller can start.
func NewWorld(r Recipe) *World {
	const begin = drover.Time(1e18)
	w := &World{
		Disk: NewDisk(), recipe: r, settings: r.Settings, dice: throw(r.Seed), scrutiny: rand.NewPCG(r.Seed, 7), begin: begin, now: begin,
		running: map[drover.JobID]*run{}, asked: map[string]bool{}, begun: map[string]*controller{}, interruptions: map[string]drover.Offering{}, promises: newPromises(), passed: map[string]drover.Time{}, vouched: map[string]bool{},
	}
	w.late = min(len(r.Late), len(r.Jobs))
	w.submit = r.Jobs[:len(r.Jobs)-w.late]
	w.people = w.submit
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

// after schedules something.
func (w *World) after(d time.Duration, do func()) {
	w.agenda.Add(w.now.Add(d), do)
}

// within returns a random duration from 0 to less than most.
func (w *World) within(most time.Duration) time.Duration { return time.Duration(w.roll(int(most))) }

// roll returns a random number from 0 to n-1.
func (w *World) roll(n int) int { return int(w.dice.below(faults, uint64(n))) }

func pick[T any](w *World, from []T) T { return from[w.roll(len(from))] }

// happens reports whether a fault occurs now.
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

// fail records a broken promise, which ends the world.
func (w *World) fail(format string, args ...any) {
	if w.broken == nil {
		w.breach = format
		w.broken = fmt.Errorf("after %v: %s", w.age(), fmt.Sprintf(format, args...))
	}
}

func (w *World) age() time.Duration { return w.now.Sub(w.begin) }

// Run runs the world until the engine is at rest and the clouds are empty, and returns the promise that was broken, if
// any. A world that needs more than limit of its own time fails.
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

// goOn runs the next scheduled event.
func (w *World) goOn() {
	at, do := w.agenda.Take()
	w.now = max(w.now, at)
	do()
}

// status is the present controller's status.
func (w *World) status() string {
	if !w.controller.alive() {
		return "there is no controller"
	}
	return fmt.Sprintf("%+v", w.controller.loop.Engine.Status())
}

// foretell schedules what the recipe sets a time for.
func (w *World) foretell() {
	r := w.recipe
	for _, c := range r.Changes {
		w.after(c.At, func() { w.change(c.To) })
	}
	for _, at := range r.Late[len(r.Late)-w.late:] {
		w.after(at, w.submitLate)
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
