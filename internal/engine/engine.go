// Package engine decides. It is a deterministic state machine: one event in, one decision out, the same for equal states and events on
// every computer. It does no I/O, reads no clock, starts no goroutine, uses no float and never depends on the order of a map.
//
// The model: jobs of one shape, priority, user, timeout and about the same expected time form a group and wait in it. Placing puts waiting
// jobs on ready instances and reserves room for others on instances that are on their way; for the rest, planning asks a solver which
// instances to rent, and records them before asking a cloud for them. Each instance has a small lifecycle (check), driven by events
// and by its timers.
//
// The invariants: an attempt is written before it is started, an instance before it is created; a job has at most one live attempt;
// a new attempt begins only when the old one is known to have ended, by its runner or because its instance is gone; a failed
// observation changes nothing; an effect is in flight at most once per object.
package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"drover"
	"drover/internal/engine/budget"
	"drover/internal/engine/fleet"
	"drover/internal/engine/market"
	"drover/internal/engine/queue"
)

// Engine is the state machine. It is not safe for concurrent use: its loop owns it.
type Engine struct {
	s State // what is neither job, attempt, instance nor cloud

	groups       []*group // by order of service, see sortGroups
	byKey        map[GroupKey]*group
	clouds       []*Cloud // by name, as configured
	claims       claims
	minimumCosts map[minimumCostKey]minimumCost // what groups ask for costs each kind of window at least
	singles      map[drover.Shape]drover.Money  // what an hour of the cheapest offering for one job costs
	reckoned     int                            // as of which offers and boots both are
	reboots      int                            // how often what is known of boots has changed
	seen         *bootTimes                     // how long instances boot; nil: to be worked out

	kept   []kept // for gangs, while others are placed
	half   half   // of the gang that was tried last
	gaveUp bool   // a gang was let go of that could not come together

	d        *Decision
	replace  bool                       // something may have found a place
	replan   bool                       // something has changed what may be rented
	without  bool                       // a gang was left out of a plan, and others may be rented for without it
	refit    bool                       // a group or a type is new
	fitting  int                        // how often what types there are has changed
	used     map[string]drover.MilliCPU // of what runs, by whose share it is of; nobody who has nothing, and nothing without shares
	runs     map[GroupKey]runs          // what runs, where there is a mix
	queue    *queue.Queue
	fleet    *fleet.Fleet
	ledger   *budget.Ledger
	market   *market.Market
	pools    pools
	roomLeft limitsLeft   // as of when it was last asked for
	yield    bool         // something is stuck, or has fallen idle
	rates    bool         // what instances cost may have changed
	ends     []awaitedEnd // of attempts, the first first
	await    drover.Time  // when it is to be looked at again what waits for such an end; 0: nothing does
	look     drover.Time  // when it is worked out again for what jobs wait that may
}

// New begins an engine from a State, which it takes over. It is the only way to begin. A State whose Now is zero comes from a store: what was
// observed before is then unknown again.
func New(s State) (*Engine, error) {
	if s.Version != StateVersion {
		return nil, fmt.Errorf("state of version %d, but this engine reads version %d", s.Version, StateVersion)
	}
	e := &Engine{
		s:            s,
		byKey:        map[GroupKey]*group{},
		used:         map[string]drover.MilliCPU{},
		runs:         map[GroupKey]runs{},
		singles:      map[drover.Shape]drover.Money{},
		minimumCosts: map[minimumCostKey]minimumCost{},
		fleet:        fleet.New(s.Departed),
		fitting:      1,
		claims:       claims{by: map[*fleet.Member]*group{}, spare: map[*fleet.Member]spare{}},
	}
	e.market = market.New(s.Blocks, s.Interruptions)
	e.market.At(s.Now)
	e.ledger = budget.New(s.Spent, s.Spending, s.Pending.Turn, e.claimOf)
	e.ledger.At(s.Now)
	e.trackSpending()
	e.queue = queue.New(s.Settings.labels())
	e.followPools(s.PoolStates)
	for _, known := range s.Groups {
		e.group(known.Key)
	}
	for _, known := range s.Instances {
		in := &fleet.Member{Instance: known}
		e.addInstance(in)
		in.Aged = known.Aged // whether it has been noticed, and not whether it is time
	}
	s.tear()
	for _, j := range s.Jobs {
		grown := slices.Clone(j.Grown)
		if e.addJob(&j); s.Now != 0 {
			j.Grown = grown // also those of which none waits now
		}
	}
	for _, c := range s.Clouds {
		e.clouds = append(e.clouds, &c)
	}
	e.followMarket()
	for _, a := range s.Attempts {
		e.addAttempt(&a)
	}
	for i, known := range s.Groups { // over what adding their jobs, as if they were new, made of it
		e.groups[i].Group = known
		if known.Fits {
			e.groups[i].fitted = e.fitting
		}
	}
	if p := s.Pending; s.Now != 0 { // what was added above is nothing new
		for _, in := range e.fleet.All() {
			e.fleet.CheckAt(in, in.Check)
		}
		e.replace, e.replan, e.without, e.gaveUp = p.Replace, p.Replan, p.Without, p.GaveUp
		e.yield, e.refit, e.rates, e.await, e.look = p.Yield, p.Refit, p.Rates, p.Await, p.Look
	} else {
		e.replace, e.replan = true, true
	}
	for _, in := range e.fleet.All() {
		in.Check = 0 // its timer says it from here on
	}
	e.s.Stats.Runs = slices.Clone(s.Stats.Runs) // which are changed where they are
	e.s.Jobs, e.s.Attempts, e.s.Instances, e.s.Departed, e.s.Clouds, e.s.Groups, e.s.PoolStates, e.s.Pending = nil, nil, nil, nil, nil, nil, nil, Pending{}
	return e, nil
}

// State returns all that the engine knows, in canonical form. It shares no memory with the engine.
func (e *Engine) State() State {
	s := e.s
	s.Blocks, s.Interruptions = e.market.State()
	s.Stats.Boots, s.Stats.Gaps, s.Stats.Runs = slices.Clone(s.Stats.Boots), slices.Clone(s.Stats.Gaps), slices.Clone(s.Stats.Runs)
	for j := range e.queue.All() {
		c := j.Clone()
		c.Postponed = nil
		s.Jobs = append(s.Jobs, c)
	}
	s.Instances, s.Attempts, s.Departed = e.fleet.State()
	for _, g := range e.groups {
		known := g.Group
		known.Fits = g.fitted == e.fitting
		s.Groups = append(s.Groups, known)
	}
	s.Pools, s.PoolStates, s.Successes = slices.Clone(s.Pools), e.poolStates(), slices.Clone(s.Successes)
	s.Pending = Pending{e.replace, e.replan, e.without, e.gaveUp, e.yield, e.refit, e.rates, 0, e.await, e.look}
	s.Spent, s.Spending, s.Pending.Turn = e.ledger.State()
	for _, c := range e.clouds {
		own := *c
		own.Throttles, own.Vanished = slices.Clone(c.Throttles), slices.Clone(c.Vanished)
		s.Clouds = append(s.Clouds, own)
	}
	return s
}

// lateness is how much later than asked a wake may come before Drover counts itself as not having looked.
const lateness = 5 * time.Second

// Apply takes one event and decides.
func (e *Engine) Apply(ev Event) Decision {
	e.d = &Decision{}
	late := e.s.Wake != 0 && ev.At > e.s.Wake.Add(lateness)
	fresh := e.s.Now == 0
	if late {
		e.countBlocked() // up to when Drover was last looking
	}
	was := e.s.Now
	e.s.Now = max(e.s.Now, ev.At)
	if fresh || late {
		e.lookAgain(fresh)
	}
	if fresh && !e.proved() {
		e.sayUnproved()
	}

	e.market.At(e.s.Now)
	e.ledger.At(e.s.Now)
	e.turnWindows(was)
	e.handle(ev.Body)
	if fresh {
		e.takeSuccesses()
	}
	e.resume()
	e.rerate()
	e.watchBudgets()
	e.unblock(e.market.Expire(e.billBegan))
	e.placeWaiting()
	e.checkDue()
	for _, c := range e.clouds {
		e.checkCloud(c)
	}
	e.prove()
	e.refuseMisfits()
	e.refuseBlocked()
	e.gatherAnew()
	e.placeWaiting()
	e.reconcilePools(true)
	e.placeWaiting()
	e.plan()
	e.hopeless()
	e.placeWaiting()
	e.reconcilePools(false)
	e.placeWaiting()
	e.nameBlocks()
	e.preempt()
	e.checkDue()
	e.nameBlocks()
	e.markBlocked()
	e.rerate()
	e.writeBlocks()

	e.s.Wake = e.nextWake()
	e.d.Wake = e.s.Wake
	return *e.d
}

// placeWaiting places if something may have found a place.
func (e *Engine) placeWaiting() {
	if e.replace {
		e.replace = false
		e.place()
	}
}

// checkDue checks the instances whose time has come.
func (e *Engine) checkDue() {
	for in := e.fleet.Due(e.s.Now); in != nil; in = e.fleet.Due(e.s.Now) {
		e.check(in)
		if e.fleet.NextCheck(in) == 0 { // check may have touched it, to be checked again at once
			e.fleet.CheckAt(in, e.nextCheck(in))
		}
	}
}

func (e *Engine) writeBlocks() {
	if blocks, changed := e.market.Taken(); changed {
		e.write(Write{Blocks: &blocks})
	}
}

func (e *Engine) handle(body Body) {
	switch b := body.(type) {
	case Configured:
		e.configure(b.Settings)
		e.writeSpending(e.ledger.Keep(b.Spent))
	case Ticked:
	case Submitted:
		e.submit(b.Jobs)
	case CancelAsked:
		e.cancel(b)
	case InstructAsked:
		e.instruct(b)
	case PriorityAsked:
		e.prioritize(b)
	case QueueAsked:
		e.setPaused(b)
	case ResizeAsked:
		e.resize(b)
	case GroupAsked:
		e.groupAsked(b)
	case NodeTold:
		e.nodeTold(b)
	case HealthChecked:
		e.healthChecked(b)
	case DrainAsked:
		e.drain()
		e.stopAll(b.Stop)
	case CloseAsked:
		e.close(b.Now)
	case Offered:
		e.offered(b)
	case Listed:
		e.listed(b)
	case Described:
		e.described(b)
	case Created:
		e.created(b)
	case CreateFailed:
		b.Err = said(b.Err)
		e.createFailed(b)
	case Destroyed:
		e.destroyed(b)
	case Switched:
		e.switched(b)
	case Tagged:
		e.tagged(b)
	case DiskGrown:
		e.grown(b)
	case Fired:
		e.fired(b)
	case Connected:
		e.connected(b)
	case ConnectFailed:
		b.Err = said(b.Err)
		e.connectFailed(b)
	case Noticed:
		e.noticed(b)
	case Ailing:
		e.ailing(b)
	case Disconnected:
		e.disconnected(b)
	case Started:
		e.started(b)
	case StartFailed:
		b.Err = said(b.Err)
		e.startFailed(b)
	case Exited:
		e.exited(b)
	case Collected:
		e.collected(b)
	case Solved:
		e.solved(b)
	}
}

// said is an error, or that none was said.
func said(err *drover.Error) *drover.Error {
	if err == nil {
		return drover.Errorf(drover.KindTransient, "it failed without a reason")
	}
	return err
}

// lookAgain begins to look: after a start, or after a time in which Drover was stopped or suspended. Silence goes on from where the last
// dial that failed has left it, so that neither that time counts, nor restarts keep an instance that does not answer.
func (e *Engine) lookAgain(fresh bool) {
	e.s.Looking = e.s.Now
	e.forgetChecks()
	if fresh && e.s.Closing {
		e.s.Halted = e.s.Now
	}
	for _, in := range e.fleet.All() {
		if fresh {
			e.unknown(in)
			if !e.proved() { // the records may be an older copy, whose silence was another
				in.Quiet = 0
			}
		}
		if !in.Connected {
			in.Silent, in.Tried = e.s.Now.Add(-in.Quiet), false
		}
		in.Missing = 0
		e.touch(in)
	}
	for _, c := range e.clouds {
		c.First, c.Twice = 0, false // lists are a lag apart by a clock that has not leapt in between
	}
	if !fresh {
		e.pausePartitions(e.s.Now.Sub(e.s.Wake))
		e.note(Note{Level: Warn, Text: fmt.Sprintf("the controller was suspended for %v; that time does not count as silence",
			e.s.Now.Sub(e.s.Wake).Round(time.Second))})
	}
}

// unknown is the state of an instance that an earlier controller knew and that this one has not yet heard from.
func (e *Engine) unknown(in *fleet.Member) {
	switch {
	case in.State == drover.InstanceCreating:
		in.Unsure = in.Begun
	case in.State == drover.InstanceStopped: // lists tell whether it runs
	case in.State.CanBecome(drover.InstanceUnknown):
		in.State = drover.InstanceUnknown
	}
}

func (e *Engine) close(now bool) {
	if !e.s.Closing {
		e.s.Closing, e.s.Halted = true, e.s.Now
		e.write(Write{Closing: true})
	}
	for _, in := range e.fleet.All() {
		if now && in.KeepUntil != 0 {
			in.KeepUntil = 0
			e.writeInstance(in)
		}
		e.touch(in)
	}
}

// reply answers a wish, if it has a row: it is granted, or refused with an error.
func (e *Engine) reply(wish int64, err *drover.Error) {
	if wish != 0 {
		e.write(Write{Reply: &Reply{Wish: wish, Err: err}})
	}
}

func (e *Engine) write(w Write) { e.d.Writes = append(e.d.Writes, w) }

func (e *Engine) note(n Note) { e.d.Notes = append(e.d.Notes, n) }

// effect gives f the next number, which its answer will bear, and has it done.
func (e *Engine) effect(f Effect) int64 {
	e.s.LastEffect++
	f.ID = e.s.LastEffect
	e.d.Effects = append(e.d.Effects, f)
	return f.ID
}

// verdict is a Verdict that holds from now on.
func (e *Engine) verdict(cause Cause, format string, args ...any) Verdict {
	return Verdict{Cause: cause, Text: fmt.Sprintf(format, args...), Since: e.s.Now}
}

// failure is an error as the reason of a note.
func failure(err *drover.Error) *drover.Reason {
	return &drover.Reason{Code: string(err.Kind), Text: err.Message}
}

// backoff is the delay before the n-th try in a row: first doubled each time, at most most.
func backoff(n int, first, most time.Duration) time.Duration {
	for ; n > 1 && first < most; n-- {
		first *= 2
	}
	return min(first, most)
}

// instanceName is unique for ever: the nonce tells this store's counter from that of one that was lost.
func (e *Engine) instanceName(id int64) string {
	return fmt.Sprintf("%s-%s-%d", e.s.Fleet, e.s.Nonce, id)
}

// ours reports whether this store named the instance.
func (e *Engine) ours(name string) bool { return strings.HasPrefix(name, e.s.Fleet+"-"+e.s.Nonce+"-") }

// answers reports whether an answer is that to the effect that is awaited, 0 for none.
func answers(effect, awaited int64) bool { return effect != 0 && effect == awaited }
