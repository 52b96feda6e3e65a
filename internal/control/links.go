package control

import (
	"context"
	"maps"
	"sync"

	"drover"
	"drover/driver"
	"drover/internal/engine"
	"drover/internal/logkey"
	"drover/internal/remote"
	"drover/internal/wire"
)

// link is a live connection to an instance.
type link struct {
	id       int64
	name     string
	cloud    string
	provider string // its provider ID
	conn     *remote.Conn
	c        *Controller
	ctx      context.Context

	absurd        bool          // it has named an impossible attempt; only its reader goroutine uses this and the next two
	calmed        bool          // it has reported that its cloud withdrew a notice
	healthReports int           // how often it has reported its health
	claims        chan struct{} // an element for each connection of a job to be accepted

	ordering sync.Mutex   // held while orders are sent
	ordered  *wire.Orders // the last orders sent to its runner; nil: none yet; guarded by ordering

	mu   sync.Mutex
	ends map[drover.AttemptID]drover.Exit // exits of attempts, with the ends of their output; guarded by mu
}

func (c *Controller) link(instance int64) *link {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.links[instance]
}

// connect opens an instance's control stream, and reports to the engine what its runner has and, from then on, what it
// sends.
func (c *Controller) connect(ctx context.Context, effect int64, f engine.Connect) {
	conn, err := c.dial(ctx, f)
	if err != nil {
		c.post(ctx, engine.ConnectFailed{Effect: effect, Instance: f.Instance, Err: drover.AsError(err, drover.KindTransient)})
		return
	}
	l := &link{id: f.Instance, name: f.Name, cloud: f.Cloud, provider: f.ProviderID, conn: conn, c: c, ctx: ctx, claims: make(chan struct{}, wire.APIConns), ends: map[drover.AttemptID]drover.Exit{}}
	attempts := l.reports(conn.Hello())
	c.mu.Lock()
	c.links[f.Instance] = l
	c.mu.Unlock()
	l.order()
	l.catchUp(conn.LastLines())

	c.post(ctx, engine.Connected{
		Effect: effect, Instance: f.Instance, HostKey: conn.Fingerprint(), Attempts: attempts, ProbeFailed: conn.ProbeFailed(),
		Notice: conn.Notice(), Unhealthy: conn.Ailing(),
	})
	err = conn.Run(ctx, l)
	c.drop(l)
	if ctx.Err() == nil {
		c.post(ctx, engine.Disconnected{Instance: f.Instance, Heard: drover.TimeOf(conn.Heard()), Text: err.Error()})
	}
}

// reports converts a runner's hello for the engine. The ends of output stay here.
func (l *link) reports(h wire.Hello) (reports []engine.Report) {
	for _, a := range h.Attempts {
		if !l.plausible(a.ID) {
			continue
		}
		r := engine.Report{ID: a.ID, Proof: l.verify(a.ID, a.Proof)}
		if a.Exit != nil {
			l.ends[a.ID] = *a.Exit
			r.Exit = new(withoutOutput(*a.Exit))
		}
		reports = append(reports, r)
	}
	return reports
}

// plausible reports whether an attempt that the instance names can exist. An impossible one never reaches the engine,
// and is logged once per connection.
func (l *link) plausible(id drover.AttemptID) bool {
	if id.Plausible() {
		return true
	}
	if !l.absurd {
		l.absurd = true
		l.c.cfg.Log.Warn("ignoring the instance's report about an attempt whose number is not valid", logkey.Instance, l.name, logkey.Attempt, id.String())
	}
	return false
}

// verify checks an instance's proof of an attempt.
func (l *link) verify(id drover.AttemptID, proof string) engine.Proof {
	switch l.c.cfg.Key.AttemptProvedBy(proof, l.name, id) {
	case "":
		return engine.ProofMissing
	case l.c.state.Nonce:
		return engine.ProofValid
	}
	return engine.ProofForeign
}

// withoutOutput returns an exit for the engine: ends of output belong neither in its memory nor in a recording.
func withoutOutput(exit drover.Exit) drover.Exit {
	exit.Stdout, exit.Stderr = "", ""
	return exit
}

// manyEnds is how many ended attempts of one instance are kept before those unknown to the engine are dropped: a runner
// may name anything.
const manyEnds = 1000

// exit returns how an attempt ended according to the instance, until it is forgotten.
func (l *link) exit(id drover.AttemptID) (drover.Exit, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	exit, ok := l.ends[id]
	return exit, ok
}

// keepEnd keeps how an attempt of the instance ended until the attempt is forgotten or the connection ends: the next
// hello names everything that the runner has.
func (l *link) keepEnd(id drover.AttemptID, exit drover.Exit) {
	l.mu.Lock()
	l.ends[id] = exit
	many := len(l.ends) > manyEnds
	l.mu.Unlock()
	if many {
		l.dropOrphans()
	}
}

// dropOrphans drops the ends of attempts that are not live on the instance.
func (l *link) dropOrphans() {
	drop := func(e *engine.Engine) {
		l.mu.Lock()
		defer l.mu.Unlock()
		maps.DeleteFunc(l.ends, func(id drover.AttemptID, _ drover.Exit) bool {
			at, live := e.Where(id)
			return !live || at != l.id
		})
	}
	// It fails only when the controller ends, and with it everything kept.
	_ = l.c.Query(l.ctx, drop)
}

// Exited receives an attempt's end.
func (l *link) Exited(m wire.Exited) {
	if !l.plausible(m.ID) {
		return
	}
	l.keepEnd(m.ID, m.Exit)
	l.c.post(l.ctx, engine.Exited{Instance: l.id, Attempt: m.ID, Exit: withoutOutput(m.Exit), Proof: l.verify(m.ID, m.Proof)})
}

// API receives a job's connection to DROVER_API, unless there are more than an instance may have.
func (l *link) API(m wire.API) {
	select {
	case l.claims <- struct{}{}:
	default:
		return
	}
	l.c.work.Go(func() {
		defer func() { <-l.claims }()
		l.c.acceptAPI(l, m.Conn)
	})
}

func (c *Controller) drop(l *link) {
	l.conn.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.links[l.id] == l {
		delete(c.links, l.id)
	}
}

// disconnect ends the connection to an instance, if there is one, and forgets what came over it.
func (c *Controller) disconnect(instance int64) {
	if l := c.link(instance); l != nil {
		c.drop(l)
	}
	c.takeRunnerLog(instance)
}

func (c *Controller) closeLinks() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.links {
		l.conn.Close()
	}
}

// dial logs in to an instance and starts its runner.
func (c *Controller) dial(ctx context.Context, f engine.Connect) (*remote.Conn, error) {
	cl, err := c.cloud(f.Cloud)
	if err != nil {
		return nil, err
	}
	in, addr, err := c.address(cl, f)
	if err != nil {
		return nil, err
	}
	runner, err := c.cfg.Runners(f.Arch)
	if err != nil {
		return nil, err
	}
	t := cl.target(identity{Instance: in, name: f.Name, pinned: f.HostKey, cloud: cl.own, key: c.cfg.Key})
	t.Address = addr
	t.Fleet, t.Instance, t.Epoch = c.cfg.Fleet, f.Name, c.state.Epoch
	t.Runner = runner
	t.Timeouts = remote.Timeouts{ProbeInterval: c.current().Settings.Lifecycle.ProbeInterval, Probe: c.current().Deadline}
	t.LoggedIn = func() { c.cfg.Observer.LoggedIn(f.Instance, c.clock.now()) }
	t.Probed = func(passed bool) { c.cfg.Observer.Probed(f.Cloud, passed) }
	t.Apart = f.Apart
	if f.Probe {
		t.BootProbe = c.current().probe(f.Pool)
	}
	return remote.Connect(ctx, t)
}

// address returns where an instance can be reached, according to its create call, the last list, or the records;
// KindNotFound if unknown.
func (c *Controller) address(cl *cloud, f engine.Connect) (driver.Instance, string, error) {
	in, known := cl.find(f.ProviderID)
	addr, _ := cl.Reach(in)
	if addr == "" {
		in.ID, in.Addresses = f.ProviderID, f.Addresses
		addr, _ = cl.Reach(in)
	}
	switch {
	case addr != "":
		return in, addr, nil
	case !known && cl.wasListed():
		return in, "", drover.Errorf(drover.KindNotFound, "its cloud does not list it")
	}
	return in, "", drover.Errorf(drover.KindNotFound, "its address is not known yet")
}
