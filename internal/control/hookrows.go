package control

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"drover"
	"drover/internal/backoff"
	"drover/internal/engine"
	"drover/internal/logkey"
	"drover/internal/store"
	"drover/internal/webhook"
)

// A hook is recorded with the decision that fires it, and its row is removed once it has run: so it runs at least once,
// and nothing about it is kept in memory except while it runs. Hooks of one instance run one after the other. No
// decision waits for a hook.

// hookInterval is how often the controller looks for hooks to repeat.
const hookInterval = 2 * time.Second

// hookEnd is the end of a hook's run, and whether it is recorded.
type hookEnd struct {
	id       int64
	recorded bool
}

// hook returns the target of a pool's hook or, without a pool, of the fleet's; empty if there is none.
func (c *Controller) hook(pool string, h drover.Hook) string {
	if pool == "" {
		return c.current().Hooks[h]
	}
	return c.current().Pools[pool].Hooks[h]
}

// listeners returns the pools whose hooks an event fires. The empty name is the fleet.
func (c *Controller) listeners(f engine.Fire) (pools []string) {
	if c.hook("", f.Hook) != "" {
		pools = append(pools, "")
	}
	if f.Pool != "" && c.hook(f.Pool, f.Hook) != "" {
		pools = append(pools, f.Pool)
	}
	return pools
}

// hookRows returns the rows of an event, one for each hook that it fires.
func (c *Controller) hookRows(row engine.HookRow) (all []engine.Write) {
	f := row.Fire
	pools := c.listeners(f)
	if len(pools) == 0 {
		return nil
	}
	if cl, err := c.cloud(f.Cloud); err == nil {
		if in, ok := cl.recall(f.ProviderID); ok {
			row.Address, _ = cl.Reach(in)
		}
	}
	row.Epoch = c.state.Epoch
	for _, row.Pool = range pools {
		all = append(all, engine.Write{Hook: new(row)})
	}
	return all
}

// withHooks replaces each event among the writes with a row for each hook to run, or none.
func (c *Controller) withHooks(writes []engine.Write) []engine.Write {
	all := make([]engine.Write, 0, len(writes))
	for _, w := range writes {
		if w.Hook != nil {
			all = append(all, c.hookRows(*w.Hook)...)
			continue
		}
		all = append(all, w)
	}
	return all
}

// fired runs the hooks of an event whose rows are committed. If the engine waits for hooks but there are none, it posts
// the result immediately.
func (c *Controller) fired(ctx context.Context, effect int64, f engine.Fire) {
	if f.Hook == drover.HookBroken && len(c.listeners(f)) == 0 {
		c.post(ctx, engine.Fired{Effect: effect, Instance: f.Instance})
	}
	signal(c.hookWake)
}

// runHooks runs a limited number of hooks at a time until ctx ends. Then it starts those that are due for at most the
// time that one hook may take; the next controller runs the rest.
func (c *Controller) runHooks(ctx context.Context) {
	c.sweepScripts()
	running, ended := map[int64]bool{}, make(chan hookEnd)
	stop, last := ctx.Done(), (<-chan time.Time)(nil)
	tick := time.NewTicker(hookInterval)
	defer tick.Stop()
	for over := false; ; {
		if !over {
			c.beginHooks(ctx, running, ended)
		}
		c.hooksRunning.Store(int64(len(running)))
		if stop == nil && len(running) == 0 {
			return
		}
		select {
		case end := <-ended:
			delete(running, end.id)
			over = over || stop == nil && !end.recorded
		case <-c.hookWake:
		case <-tick.C:
		case <-stop:
			stop, last = nil, time.After(engine.HookTime)
		case <-last:
			over = true
		}
	}
}

// beginHooks starts hooks that are due, up to the limit.
func (c *Controller) beginHooks(ctx context.Context, running map[int64]bool, ended chan<- hookEnd) {
	due, err := c.cfg.Store.Hooks(context.WithoutCancel(ctx), c.clock.now(), 2*hooksAtOnce)
	if err != nil {
		c.cfg.Log.Error("the hooks to run cannot be read", logkey.Error, err)
	}
	for _, h := range due {
		if running[h.ID] {
			continue
		}
		if len(running) == hooksAtOnce {
			return
		}
		running[h.ID] = true
		go func() {
			recorded := c.runRow(context.WithoutCancel(ctx), h)
			if !recorded {
				_ = backoff.For(ctx, unrecorded)
			}
			ended <- hookEnd{h.ID, recorded}
		}()
	}
}

// runRow runs a hook and records that, or that it must run again. It reports whether it is recorded.
func (c *Controller) runRow(ctx context.Context, h store.Hook) (recorded bool) {
	target := c.hook(h.Pool, h.Fire.Hook)
	var failure, ran error // a script that has run does not run again, even if it failed
	switch {
	case isURL(target):
		failure = c.postHook(ctx, h.HookRow, target)
	case isAttribute(target):
		ran, failure = c.runAttribute(ctx, h.HookRow, target)
	case target != "": // otherwise the configuration has changed
		ran = c.runScript(ctx, h.HookRow, target)
	}
	if target != "" {
		c.cfg.Observer.HookRan(h.Fire.Hook, cmp.Or(failure, ran))
	}
	done, err := c.cfg.Store.HookRun(ctx, h, failure, c.clock.now())
	if err != nil {
		c.cfg.Log.Error("a hook ran, but its run cannot be recorded, so it will run again", logkey.Error, err)
	}
	log := c.cfg.Log.With(logkey.Hook, string(h.Fire.Hook), logkey.Instance, h.Fire.Name)
	switch {
	case failure != nil && done:
		log.Warn("a hook failed and will not be retried", logkey.Error, failure)
	case failure != nil:
		log.Info("a hook failed and will be retried", logkey.Error, failure)
	}
	if h.Fire.Hook == drover.HookBroken && h.Epoch == c.state.Epoch {
		c.post(ctx, engine.Fired{Effect: h.Effect, Instance: h.Fire.Instance})
	}
	return err == nil
}

func isURL(target string) bool {
	return strings.HasPrefix(target, "http://") || strings.HasPrefix(target, "https://")
}

// hookMessage is the message about an event that is posted to a URL.
type hookMessage struct {
	Event      string      `json:"event"` // the same if it is repeated
	Hook       drover.Hook `json:"hook"`
	Fleet      string      `json:"fleet"`
	Cloud      string      `json:"cloud"`
	Zone       string      `json:"zone,omitempty"`
	Project    string      `json:"project,omitempty"`
	Pool       string      `json:"pool,omitempty"`
	Instance   string      `json:"instance,omitempty"`
	Name       string      `json:"name,omitempty"` // its name in the cloud
	ProviderID string      `json:"provider_id,omitempty"`
	Address    string      `json:"address,omitempty"`
	Reason     string      `json:"reason,omitempty"`
}

// postHook posts to a URL, which may be anywhere, since the configuration names it.
func (c *Controller) postHook(ctx context.Context, h engine.HookRow, url string) error {
	f, with := h.Fire, c.current().Notify
	with.Trusted = true
	m := hookMessage{eventID(c.cfg.Fleet, f), f.Hook, c.cfg.Fleet, f.Cloud, f.Zone, c.project(f.Cloud), f.Pool, f.Name, f.Prefix + f.Name, f.ProviderID, h.Address, f.Reason.Text}
	return webhook.Post(ctx, with, url, fmt.Sprintf("%s %s: %s", f.Hook, f.Name, f.Reason.Text), m)
}
