package control

import (
	"cmp"
	"context"
	"encoding/base64"
	"slices"
	"strconv"
	"time"

	"drover"
	"drover/driver"
	"drover/internal/engine"
	"drover/internal/logkey"
)

// Instances lists instances.
func (c *Controller) Instances(ctx context.Context, f drover.InstanceFilter) (page drover.Page[drover.Instance], err error) {
	f.Limit = pageSize(f.Limit)
	page.Items, err = c.cfg.Store.Instances(ctx, c.clock.now(), f)
	full := len(page.Items) == f.Limit
	if n := fitting(page.Items); n < len(page.Items) {
		page.Items, full = page.Items[:n], true
	}
	if n := len(page.Items); n > 0 && full {
		page.Next = strconv.FormatInt(page.Items[n-1].ID, 10)
	}
	for i := range page.Items {
		c.addLogin(&page.Items[i])
	}
	return page, err
}

// pageBytes is the approximate size limit of a page of instances as JSON.
const pageBytes = 4 << 20

// fitting returns how many of the instances fit on a page, at least one. Each may have many jobs.
func fitting(list []drover.Instance) int {
	bytes := 0
	for i, in := range list {
		if bytes > pageBytes {
			return i
		}
		bytes += 1024 + 24*len(in.Jobs)
		if in.Reason != nil {
			bytes += len(in.Reason.Text)
		}
	}
	return len(list)
}

// Instance returns one instance.
func (c *Controller) Instance(ctx context.Context, name string) (drover.Instance, error) {
	in, err := c.cfg.Store.Instance(ctx, c.clock.now(), name)
	if err != nil {
		return in, err
	}
	c.addLogin(&in)
	if lines := c.runnerLog(in.ID); len(lines) > 0 {
		in.RunnerLog = lines
	}
	return in, nil
}

// addLogin adds where the instance can be reached, if its cloud has reported it.
func (c *Controller) addLogin(in *drover.Instance) {
	cl := c.current().clouds[in.Cloud]
	if cl == nil || in.State == drover.InstanceGone {
		return
	}
	seen, ok := cl.find(in.ProviderID)
	if !ok {
		return
	}
	for _, a := range []string{seen.Addresses.Public, seen.Addresses.Private} {
		if a != "" && !slices.Contains(in.Addresses, a) {
			in.Addresses = append(in.Addresses, a)
		}
	}
	address, user := cl.Reach(seen)
	if address == "" {
		return
	}
	in.Login = &drover.Login{Address: address, User: user}
	if cl.own.Capabilities().HostKeys != driver.HostKeysPlanted {
		return
	}
	if key, err := c.cfg.Key.HostKey(in.Name); err == nil {
		in.Login.HostKey = "ssh-ed25519 " + base64.StdEncoding.EncodeToString(key.Public)
	}
}

// Instruct applies a verb to an instance.
func (c *Controller) Instruct(ctx context.Context, name string, verb drover.Verb, reason string) (drover.Instance, error) {
	in, err := c.Instance(ctx, name)
	switch {
	case err != nil:
		return in, err
	case verb.Told() == "":
		return in, drover.Errorf(drover.KindInvalid, "%.40q is not a command for an instance", string(verb)).WithHint("the commands are drain, hold, release and kill")
	case in.State == drover.InstanceGone, in.State == drover.InstanceStopping && verb != drover.VerbKill:
		return in, drover.Errorf(drover.KindConflict, "instance %s is %s", in.Name, in.State)
	}
	why := drover.Reason{Code: drover.ReasonOperator, Text: asked(ctx, verb.Told(), reason)}
	if err := c.wish(ctx, engine.InstructAsked{Instance: in.ID, Verb: verb, Reason: why}); err != nil {
		return in, err
	}
	return c.Instance(ctx, strconv.FormatInt(in.ID, 10))
}

// Offers lists offerings and whether they are rented now.
func (c *Controller) Offers(ctx context.Context, f drover.OfferFilter) ([]drover.Offer, error) {
	known := func(s engine.CloudSettings) bool { return s.Name == f.Cloud }
	if f.Cloud != "" && !slices.ContainsFunc(c.current().Settings.Clouds, known) {
		return nil, drover.Errorf(drover.KindInvalid, "there is no cloud %.80q", f.Cloud)
	}
	var states []engine.OfferState
	if err := c.Peek(ctx, func(e *engine.Engine) { states = e.Offers() }); err != nil {
		return nil, err
	}
	return Chosen(states, c.leftOut(), f), nil
}

// Chosen returns the offers that pass the filter, cheapest first.
func Chosen(states []engine.OfferState, leftOut []drover.LeftOut, f drover.OfferFilter) []drover.Offer {
	offers := []drover.Offer{}
	need := drover.Shape{Need: f.Need, Placement: drover.Placement{Cloud: f.Cloud}, Spot: drover.SpotPrefer}
	for _, s := range states {
		if need.Accepts(s.Offering) {
			offers = append(offers, offer(s))
		}
	}
	for _, o := range leftOut {
		if f.All && need.Accepts(o.Offering) {
			left := offer(engine.OfferState{Offering: o.Offering})
			left.LeftOut = o.Why
			offers = append(offers, left)
		}
	}
	slices.SortStableFunc(offers, func(a, b drover.Offer) int {
		return cmp.Or(cmp.Compare(a.Price, b.Price), cmp.Compare(a.Cloud, b.Cloud), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Zone, b.Zone))
	})
	return offers
}

func offer(s engine.OfferState) drover.Offer {
	o := s.Offering
	r := o.Type.Resources
	offer := drover.Offer{
		Cloud: o.Cloud, Zone: o.Zone, Type: o.Type.Name, Market: o.Market, VCPUs: float64(r.CPU) / 1000, Memory: r.Memory, GPUs: r.GPUs,
		Arch: r.Arch, Price: o.Price.USD(), Disk: r.Disk, LocalDisk: o.Type.LocalDisk, Interruptions: o.Interruptions, Reserved: o.Reserved, QuotaGroup: o.QuotaGroup,
	}
	if r.Disk == 0 {
		offer.DiskPrice = o.DiskPrice.USD()
	}
	if s.Why != nil {
		offer.Blocked = &drover.Blocked{Code: s.Why.Code, Reason: s.Why.Text, Until: s.Why.Until}
	}
	return offer
}

// Costs returns what money was spent on.
func (c *Controller) Costs(ctx context.Context, f drover.CostFilter) (drover.Costs, error) {
	if !f.By.Known() {
		return drover.Costs{}, drover.Errorf(drover.KindInvalid, "costs cannot be grouped by %.80q", string(f.By)).
			WithHint("group them by job, label, label:NAME, user, pool, cloud or type")
	}
	if f.Until != 0 && f.Until <= f.Since {
		return drover.Costs{}, drover.Errorf(drover.KindInvalid, "until is not after since")
	}
	if f.Step != 0 {
		if err := checkSteps(f, c.clock.now()); err != nil {
			return drover.Costs{}, err
		}
	}
	return c.cfg.Store.Costs(ctx, c.clock.now(), f)
}

// checkSteps refuses too many time steps, or steps without a start.
func checkSteps(f drover.CostFilter, now drover.Time) error {
	until := min(cmp.Or(f.Until, now), now)
	switch {
	case f.Step < time.Second:
		return drover.Errorf(drover.KindInvalid, "time steps of %v are too short", f.Step).WithHint("use steps of at least 1s")
	case f.Since == 0:
		return drover.Errorf(drover.KindInvalid, "time steps require a start time").WithHint("give a start time with since")
	case until.Sub(f.Since) > f.Step*drover.MaxCostSteps:
		return drover.Errorf(drover.KindInvalid, "time steps of %v would exceed the limit of %d steps", f.Step, drover.MaxCostSteps).WithHint("use longer steps or a shorter period")
	}
	return nil
}

// Summary returns what the fleet did and what it cost.
func (c *Controller) Summary(ctx context.Context) (drover.Summary, error) {
	return c.cfg.Store.Summary(ctx, c.clock.now())
}

// Status summarizes the fleet.
func (c *Controller) Status(ctx context.Context) (drover.Status, error) {
	counts, err := c.cfg.Store.Counts(ctx)
	if err != nil {
		return drover.Status{}, err
	}
	aside, err := c.cfg.Store.SetAside(ctx)
	if err != nil {
		return drover.Status{}, err
	}
	var s engine.Status
	var used []drover.BudgetUse
	err = c.Peek(ctx, func(e *engine.Engine) { s, used = e.Status(), budgets(e.Budgets()) })
	if err != nil {
		return drover.Status{}, err
	}
	return drover.Status{
		Fleet: c.cfg.Fleet, Version: c.cfg.Version, Time: s.Now, Jobs: counts, Waiting: s.Waiting, Instances: s.Instances, Standing: s.Standing,
		Hourly: s.Hourly.USD(), Spent: s.Spent.USD(), Budgets: used, Paused: s.Paused, Draining: s.Draining, SetAside: aside, Suspended: c.suspended(), Refused: c.Refused(),
	}, nil
}

// Refuse records why the current configuration file is not in use; empty: it is.
func (c *Controller) Refuse(why string) { c.refused.Store(&why) }

// Refused returns the last text recorded by Refuse.
func (c *Controller) Refused() string { return *c.refused.Load() }

func budgets(states []engine.BudgetState) (used []drover.BudgetUse) {
	for _, b := range states {
		used = append(used, drover.BudgetUse{
			Scope: b.Scope, Window: b.Window, Hard: b.Hard.USD(), Soft: b.Soft.USD(), Spent: b.Spent.USD(), Promised: b.Committed.USD(), Until: b.Until,
		})
	}
	return used
}

// CreateToken creates a token. It is KindInvalid if a cloud does not isolate its jobs and another user has a token that
// can run jobs.
func (c *Controller) CreateToken(ctx context.Context, r drover.TokenRequest) (drover.NewToken, error) {
	if cloud := Exposes(c.current().Clouds); cloud != "" && r.Role != drover.RoleView {
		if err := c.mayShareHost(ctx, cloud, r.User); err != nil {
			return drover.NewToken{}, err
		}
	}
	token, err := c.cfg.Store.CreateToken(ctx, c.clock.now(), r)
	if err == nil {
		c.cfg.Log.Info("token created", logkey.Caller, drover.IdentityOf(ctx).User, logkey.TokenID, token.ID, logkey.User, r.User, logkey.Role, string(r.Role))
	}
	return token, err
}

// Exposes returns the first cloud whose jobs can do whatever the controller can; empty if there is none.
func Exposes(clouds []Cloud) string {
	for _, cl := range clouds {
		if cl.Driver.Capabilities().Exposes {
			return cl.Name
		}
	}
	return ""
}

// mayShareHost refuses a second user where jobs can do whatever the controller can.
func (c *Controller) mayShareHost(ctx context.Context, cloud, user string) error {
	tokens, err := c.cfg.Store.Tokens(ctx)
	if err != nil {
		return err
	}
	for _, t := range tokens {
		ended := t.Expires != nil && t.Expires.Before(c.clock.now().Std())
		if t.User != user && t.Role != drover.RoleView && !ended {
			return drover.Errorf(drover.KindInvalid, "cloud %s runs jobs as the controller's own user, so %s's jobs could do whatever %s can", cloud, user, t.User).
				WithHint("run jobs in another cloud, or write clouds: {%s: {trusted: true}} if its users may do whatever the controller can", cloud)
		}
	}
	return nil
}

// Tokens lists the tokens.
func (c *Controller) Tokens(ctx context.Context) ([]drover.Token, error) {
	return c.cfg.Store.Tokens(ctx)
}

// RevokeToken ends a token.
func (c *Controller) RevokeToken(ctx context.Context, id string) error {
	err := c.cfg.Store.RevokeToken(ctx, id)
	if err == nil {
		c.cfg.Log.Info("token revoked", logkey.Caller, drover.IdentityOf(ctx).User, logkey.TokenID, id)
	}
	return err
}
