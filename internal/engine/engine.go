// Package engine makes the decisions. It is a deterministic state machine: one event in, one decision out, the same for
// equal states and events on every computer. It does no I/O, reads no clock, starts no goroutine, uses no floats and
// never depends on map order.
//
// The model: jobs with the same shape, priority, user and timeout and about the same expected time form a group.
// Placing starts waiting jobs on ready instances and reserves room for others on instances that are still coming up.
// For the rest, planning asks a solver which instances to rent, and records them before a cloud is asked to create
// them. Each instance has a small lifecycle (see check), driven by events and timers.
//
// The invariants: an attempt is committed before it is started, an instance before it is created; a job element has at
// most one live attempt; a new attempt begins only when the old one is known to have ended, because its runner said so
// or its instance is gone; a failed observation changes nothing; at most one effect of a kind is in flight per object.
package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"drover"
	"drover/internal/engine/budget"
	"drover/internal/engine/fleet"
	"drover/internal/engine/forecast"
	"drover/internal/engine/market"
	"drover/internal/engine/queue"
)

// Engine is the state machine. It is not safe for concurrent use: its loop owns it.
type Engine struct {
	s State // everything that is not below

	queue    *queue.Queue
	fleet    *fleet.Fleet
	market   *market.Market
	ledger   *budget.Ledger
	forecast *forecast.Forecast
	pools    pools
	clouds   []*Cloud // by name
	groups   []*group // in order of service, see sortGroups
	pending  Pending

	// What follows from these.
	byKey         map[GroupKey]*group
	typesRevision int                        // counts changes of the set of instance types
	used          map[string]drover.MilliCPU // vCPUs in use per share; no zero entries, and empty without shares
	runs          map[GroupKey]runs          // running attempts by group, if a mix is configured
	expectedEnds  []expectedEnd              // of running attempts, earliest first
	limitsCache   limitsLeft
	costs         costCache

	// The placement or decision in progress.
	d         *Decision
	backfill  backfill
	gangRooms []gangRoom      // room held for gangs
	partial   partialGang     // the last gang that did not fit
	unpriced  []*fleet.Member // those whose prices may have changed although no others have
}

// New starts an engine from a State, which it takes over. A State whose Now is zero comes from a store: everything
// observed earlier is then unknown again.
func New(s State) (*Engine, error) {
	if s.Version != StateVersion {
		return nil, fmt.Errorf("the state has version %d, but this engine reads version %d", s.Version, StateVersion)
	}
	e := &Engine{
		s:             s,
		byKey:         map[GroupKey]*group{},
		used:          map[string]drover.MilliCPU{},
		runs:          map[GroupKey]runs{},
		costs:         costCache{solo: map[drover.Shape]drover.Money{}, minimum: map[minimumCostKey]minimumCost{}},
		fleet:         fleet.New(s.Departed),
		typesRevision: 1,
		backfill:      backfill{by: map[*fleet.Member]*group{}, spare: map[*fleet.Member]spare{}, serving: map[string][]int{}},
	}
	e.forecast = forecast.New(s.Stats)
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
		in.Aged = known.Aged // whether the age was noticed, not whether it is reached
	}
	s.markIncomplete()
	for _, j := range s.Jobs {
		grown := slices.Clone(j.Grown)
		if e.addJob(&j); s.Now != 0 {
			j.Grown = grown // also for elements that no longer wait
		}
	}
	for _, c := range s.Clouds {
		e.clouds = append(e.clouds, &c)
	}
	e.setForecastClouds()
	e.followMarket()
	for _, a := range s.Attempts {
		e.addAttempt(&a)
	}
	for i, known := range s.Groups { // restores what adding the jobs as new ones has overwritten
		e.groups[i].Group = known
		if known.Fits {
			e.groups[i].typesRevision = e.typesRevision
		}
	}
	if s.Now != 0 { // adding everything above has marked it as new work
		for _, in := range e.fleet.All() {
			e.fleet.CheckAt(in, in.Check)
		}
		e.pending = s.Pending
	} else {
		e.pending.Place, e.pending.Plan = true, true
	}
	for _, in := range e.fleet.All() {
		in.Check = 0 // from here on its timer holds the time
	}
	e.s.Jobs, e.s.Attempts, e.s.Instances, e.s.Departed, e.s.Clouds, e.s.Groups, e.s.PoolStates, e.s.Stats, e.s.Pending = nil, nil, nil, nil, nil, nil, nil, Stats{}, Pending{}
	return e, nil
}

// State returns everything the engine knows, in canonical form. It shares no memory with the engine.
func (e *Engine) State() State {
	s := e.s
	if p := s.Solving; p != nil {
		s.Solving = &Solving{Effect: p.Effect, Problem: p.Problem, Groups: p.Groups}
	}
	s.Blocks, s.Interruptions = e.market.State()
	s.Stats = e.forecast.State()
	for j := range e.queue.All() {
		c := j.Clone()
		c.Postponed = nil
		s.Jobs = append(s.Jobs, c)
	}
	s.Instances, s.Attempts, s.Departed = e.fleet.State()
	for _, g := range e.groups {
		known := g.Group
		known.Fits = g.typesRevision == e.typesRevision
		s.Groups = append(s.Groups, known)
	}
	s.Pools, s.PoolStates, s.Successes = slices.Clone(s.Pools), e.poolStates(), slices.Clone(s.Successes)
	s.Pending = e.pending
	s.Pending.Price = s.Pending.Price || len(e.unpriced) > 0
	s.Spent, s.Spending, s.Pending.Turn = e.ledger.State()
	for _, c := range e.clouds {
		own := *c
		own.Throttles, own.Vanished = slices.Clone(c.Throttles), slices.Clone(c.Vanished)
		s.Clouds = append(s.Clouds, own)
	}
	return s
}

// lateness is how late a wake-up may come before the controller counts as having been suspended.
const lateness = 5 * time.Second

// Apply takes one event and returns the decision.
func (e *Engine) Apply(ev Event) Decision {
	e.d = &Decision{}
	late := e.s.Wake != 0 && ev.At > e.s.Wake.Add(lateness)
	fresh := e.s.Now == 0
	if late {
		e.countBlocked() // up to the last moment before the suspension
	}
	was := e.s.Now
	e.s.Now = max(e.s.Now, ev.At)
	if fresh || late {
		e.resumeObservation(fresh)
	}
	if fresh && !e.recordsCurrent() {
		e.noteStaleRecords()
	}

	// Process the event, and what has become due.
	e.market.At(e.s.Now)
	e.ledger.At(e.s.Now)
	e.turnWindows(was)
	e.handle(ev.Body)
	if fresh {
		e.applySuccesses()
	}
	e.resume()
	e.updatePrices()
	e.watchBudgets()
	e.blocksChanged(e.market.Expire(e.billBegan))

	// Place waiting jobs, and check instances and clouds. Each step below may leave room to place more.
	e.placeWaiting()
	e.checkDue()
	for _, c := range e.clouds {
		e.checkCloud(c)
	}
	e.endStaleness()

	// Cancel jobs that cannot run.
	e.refuseMisfits()
	e.refuseBlocked()
	e.retryGangs()
	e.placeWaiting()

	// Decide what to rent: for pools, for jobs, and what jobs leave for pools.
	e.reconcilePools(true)
	e.placeWaiting()
	e.plan()
	e.cancelUnaffordable()
	e.placeWaiting()
	e.reconcilePools(false)
	e.placeWaiting()

	// Preempt for what could not be rented.
	e.updateBlockReasons()
	e.preempt()
	e.checkDue()
	e.updateBlockReasons()

	e.markBlocked()
	e.updatePrices()
	e.writeBlocks()

	e.s.Wake = e.nextWake()
	e.d.Wake = e.s.Wake
	return *e.d
}

// placeWaiting runs a placement if something may fit.
func (e *Engine) placeWaiting() {
	if e.pending.Place {
		e.pending.Place = false
		e.place()
	}
}

// checkDue checks the instances whose timers have expired.
func (e *Engine) checkDue() {
	for in := e.fleet.Due(e.s.Now); in != nil; in = e.fleet.Due(e.s.Now) {
		e.check(in)
		if e.fleet.NextCheck(in) == 0 { // check may have scheduled another check for now
			e.fleet.CheckAt(in, e.nextCheck(in))
		}
	}
}

func (e *Engine) writeBlocks() {
	if e.market.Changed() {
		e.write(Write{Blocks: new(e.market.Taken())})
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
		e.reply(b.Wish, e.resize(b))
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
	case HealthReported:
		e.healthReported(b)
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

// said returns the error, or a generic one if there is none.
func said(err *drover.Error) *drover.Error {
	if err == nil {
		return drover.Errorf(drover.KindTransient, "it failed and gave no reason")
	}
	return err
}

// resumeObservation restarts observation after a start or a suspension. An instance's silence continues from its length
// at the last failed dial: the gap does not count, but restarts do not keep an unresponsive instance alive either.
func (e *Engine) resumeObservation(fresh bool) {
	e.s.Looking = e.s.Now
	e.forgetChecks()
	if fresh && e.s.Closing {
		e.s.ShutdownSince = e.s.Now
	}
	for _, in := range e.fleet.All() {
		if fresh {
			e.unknown(in)
			if !e.recordsCurrent() { // the records may be an older copy, with another silence
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
		c.First, c.Twice = 0, false // comparing lists needs a clock that did not jump in between
	}
	if !fresh {
		e.pausePartitions(e.s.Now.Sub(e.s.Wake))
		e.note(Note{Level: Warn, Text: fmt.Sprintf("the controller was suspended for %v; instances do not count as silent during that time",
			e.s.Now.Sub(e.s.Wake).Round(time.Second))})
	}
}

// unknown marks an instance that an earlier controller knew and this one has not heard from.
func (e *Engine) unknown(in *fleet.Member) {
	switch {
	case in.State == drover.InstanceCreating:
		in.Unsure = in.Begun
	case in.State == drover.InstanceStopped: // lists show whether it runs
	case in.State.CanBecome(drover.InstanceUnknown):
		in.State = drover.InstanceUnknown
	}
}

func (e *Engine) close(now bool) {
	if !e.s.Closing {
		e.s.Closing, e.s.ShutdownSince = true, e.s.Now
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

// reply grants the request stored in row wish, or refuses it with an error; 0 is no row.
func (e *Engine) reply(wish int64, err *drover.Error) {
	if wish != 0 {
		e.write(Write{Reply: &Reply{Wish: wish, Err: err}})
	}
}

func (e *Engine) write(w Write) { e.d.Writes = append(e.d.Writes, w) }

func (e *Engine) note(n Note) { e.d.Notes = append(e.d.Notes, n) }

// effect numbers f, adds it to the decision, and returns the number, which its answer will carry.
func (e *Engine) effect(f Effect) int64 {
	e.s.LastEffect++
	f.ID = e.s.LastEffect
	e.d.Effects = append(e.d.Effects, f)
	return f.ID
}

// verdict returns a Verdict that holds from now on.
func (e *Engine) verdict(cause Cause, format string, args ...any) Verdict {
	text := format
	if len(args) > 0 {
		text = fmt.Sprintf(format, args...)
	}
	return Verdict{Cause: cause, Text: text, Since: e.s.Now}
}

// failure turns an error into the reason of a note.
func failure(err *drover.Error) *drover.Reason {
	return &drover.Reason{Code: string(err.Kind), Text: err.Explained()}
}

// instanceName returns a globally unique name: the nonce distinguishes this store's counter from that of a lost store.
func (e *Engine) instanceName(id int64) string {
	return fmt.Sprintf("%s-%s-%d", e.s.Fleet, e.s.Nonce, id)
}

// ours reports whether this store named the instance.
func (e *Engine) ours(name string) bool { return strings.HasPrefix(name, e.s.Fleet+"-"+e.s.Nonce+"-") }

// answers reports whether an answer belongs to the awaited effect; 0 awaits none.
func answers(effect, awaited int64) bool { return effect != 0 && effect == awaited }
