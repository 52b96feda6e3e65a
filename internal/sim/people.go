package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"drover"
	"drover/internal/engine"
	"drover/internal/loop"
)

// calm is how long after the last bad luck, and the last wish, everything must have come to be as was wished.
const calm = 20 * time.Minute

// person lets somebody wish for something now and then.
func (w *World) person() {
	if !w.chance(w.luck.People) {
		return
	}
	switch n := w.rng.IntN(20); {
	case n < 9:
		w.instruct()
	case n < 13:
		w.prioritize()
	case n < 15:
		w.cancelOne()
	case n < 17:
		w.retry()
	case n < 19:
		w.reload()
	default:
		w.drainAll()
	}
}

// wish writes a wish down and tells the controller. One that dies first leaves it to the next.
func (w *World) wish(body engine.Body) {
	w.Disk.lastWish++
	row := w.Disk.lastWish
	w.Disk.wishes[row] = body
	w.tell(engine.Wished(body, row))
}

// tell brings an event to the present controller after a moment.
func (w *World) tell(body engine.Body) {
	l := w.loop
	w.after(w.delay(100*time.Millisecond), func() { w.answer(l, body) })
}

// wished are the wishes that are not granted yet, in their order.
func (w *World) wished() (bodies []engine.Body) {
	for _, row := range slices.Sorted(maps.Keys(w.Disk.wishes)) {
		bodies = append(bodies, engine.Wished(w.Disk.wishes[row], row))
	}
	return bodies
}

func pick[T any](w *World, from []T) T { return from[w.rng.IntN(len(from))] }

func (w *World) instruct() {
	ids := slices.Sorted(maps.Keys(w.Disk.instances))
	if len(ids) == 0 {
		return
	}
	id, verb := pick(w, ids), pick(w, drover.Verbs())
	switch name := w.Disk.instances[id].Name; verb {
	case drover.VerbKill:
		w.killed[name] = true
	case drover.VerbRelease:
		w.released[name] = true
	}
	w.wish(engine.InstructAsked{Instance: id, Verb: verb, Reason: drover.Reason{Text: "so it was wished"}})
}

// hesitation is how long a person may take between a look at a job and what they wish of it. By then it may be done again.
const hesitation = 5 * time.Minute

// hesitate wishes for something of a job that was looked at, unless the store in which it was seen is lost meanwhile.
func (w *World) hesitate(body engine.Body) {
	seen := w.Disk
	w.after(w.delay(hesitation), func() {
		if w.Disk == seen {
			w.wish(body)
		}
	})
}

func (w *World) prioritize() {
	j, priority := pick(w, w.jobs), pick(w, []int{0, 0, 1, 5})
	again := w.Disk.again[j.Number]
	w.hesitate(engine.PriorityAsked{Job: j.Number, Again: again, Priority: priority})
}

func (w *World) cancelOne() {
	j := pick(w, w.jobs)
	id := drover.JobID{Number: j.Number, Index: -1}
	if j.Array.Set {
		id.Index = j.Array.First + w.rng.IntN(j.Array.Size())
	}
	again := w.Disk.again[j.Number]
	why := drover.Reason{Code: drover.ReasonCancelled, Text: lifeText(again)}
	w.hesitate(engine.CancelAsked{Job: id, Again: again, Reason: why})
}

const lifeWords = "not wanted in life "

// lifeText is what a person says who cancels a job in one of its lives.
func lifeText(again int64) string { return fmt.Sprint(lifeWords, again) }

// retry puts back in the queue what did not succeed of the final jobs, unless they are to run after one that is final like that.
func (w *World) retry() {
	for _, j := range w.jobs {
		end, final := w.Disk.ended[j.Number]
		if !final || end.State == drover.JobSucceeded || slices.ContainsFunc(j.After, w.unsuccessful) {
			continue
		}
		w.submit = append(w.submit, w.Disk.Retry(j))
		w.tell(engine.Submitted{Jobs: slices.Clone(w.submit)})
	}
}

func (w *World) unsuccessful(job int64) bool {
	end, final := w.Disk.ended[job]
	return final && end.State != drover.JobSucceeded
}

// reload has the last cloud leave, or come back, and another list interval.
func (w *World) reload() {
	clouds := slices.Clone(w.settings.Clouds)
	last := &clouds[len(clouds)-1]
	last.Leaving = !last.Leaving && len(clouds) > 1
	for i := range clouds {
		clouds[i].ListInterval = pick(w, []time.Duration{30 * time.Second, time.Minute, 3 * time.Minute})
	}
	w.settings.Clouds = clouds
	w.tell(engine.Configured{Settings: w.settings})
}

// drainAll has the controller drain, and another begin after a while.
func (w *World) drainAll() {
	l := w.loop
	w.tell(engine.DrainAsked{})
	w.after(w.delay(15*time.Minute), func() {
		if l != w.loop || l.Store == nil {
			return
		}
		if l.Engine.Status().Draining && l.Engine.Drained() {
			w.onlyHeld()
		}
		w.crash()
	})
}

// onlyHeld checks what a controller that has drained leaves behind.
func (w *World) onlyHeld() {
	for _, v := range w.vms {
		if in := w.record(v); v.listed && (in == nil || in.Idle != drover.IdleHold) {
			w.fail("instance %s is there although the controller has drained", v.name)
		}
	}
}

// loseStore takes everything from the controller but the fleet's instances and their tags. The same jobs are submitted once more.
func (w *World) loseStore() {
	names := w.Disk.names
	w.Disk = NewDisk()
	w.Disk.names, w.Disk.nonce = names, "m"
	w.submit = slices.Clone(w.jobs)
	w.running = map[drover.JobID]*run{}
	w.before = seen{}
	for _, v := range w.vms {
		v.id = 0
	}
	w.crash()
}

// crash ends the controller, and has another begin.
func (w *World) crash() {
	w.loop = &loop.Loop{Engine: w.loop.Engine}
	w.after(w.delay(time.Minute), w.boot)
}

// relent checks that all is as was wished, and takes back what would keep the jobs from their end.
func (w *World) relent() {
	w.asWished()
	for _, id := range slices.Sorted(maps.Keys(w.Disk.instances)) {
		if in := w.Disk.instances[id]; in.Idle == drover.IdleHold {
			w.released[in.Name] = true
			w.wish(engine.InstructAsked{Instance: id, Verb: drover.VerbRelease})
		}
	}
	for _, j := range w.jobs {
		w.wish(engine.PriorityAsked{Job: j.Number, Again: w.Disk.again[j.Number], Priority: 1})
	}
	w.relented = true
}

// asWished checks the tags, and that nothing runs of a job whose priority is 0.
func (w *World) asWished() {
	for _, v := range w.vms {
		in := w.record(v)
		if in == nil || !v.listed || in.State == drover.InstanceStopping {
			continue
		}
		if got := orRun(v.tag); got != in.Idle {
			w.fail("instance %s is to %s, and its tag says %s", v.name, in.Idle, got)
		}
	}
	for id := range w.running {
		if j, ok := w.Disk.jobs[id.Number]; ok && j.Priority == 0 {
			w.fail("job %v runs although its priority is 0", id)
		}
	}
}

func orRun(tag drover.IdleBehavior) drover.IdleBehavior {
	if tag == "" {
		return drover.IdleRun
	}
	return tag
}

// record is what the disk has of an instance, nil if nothing.
func (w *World) record(v *vm) *engine.Instance {
	for _, in := range w.Disk.instances {
		if in.Name == v.name {
			return &in
		}
	}
	return nil
}
