package simtest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"drover"
	"drover/internal/engine"
)

// cloud is a modelled cloud.
type cloud struct {
	w      *World
	name   string
	vms    []*vm       // those that exist or are not long gone, oldest first
	cutOff drover.Time // no instance can be reached until then
	lag    time.Duration
	prices catalogue
}

func (w *World) cloud(name string) *cloud {
	for _, cl := range w.clouds {
		if cl.name == name {
			return cl
		}
	}
	panic("there is no cloud " + name)
}

var zones = []string{"a", "b"}

// Offerings is what a modelled cloud offers.
func Offerings(cloud string) []drover.Offering {
	var all []drover.Offering
	for i, name := range []string{"small", "large"} {
		n := drover.MilliCPU(2000 << (2 * i))
		t := drover.InstanceType{Name: name, ProviderType: name, Resources: drover.Resources{
			CPU: n, Memory: drover.Bytes(n) * drover.MiB * 2, Disk: 100 * drover.GiB, Arch: "amd64",
		}}
		group := map[string]string{"small": "standard"}[name] // large shares its quota with no other type
		for _, zone := range zones {
			price := drover.Money(n) * drover.Dollar / 20000
			all = append(all,
				drover.Offering{Cloud: cloud, Zone: zone, Market: drover.OnDemand, Price: price, Type: t, QuotaGroup: group},
				drover.Offering{Cloud: cloud, Zone: zone, Market: drover.Spot, Price: price / 3, Type: t, QuotaGroup: group})
		}
	}
	return all
}

// create makes an instance, unless one of that name exists. A call that times out may have taken effect, may still take
// effect, or may never.
func (c *controller) create(effect int64, f engine.Create) {
	w, cl := c.w, c.w.cloud(f.Cloud)
	v, no := cl.named(f.Name), func(most time.Duration, tried int, err *drover.Error) {
		c.reply(most, engine.CreateFailed{Effect: effect, Instance: f.Instance, Tried: tried, Err: err})
	}
	lost := drover.Errorf(drover.KindTransient, "timed out")
	switch {
	case cl.rages(Outage):
		no(time.Minute, 0, lost)
	case cl.rages(RateStorm) && w.roll(2) == 0:
		no(time.Second, 0, c.slower())
	case v != nil && !w.happens(CreateTwice):
		c.made(effect, f, v)
	case w.happens(CreateNever):
		no(time.Minute, 0, lost)
	case w.happens(CreateLate):
		w.after(5*time.Second+w.within(latest-5*time.Second), func() { cl.makeLate(f) })
		no(5*time.Second, 0, lost)
	default:
		at, err := cl.choose(f)
		if err != nil {
			no(time.Second, len(f.Candidates), err)
			return
		}
		c.made(effect, f, cl.make(f, at))
	}
}

// slower is a cloud's error for a caller that calls too often.
func (c *controller) slower() *drover.Error {
	return &drover.Error{Kind: drover.KindRateLimit, RetryAt: c.now().Add(time.Second + c.w.within(30*time.Second)), Message: "slower"}
}

// made answers a create that took effect, unless the answer is lost.
func (c *controller) made(effect int64, f engine.Create, v *vm) {
	if c.w.happens(CreateLost) {
		c.reply(time.Minute, engine.CreateFailed{Effect: effect, Instance: f.Instance, Err: drover.Errorf(drover.KindTransient, "timed out")})
		return
	}
	v.madeFor = c
	v.createTold = v.tells(c.w.now)
	c.reply(2*time.Second, engine.Created{
		Effect: effect, Instance: f.Instance, ProviderID: v.provider, Taken: v.offering, Addresses: drover.Addresses{Private: v.createTold},
	})
}

// choose returns the first candidate that is available, or why none is.
func (cl *cloud) choose(f engine.Create) (at int, err *drover.Error) {
	if cl.w.happens(CreateFails) {
		return 0, pick(cl.w, []*drover.Error{
			{Kind: drover.KindCapacity, Scope: drover.ScopeType, Message: "refused"},
			{Kind: drover.KindQuota, Scope: drover.ScopeAll, Message: "refused"},
			{Kind: drover.KindInvalid, Message: "refused"},
			{Kind: drover.KindAuthentication, Message: "who are you?"},
		})
	}
	for i, o := range f.Candidates {
		if err = cl.denied(o); err == nil || err.Kind == drover.KindQuota {
			return i, err
		}
	}
	return 0, err
}

// latest is how long after its request a create may still take effect.
const latest = 20 * time.Second

// makeLate makes an instance that was requested a while ago, unless one of its name has existed since: the create may
// have been repeated under that name.
func (cl *cloud) makeLate(f engine.Create) {
	before := slices.ContainsFunc(cl.vms, func(v *vm) bool { return v.name == f.Name })
	if at, err := cl.choose(f); err == nil && !before {
		cl.make(f, at)
	}
}

func (cl *cloud) make(f engine.Create, at int) *vm {
	w := cl.w
	w.Made++
	v := &vm{
		w: w, cloud: cl, provider: fmt.Sprintf("vm-%d", w.Made), name: f.Name, owner: f.Owner, pool: f.Pool, template: f.Template, offering: f.Candidates[at], alive: true, created: w.now, appears: w.now,
		boots: w.now.Add(w.within(time.Minute)), key: f.Name, clock: w.within(time.Hour) - 30*time.Minute, fence: map[fenced]int{},
		candid: w.roll(2) == 0, dated: w.Made%2 == 0,
	}
	v.move()
	if w.roll(2) == 0 { // only lists report its address, and not at once
		v.located = w.now.Add(time.Second + w.within(20*time.Second))
	}
	if v.offering.Type.Resources.Disk == 0 {
		v.disk = f.Disk
	}
	switch {
	case w.happens(MakeFails):
		v.boots = 0
		w.after(w.within(time.Minute), v.unmake)
	case w.happens(BootFails):
		v.boots = 0
	case w.happens(BootSlow):
		v.boots = v.boots.Add(w.within(w.settings.Lifecycle.BootTimeout))
	}
	if cl.lag > 0 && w.happens(NewMissing) {
		v.appears = w.now.Add(w.within(max(25*time.Second, cl.half())))
	}
	if w.happens(WrongKey) {
		v.key = "another"
	}
	v.hang(cl.cutOff)
	w.orphan(v)
	cl.vms = append(cl.vms, v)
	return v
}

// named returns the existing instance with a name; nil if there is none.
func (cl *cloud) named(name string) *vm {
	for _, v := range cl.vms {
		if v.name == name && v.there() && !v.ended() {
			return v
		}
	}
	return nil
}

// provided returns the instance with the cloud's id, even if it is gone; nil if there is none.
func (cl *cloud) provided(id string) *vm {
	for _, v := range cl.vms {
		if v.provider == id {
			return v
		}
	}
	return nil
}

func (c *controller) destroy(effect int64, f engine.Destroy) {
	w, cl := c.w, c.w.cloud(f.Cloud)
	v := cl.provided(f.ProviderID)
	if f.ProviderID == "" {
		v = cl.named(f.Name)
	}
	ev := engine.Destroyed{Effect: effect, Instance: f.Instance}
	switch {
	case cl.rages(Outage):
		ev.Err = drover.Errorf(drover.KindTransient, "no answer")
	case w.happens(DestroyFails):
		ev.Err = drover.Errorf(drover.KindTransient, "timed out")
		if v != nil && w.roll(2) == 0 {
			v.destroy()
		}
	case v == nil:
	case !v.ended() && w.happens(DestroyLost):
	default:
		v.destroy()
	}
	if v != nil && f.ProviderID != "" {
		v.book.call = effect
		if ev.Err == nil {
			c.accepted[effect] = v
		}
	}
	c.reply(time.Second, ev)
}

// describe answers whether an instance exists. A young one may still be unknown, and a departed one may still be shown
// for a while.
func (c *controller) describe(effect int64, f engine.Describe) {
	w, cl := c.w, c.w.cloud(f.Cloud)
	v, ev := cl.provided(f.ProviderID), engine.Described{Effect: effect, Instance: f.Instance, Began: c.now()}
	switch {
	case cl.rages(Outage) || cl.rages(RateStorm) && w.roll(2) == 0:
		ev.Err = drover.Errorf(drover.KindTransient, "no answer")
	case v == nil:
		ev.Gone = true
	case v.gone != 0:
		ev.Gone = w.now >= v.gone.Add(w.within(cl.lag)) || v.candid
	default:
		ev.Gone = w.now < v.appears && w.now < v.created.Add(cl.lag)
	}
	if ev.Gone && v != nil {
		ev.Ended = v.says()
	}
	c.reply(time.Second, ev)
}

// forsaken disconnects the cloud's instances from a controller that is killed.
func (cl *cloud) forsaken(c *controller) {
	for _, v := range cl.vms {
		if v.untold = 0; v.link == c {
			v.link, v.halfOpen, v.unheard, v.heard = nil, false, cl.w.now, max(v.heard, c.now())
			cl.w.orphan(v)
		}
	}
}

func (c *controller) setTags(effect int64, f engine.SetTags) {
	v, ev := c.w.cloud(f.Cloud).provided(f.ProviderID), engine.Tagged{Effect: effect, Instance: f.Instance}
	switch lost := c.w.happens(TagFails); {
	case v == nil || !v.there():
		ev.Err = drover.Errorf(drover.KindNotFound, "no such instance")
	case lost && c.w.roll(2) == 0:
		ev.Err = drover.Errorf(drover.KindTransient, "not tagged")
	default:
		v.tag, v.owner, v.kept = f.Idle, cmp.Or(f.Owner, v.owner), f.Stopped
		v.change()
		if lost {
			ev.Err = drover.Errorf(drover.KindTransient, "timed out")
		}
	}
	c.reply(2*time.Second, ev)
}
