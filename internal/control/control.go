// Package control carries out the engine's decisions in the real world and returns the results as events. It owns every
// goroutine of a controller: one for the loop, one for each effect in progress, and a few for each connection to an
// instance.
//
// It decides nothing. An effect is carried out once; the engine decides whether to repeat it. What control remembers
// between effects can be observed again: connections, addresses, the last good list of each cloud, and the ends of
// output that came with exits.
package control

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"drover"
	"drover/driver"
	"drover/internal/backoff"
	"drover/internal/blob"
	"drover/internal/engine"
	"drover/internal/logkey"
	"drover/internal/loop"
	"drover/internal/remote"
	"drover/internal/store"
	"drover/internal/webhook"
	"drover/internal/wire"
)

// Config configures a Controller. The Controller closes nothing in it.
type Config struct {
	Fleet   string
	Version string // of this program, for people
	Setup
	Store   *store.Store
	Key     remote.FleetKey
	Inputs  *blob.Dir                                // contents of inputs, by hash
	Results *blob.Results                            // logs and outputs
	Trust   bool                                     // accept the records even if they may be stale
	Shared  bool                                     // Results hold many batches, so they are stored under jobs' numbers instead of names
	Spool   string                                   // folder for output that is being followed; empty: the system's temporary folder
	Runners func(drover.Arch) (remote.Runner, error) // returns the runner for an architecture; empty: the controller's own
	Record  Recorder                                 // nil for none
	Log     *slog.Logger

	Observer Observer // may be nil
}

// Recorder records events in segments that each begin with a State. Its failures do not affect the controller.
type Recorder interface {
	loop.Recorder
	Begin(engine.State) // starts a new segment, ending the current one; it keeps nothing of the State
	Full() bool         // reports whether it is time for Begin
}

// Setup is the part of a Config that may change while a Controller runs.
type Setup struct {
	Settings engine.Settings
	Clouds   []Cloud                // those of Settings
	Limits   drover.UserLimits      // if Results hold many batches
	Probe    string                 // the boot probe, a shell command
	Deadline time.Duration          // for one probe of an instance
	Hooks    map[drover.Hook]string // scripts, by absolute path
	Pools    map[string]Pool        // those of Settings, by name
	Keep     time.Duration          // how long results are kept after their jobs are final; 0: forever
	URL      string                 // where jobs reach the API; empty: through a socket on their instance
	Notify   webhook.Config         // how messages about batches are sent
	Orders   wire.Orders            // for every instance's runner, except Notices, which the driver sets
}

// Pool is the part of a pool that the engine does not need.
type Pool struct {
	Images   map[drover.Arch]string // what its instances boot from, instead of their cloud's
	Template string                 // an instance template, instead of their cloud's
	Init     string                 // its instances' first-boot script, besides their cloud's
	Probe    string                 // its instances' boot probe; empty: the default
	Orphan   time.Duration          // after which an orphaned instance powers itself off; 0: never
	Hooks    map[drover.Hook]string // scripts, by absolute path, run besides the fleet's
	Group    *NodeGroup             // nil: not a node group
	Check    *HealthCheck           // nil: no health check
}

// HealthCheck is how the health of a pool's instances is checked.
type HealthCheck struct {
	Port     int
	Path     string // of a GET request; empty: a connection suffices
	Interval time.Duration
	Timeout  time.Duration
	Failures int // in a row, before they are reported to the engine
}

// NodeGroup is the labels and taints of a node group's nodes.
type NodeGroup struct {
	Labels map[string]string
	Taints []string // each as KEY=VALUE:EFFECT, including the startup taint
}

// Cloud is an open cloud and how its instances are reached.
type Cloud struct {
	Name   string
	Driver driver.Cloud
	Offer  func(drover.Offering) (paid drover.Offering, whyNot string) // returns a listed offering at the price paid for it, or why it may not be used; nil: unchanged, all
	SSH    SSH
	Folder string // on its instances, for the runner
}

// SSH is how a cloud's instances are reached. Empty fields leave it to the driver.
type SSH struct {
	User    string
	Port    int
	Address string       // "public", "private", or empty for either
	Keys    []ssh.Signer // login keys: new instances get the first, older ones may have the others; the fleet's own is always tried
}

// Controller runs one fleet. Its methods are safe for concurrent use; Run is called once.
type Controller struct {
	cfg          Config
	state        engine.State // initial
	events       chan engine.Event
	queries      chan query
	peeks        chan query
	ended        chan struct{} // closed when Run has ended
	clock        clock
	api          apiListener
	work         sync.WaitGroup // effects and connections
	inbox        inbox
	replies      replies
	shown        shown
	changes      changes
	history      history
	spools       spools
	live         liveLogs
	hookWake     chan struct{} // signals that hooks may be due
	hooksRunning atomic.Int64
	flights      flights
	roster       *roster
	ready        readiness
	refused      atomic.Pointer[string]        // why the current configuration file is not in use
	full         atomic.Pointer[drover.Reason] // the full disk that a commit waits for; nil: none

	uploads uploads
	tally   tally

	sweeping sync.Mutex // held while inputs are swept, and while their owner is recorded
	telling  sync.Mutex // held while messages about batches are sent

	committing time.Duration // duration of the step's commit; only the loop uses it

	mu    sync.Mutex
	setup *setup             // guarded by mu; the setup it points to never changes
	links map[int64]*link    // by instance; guarded by mu
	said  map[int64][]string // the last lines of runners' own logs, by instance; guarded by mu
	specs map[int64]jobSpec  // guarded by mu
}

type query struct {
	ask  func(*engine.Engine)
	done chan struct{}
}

// New makes a controller that continues from what the store holds. It raises the store's epoch: instances refuse an
// older controller from now on.
func New(ctx context.Context, cfg Config) (*Controller, error) {
	state, err := cfg.Store.Begin(ctx, cfg.Fleet)
	if err != nil {
		return nil, err
	}
	if state.StaleRecords != nil && cfg.Trust {
		cfg.Log.Warn("trusting the records, as requested; if they are an older copy, attempts that started since then may start again", logkey.Note, state.StaleRecords.Text)
		state.StaleRecords = nil
		if err := cfg.Store.Commit(ctx, []engine.Write{{Current: true}}); err != nil {
			return nil, err
		}
	}
	if behind := newest(state).Sub(drover.TimeOf(time.Now())); behind > time.Minute {
		cfg.Log.Warn("the clock is behind the newest record", logkey.Note, "by "+behind.Round(time.Second).String(),
			logkey.Hint, "if the clock is wrong, set it; if it was wrong earlier, destroy idle instances yourself: Drover keeps them until the clock reaches the time of that record")
	}
	aside, err := cfg.Store.SetAside(ctx)
	if err != nil {
		return nil, err
	}
	for _, what := range aside {
		cfg.Log.Error("a record that cannot be read is set aside, and its job is held: check whether the attempt is still running, then raise the job's priority or cancel it", logkey.Note, what)
	}
	if cfg.Observer == nil {
		cfg.Observer = unobserved{}
	}
	c := &Controller{
		cfg:      cfg,
		state:    state,
		events:   make(chan engine.Event, 1024),
		queries:  make(chan query),
		peeks:    make(chan query),
		ended:    make(chan struct{}),
		inbox:    inbox{nudged: make(chan struct{}, 1)},
		replies:  replies{raised: make(chan struct{})},
		shown:    shown{groups: drover.NewNodeGroups(nil), changed: make(chan struct{})},
		changes:  changes{waiting: map[int64]*change{}},
		history:  newHistory(state.Epoch),
		flights:  flights{flying: map[int64]flight{}, kinds: map[string]int{}},
		roster:   newRoster(state.Instances),
		hookWake: make(chan struct{}, 1),
		spools:   spools{open: map[spoolKey]*spool{}},
		live:     liveLogs{kept: map[spoolKey]int64{}},
		links:    map[int64]*link{},
		said:     map[int64][]string{},
		specs:    map[int64]jobSpec{},
		uploads:  uploads{users: map[string]*sending{}},
		tally:    tally{bytes: map[drover.JobID]int64{}},
		api:      apiListener{conns: make(chan net.Conn), done: make(chan struct{})},
	}
	c.setup = c.newSetup(cfg.Setup, nil)
	c.Refuse("")
	return c, nil
}

// newest returns the newest recorded time of instances and attempts.
func newest(s engine.State) (at drover.Time) {
	for _, in := range s.Instances {
		at = max(at, in.Asked, in.Ready, in.IdleSince)
	}
	for _, a := range s.Attempts {
		at = max(at, a.Started, a.Ended)
	}
	return at
}

// Run drives the fleet until ctx ends or the store refuses a commit; on a full disk it waits for space. It leaves
// instances and jobs running, and returns once everything it started has ended.
func (c *Controller) Run(ctx context.Context) error {
	end := sync.OnceFunc(func() { close(c.ended) })
	defer end()
	l, err := c.newLoop()
	if err != nil {
		return err
	}
	opening, err := c.opening(ctx)
	if err != nil {
		return fmt.Errorf("reading submitted jobs: %w", err)
	}
	work, stop := context.WithCancel(ctx)
	l.Outside = &effects{c: c, ctx: work}
	c.cfg.Observer.Begun(c.state)
	c.work.Go(func() { c.readInbox(work) })
	c.work.Go(func() { c.runHooks(work) })
	c.work.Go(func() { c.runChecks(work) })
	c.work.Go(func() { c.sweepHourly(work) })
	c.work.Go(func() { c.keepTally(work) })
	c.work.Go(func() {
		backoff.Every(work, tellInterval, func() {
			if !c.Tell(work) {
				_ = backoff.For(work, unrecorded)
			}
		})
	})
	if !c.cfg.Shared {
		c.work.Go(func() { backoff.Every(work, livePace, func() { c.growLogs(work) }) })
	}
	err = c.drive(ctx, l, opening)
	stop()
	end()
	c.closeLinks()
	c.api.Close()
	c.work.Wait()
	return err
}

func (c *Controller) newLoop() (*loop.Loop, error) {
	l := &loop.Loop{}
	l.Store = committer{c, l}
	if c.cfg.Record != nil {
		c.cfg.Record.Begin(c.state)
		l.Recorder = c.cfg.Record
	}
	var err error
	l.Engine, err = engine.New(c.state)
	return l, err
}

// drive is the loop: it handles events, several at a time if possible, and wakes the engine when requested.
func (c *Controller) drive(ctx context.Context, l *loop.Loop, opening []engine.Event) error {
	wake, err := c.step(ctx, l, opening)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for err == nil {
		timer.Reset(c.until(wake))
		select {
		case <-ctx.Done():
			return nil
		case q := <-c.queries:
			q.answer(l.Engine)
		case q := <-c.peeks:
			q.answer(l.Engine)
		case ev := <-c.events:
			wake, err = c.step(ctx, l, c.drain(ev))
		case <-timer.C:
			wake, err = c.step(ctx, l, []engine.Event{{At: c.clock.now(), Body: engine.Ticked{}}})
		}
		if err == nil {
			err = c.rotateRecording(l)
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// rotateRecording starts the next segment of a recording when it is time. The engine continues from the segment's
// initial State, as a replay will.
func (c *Controller) rotateRecording(l *loop.Loop) (err error) {
	if c.cfg.Record == nil || !c.cfg.Record.Full() {
		return nil
	}
	state := l.Engine.State()
	c.cfg.Record.Begin(state)
	l.Engine, err = engine.New(state)
	return err
}

// opening returns the engine's first events: the settings, and the pending requests.
func (c *Controller) opening(ctx context.Context) ([]engine.Event, error) {
	now := c.clock.now()
	configured, err := c.configured(ctx, c.current())
	if err != nil {
		return nil, err
	}
	events := []engine.Event{{At: now, Body: configured}}
	bodies, err := c.collectInbox(ctx)
	for _, body := range bodies {
		events = append(events, engine.Event{At: now, Body: body})
	}
	return events, err
}

// group is how many events one commit may hold. More would only delay the first of them.
const group = 256

func (c *Controller) drain(first engine.Event) []engine.Event {
	events := []engine.Event{first}
	for len(events) < group {
		select {
		case ev := <-c.events:
			events = append(events, ev)
		default:
			return events
		}
	}
	return events
}

// until returns how long to sleep before a wake time; an hour if there is none.
func (c *Controller) until(wake drover.Time) time.Duration {
	if wake == 0 {
		return time.Hour
	}
	return max(0, wake.Sub(c.clock.now()))
}

// post sends an event to the loop, unless the controller ends first.
func (c *Controller) post(ctx context.Context, body engine.Body) {
	if effect, _ := engine.Answer(body); effect != 0 {
		c.done(effect, body)
	}
	select {
	case c.events <- engine.Event{At: c.clock.now(), Body: body}:
	case <-ctx.Done():
	}
}

// Query calls ask with the engine between two decisions, once the earlier one is committed. ask must not keep its
// argument.
func (c *Controller) Query(ctx context.Context, ask func(*engine.Engine)) error {
	return c.ask(ctx, c.queries, ask)
}

// Peek is Query for those who only show the engine's state to people: it does not wait for a commit, so a decision that
// ask sees may not be in the records yet.
func (c *Controller) Peek(ctx context.Context, ask func(*engine.Engine)) error {
	return c.ask(ctx, c.peeks, ask)
}

func (c *Controller) ask(ctx context.Context, way chan<- query, ask func(*engine.Engine)) error {
	q := query{ask, make(chan struct{})}
	select {
	case way <- q:
		<-q.done
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.ended:
		return errEnded
	}
}

var errEnded = drover.Errorf(drover.KindUnreachable, "the controller has stopped")

// Drain makes the controller start nothing more: see engine.DrainAsked. If stop is not empty, it also stops running
// jobs, which are requeued for the next controller, with stop as the reason.
func (c *Controller) Drain(ctx context.Context, stop string) {
	c.post(ctx, engine.DrainAsked{Stop: stop})
}

// CloseFleet ends the fleet: every instance is destroyed as soon as it has no work; with now, also those that are
// kept for inspection.
func (c *Controller) CloseFleet(ctx context.Context, now bool) {
	c.post(ctx, engine.CloseAsked{Now: now})
}

// AtRest reports whether nothing is left of the fleet (rest), or nothing but queued jobs (waiting): see engine.AtRest
// and engine.Drained.
func (c *Controller) AtRest(ctx context.Context) (rest, waiting bool, err error) {
	err = c.Query(ctx, func(e *engine.Engine) { rest, waiting = e.AtRest(), e.Drained() })
	return rest, waiting, err
}

// clock returns times that never decrease: if the wall clock is set back, time continues from the last value.
type clock struct {
	mu   sync.Mutex
	last drover.Time // guarded by mu
	at   time.Time   // when last was returned; guarded by mu
}

func (k *clock) now() drover.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := time.Now()
	wall := drover.TimeOf(t)
	if !k.at.IsZero() {
		wall = max(wall, k.last.Add(t.Sub(k.at)))
	}
	k.last, k.at = wall, t
	return wall
}
