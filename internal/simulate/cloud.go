package simulate

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"drover"
	"drover/internal/engine"
	"drover/internal/engine/pool"
)

// cloud is a modelled cloud, which can create every offering while its zones have capacity.
type cloud struct {
	w       *world
	name    string
	added   []*vm // since the last list
	removed []string
}

// vm is a modelled instance.
type vm struct {
	id       int64
	provider string
	name     string
	cloud    *cloud
	offering drover.Offering
	hire     *hire
	boots    drover.Time // when it starts to answer
	notice   *drover.Notice
	linked   bool
	dead     bool
	runs     []*run
	pool     string
	serves   bool // it counts as ready in its pool
	missed   bool // its pool waits for its replacement
	off      bool // it is stopped
}

// run is an attempt on an instance.
type run struct {
	id    drover.AttemptID
	need  drover.Resources
	begun drover.Time
	ended bool
}

// Release begins the effects.
func (w *world) Release(effects []engine.Effect, _ []engine.Note) {
	for _, f := range effects {
		w.do(f)
	}
}

func (w *world) do(f engine.Effect) {
	switch {
	case f.ListOfferings != nil:
		w.after(callTime, func() { w.offer(f.ID, *f.ListOfferings) })
	case f.ListInstances != nil:
		w.list(f.ID, w.clouds[f.ListInstances.Cloud])
	case f.Create != nil:
		w.after(callTime, func() { w.create(f.ID, *f.Create) })
	case f.Destroy != nil:
		w.after(callTime, func() { w.destroy(f.ID, *f.Destroy) })
	case f.Switch != nil:
		w.after(callTime, func() { w.switchInstance(f.ID, *f.Switch) })
	case f.SetTags != nil:
		w.answer(callTime, engine.Tagged{Effect: f.ID, Instance: f.SetTags.Instance})
	case f.GrowDisk != nil:
		w.answer(callTime, engine.DiskGrown{Effect: f.ID, Instance: f.GrowDisk.Instance})
	case f.Connect != nil:
		w.connect(f.ID, *f.Connect)
	case f.Disconnect != nil:
		w.cut(w.vms[f.Disconnect.Instance])
	case f.Start != nil:
		w.after(messageTime, func() { w.start(f.ID, *f.Start) })
	case f.Stop != nil:
		w.after(messageTime, func() { w.stop(*f.Stop) })
	case f.Collect != nil:
		w.after(storeTime, func() { w.collect(f.ID, *f.Collect) })
	case f.Solve != nil:
		w.answer(solveTime, engine.Solved{Effect: f.ID, Plan: w.solver.solve(*f.Solve)})
	}
}

// offer answers with the cloud's offerings, or that nothing has changed.
func (w *world) offer(effect int64, f engine.ListOfferings) {
	ev := engine.Offered{Effect: effect, Cloud: f.Cloud, Hash: strconv.Itoa(w.m.steps)}
	if f.Have == ev.Hash {
		ev.Base = ev.Hash
	} else {
		ev.Offerings = w.m.market.of(f.Cloud)
	}
	w.tell(ev)
}

// list answers with the changes since the last list, as of the start of the call.
func (w *world) list(effect int64, c *cloud) {
	ev := engine.Listed{Effect: effect, Cloud: c.name, Began: w.now, Removed: c.removed}
	for _, v := range c.added {
		o := v.offering
		ev.Added = append(ev.Added, engine.Sighting{
			ProviderID: v.provider, Name: v.name, ProviderType: o.Type.ProviderType, Type: o.Type.Name, Zone: o.Zone, Market: o.Market, Price: o.Price, Created: v.hire.since, Stopped: v.off,
		})
	}
	c.added, c.removed = nil, nil
	w.answer(callTime, ev)
}

// create creates an instance of the first candidate.
func (w *world) create(effect int64, f engine.Create) {
	taken, refused := w.refuses(f.Candidates)
	k := w.pools[f.Pool]
	if refused != nil {
		if k != nil {
			k.out.Refused++
		}
		w.tell(engine.CreateFailed{Effect: effect, Instance: f.Instance, Tried: len(f.Candidates), Err: refused})
		return
	}
	w.made++
	v := &vm{
		id: f.Instance, provider: fmt.Sprintf("vm-%d", w.made), name: f.Name, cloud: w.clouds[f.Cloud], offering: taken, pool: f.Pool,
		boots: w.now.Add(w.in.Models.boot(w.made)),
	}
	v.hire = w.m.rented(v.offering)
	w.vms[v.id] = v
	v.cloud.added = append(v.cloud.added, v)
	if life, ends := w.in.Models.life(w.made); ends && v.offering.Market == drover.Spot {
		w.after(life-noticeTime, func() { w.warn(v) })
		w.after(life, func() { w.end(v) })
	}
	if k != nil {
		k.rented()
	}
	if k != nil && k.spec.Login == drover.LoginNone {
		w.agenda.Add(v.boots, func() { w.up(v) })
	}
	w.tell(engine.Created{Effect: effect, Instance: v.id, ProviderID: v.provider, Taken: v.offering})
}

// up records that an instance answers, if it still exists.
func (w *world) up(v *vm) {
	if v.dead || v.hire.ready {
		return
	}
	w.m.ready(v.hire)
	if k := w.keeperOf(v); k != nil {
		k.serves(v)
	}
}

// switchInstance stops an instance, which then costs nothing until it is started again.
func (w *world) switchInstance(effect int64, f engine.Switch) {
	ev := engine.Switched{Effect: effect, Instance: f.Instance}
	v := w.vms[f.Instance]
	switch {
	case v == nil:
		ev.Err = drover.Errorf(drover.KindNotFound, "no such instance")
	case f.On && w.full(pool.Place{Cloud: v.cloud.name, Zone: v.offering.Zone}):
		_, ev.Err = w.refuses([]drover.Offering{v.offering})
	case f.On == v.off:
		v.off = !f.On
		w.m.pause(v.hire, v.off)
		k := w.keeperOf(v)
		if k != nil {
			k.pass()
			k.up += map[bool]int{true: -1, false: 1}[v.off]
		}
		if v.off {
			if v.serves && k != nil {
				k.ready--
			}
			v.serves, v.hire.ready = false, false
			w.cut(v)
		} else {
			v.boots = w.now.Add(startTime)
			if k != nil && k.spec.Login == drover.LoginNone {
				w.agenda.Add(v.boots, func() { w.up(v) })
			}
		}
		v.cloud.added = append(v.cloud.added, v)
	}
	w.tell(ev)
}

// startTime is how long a stopped instance takes to start.
const startTime = 15 * time.Second

func (w *world) destroy(effect int64, f engine.Destroy) {
	if v := w.vms[f.Instance]; v != nil {
		w.end(v)
	}
	w.tell(engine.Destroyed{Effect: effect, Instance: f.Instance})
}

// end ends an instance, its attempts and its bill.
func (w *world) end(v *vm) {
	if v.dead {
		return
	}
	v.dead = true
	for _, r := range v.runs {
		if !r.ended {
			r.ended = true
			w.m.again(v.hire, r.need, w.now.Sub(r.begun))
		}
	}
	w.m.returned(v.hire, v.notice != nil)
	if k := w.keeperOf(v); k != nil {
		k.lost(v)
		k.returned(v)
	}
	w.cut(v)
	delete(w.vms, v.id)
	w.after(listedFor, func() {
		if at := slices.Index(v.cloud.added, v); at >= 0 { // no list has shown it
			v.cloud.added = slices.Delete(v.cloud.added, at, at+1)
			return
		}
		v.cloud.removed = append(v.cloud.removed, v.provider)
	})
}

// warn announces that the cloud will reclaim the instance. Its jobs do not catch SIGTERM, so they run on until the runner
// ends them shortly before.
func (w *world) warn(v *vm) {
	if v.dead {
		return
	}
	v.notice = &drover.Notice{Cause: "spot interruption", Deadline: w.now.Add(noticeTime)}
	if k := w.keeperOf(v); k != nil {
		k.lost(v)
	}
	if v.linked {
		w.tell(engine.Noticed{Instance: v.id, Notice: *v.notice})
	}
	for _, r := range v.runs {
		w.after(noticeTime-stopMargin, func() { w.exit(v, r, interrupted) })
	}
}
