package simtest

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"drover"
	"drover/internal/engine"
)

// calm is how long after the last fault and the last wish everything must be as wished.
const calm = 20 * time.Minute

// peopled reports whether this world has people.
func (w *World) peopled() bool { return w.recipe.Luck.Odds[People] > 0 }

// person sometimes lets a person wish for something.
func (w *World) person() {
	if !w.happens(People) {
		return
	}
	if len(w.settings.Pools) > 0 && w.roll(3) == 0 {
		w.repool()
		return
	}
	switch n := w.roll(22); {
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
	case n < 21:
		w.pause()
	default:
		w.drainAll()
	}
}

// pause pauses the queue and resumes it after a while.
func (w *World) pause() {
	w.wish(engine.QueueAsked{Reason: drover.Reason{Code: drover.ReasonPaused, Text: "so it was wished"}})
	w.after(w.within(15*time.Minute), func() { w.wish(engine.QueueAsked{Resume: true}) })
}

// wish writes a wish down and tells the controller, which hears wishes in their order. If it dies first, the next
// controller hears it.
func (w *World) wish(body engine.Body) {
	w.Disk.lastWish++
	row := w.Disk.lastWish
	w.Disk.wishes[row] = body
	w.heard = max(w.heard, w.now.Add(w.within(100*time.Millisecond)))
	c := w.controller
	w.after(w.heard.Sub(w.now), func() { c.take(engine.Wished(body, row)) })
}

// tell delivers an event to the present controller after a moment.
func (w *World) tell(body engine.Body) {
	c := w.controller
	w.after(w.within(100*time.Millisecond), func() { c.take(body) })
}

// wished returns the unanswered wishes in their order.
func (w *World) wished() (bodies []engine.Body) {
	for _, row := range slices.Sorted(maps.Keys(w.Disk.wishes)) {
		bodies = append(bodies, engine.Wished(w.Disk.wishes[row], row))
	}
	return bodies
}

func (w *World) instruct() {
	ids := slices.Sorted(maps.Keys(w.Disk.instances))
	if len(ids) == 0 {
		return
	}
	id, verb := pick(w, ids), pick(w, drover.Verbs())
	switch name := w.Disk.instances[id].Name; verb {
	case drover.VerbKill:
		w.promises.killed[name] = true
	case drover.VerbRelease:
		w.promises.released[name] = true
	}
	w.wish(engine.InstructAsked{Instance: id, Verb: verb, Reason: drover.Reason{Text: "so it was wished"}})
}

// hesitation is how long a person may take between seeing a job and wishing something for it. By then the job may have
// been retried.
const hesitation = 5 * time.Minute

// hesitate makes a wish for a job that a person saw, unless the store in which it was seen is lost meanwhile.
func (w *World) hesitate(body engine.Body) {
	seen := w.Disk
	w.after(w.within(hesitation), func() {
		if w.Disk == seen {
			w.wish(body)
		}
	})
}

func (w *World) prioritize() {
	j, priority := pick(w, w.people), pick(w, []int{0, 0, 1, 5})
	again := w.Disk.again[j.Number]
	w.hesitate(engine.PriorityAsked{Job: j.Number, Again: again, Priority: priority})
}

func (w *World) cancelOne() {
	if w.cancelFailing() {
		return
	}
	j := pick(w, w.people)
	id := drover.JobID{Number: j.Number, Index: -1}
	if j.Array.Set && w.roll(4) > 0 {
		id.Index = j.Array.First + w.roll(j.Array.Size())
	}
	again := w.Disk.again[j.Number]
	why := drover.Reason{Code: drover.ReasonCancelled, Text: lifeText(again)}
	w.hesitate(engine.CancelAsked{Job: id, Again: again, Reason: why})
}

// cancelFailing immediately cancels an element whose command has failed while its output is being stored. The element
// may be due for another attempt.
func (w *World) cancelFailing() bool {
	var failing []drover.JobID
	for id, a := range w.Disk.attempts {
		if a.State == drover.AttemptCollecting && a.Exit.Code != 0 {
			failing = append(failing, id)
		}
	}
	if len(failing) == 0 {
		return false
	}
	slices.SortFunc(failing, drover.JobID.Compare)
	id := pick(w, failing)
	again := w.Disk.again[id.Number]
	w.wish(engine.CancelAsked{Job: id, Again: again, Reason: drover.Reason{Code: drover.ReasonCancelled, Text: lifeText(again)}})
	return true
}

const lifeWords = "not wanted in life "

// lifeText is the reason that a person gives for cancelling a job in one of its lives.
func lifeText(again int64) string { return fmt.Sprint(lifeWords, again) }

// retry requeues what did not succeed of the final jobs, unless they run after another job that is final without
// success.
func (w *World) retry() {
	for _, j := range w.people {
		end, final := w.Disk.ended[j.Number]
		if !final || end.State == drover.JobSucceeded || slices.ContainsFunc(j.After, w.unsuccessful) {
			continue
		}
		j.Priority = max(j.Priority, 1) // whoever retries a job wants it to run
		w.submit = append(w.submit, w.Disk.Retry(j))
		w.tell(engine.Submitted{Jobs: slices.Clone(w.submit)})
	}
}

func (w *World) unsuccessful(job int64) bool {
	end, final := w.Disk.ended[job]
	return final && end.State != drover.JobSucceeded
}

// reload makes the last cloud leave or return, and changes the list intervals.
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

// change gives the controller other settings for jobs and instances.
func (w *World) change(to engine.Settings) {
	s := &w.settings
	s.Lifecycle, s.Keep, s.Mix, s.SpotShare, s.Shares, s.GrowMemory = to.Lifecycle, to.Keep, to.Mix, to.SpotShare, to.Shares, to.GrowMemory
	w.tell(engine.Configured{Settings: w.settings})
}

// drainAll drains the controller, and starts another after a while.
func (w *World) drainAll() {
	c := w.controller
	w.tell(engine.DrainAsked{})
	w.after(w.within(15*time.Minute), func() {
		if !c.alive() {
			return
		}
		if c.drains && c.loop.Engine.Drained() && c.loop.Engine.ListedTwice() {
			w.onlyHeld()
		}
		w.kill()
	})
}

// giveUp makes the wish to end to the present controller. The wish is durable, so the next controller has it too.
func (w *World) giveUp() {
	w.wishes = []engine.Body{engine.CancelAsked{All: true, Reason: drover.Reason{Code: drover.ReasonCancelled, Text: "everything is given up"}}, engine.CloseAsked{}}
	for _, b := range w.wishes {
		w.controller.take(b)
	}
}

// loseStore leaves the controller only the fleet's instances and their tags. The same jobs are submitted again; the new
// store has no record of attempts that still run for the old ones.
func (w *World) loseStore() {
	w.Disk = NewDisk()
	w.Disk.nonce = "m"
	w.submit = slices.Clone(w.recipe.Jobs[:len(w.recipe.Jobs)-w.late])
	w.running = map[drover.JobID]*run{}
	w.promises = newPromises()
	w.paused = false
	for _, cl := range w.clouds {
		for _, v := range cl.vms {
			v.book = book{}
		}
	}
	if w.controller.alive() {
		w.kill()
	}
}

// taken drops the submitted jobs that are durable, and wishes for the end once all jobs are final.
func (w *World) taken() {
	if len(w.submit) > 0 {
		w.submit = slices.DeleteFunc(slices.Clone(w.submit), w.durable)
	}
	if !w.allFinal() || w.Disk.closing || len(w.wishes) > 0 || w.peopled() && !w.restful {
		return
	}
	if w.retry(); w.allFinal() {
		c := w.controller
		w.after(0, func() { c.take(engine.CloseAsked{}) })
	}
}

// durable reports whether a submitted job is known to be stored.
func (w *World) durable(j engine.Job) bool {
	if j.Again > 0 {
		return j.Again <= w.Disk.lastAgain
	}
	return j.Number <= w.Disk.lastJob
}

// submitLate submits the first of the late jobs, which people learn of a while later.
func (w *World) submitLate() {
	known := len(w.recipe.Jobs) - w.late + 1
	w.late--
	w.submit = append(slices.Clone(w.submit), w.Disk.waiting(w.recipe.Jobs[known-1]))
	w.tell(engine.Submitted{Jobs: slices.Clone(w.submit)})
	w.after(time.Second, func() { w.people = w.recipe.Jobs[:known] })
}

func (w *World) allFinal() bool { return w.late == 0 && len(w.submit) == 0 && len(w.Disk.jobs) == 0 }

// relent checks that everything is as wished, once a controller has had time for that. Then it withdraws whatever keeps
// the jobs from ending.
func (w *World) relent() {
	if c := w.controller; !c.alive() || w.now < max(c.born, c.until).Add(calm) {
		w.after(calm, w.relent)
		return
	}
	w.asWished()
	for _, id := range slices.Sorted(maps.Keys(w.Disk.instances)) {
		if in := w.Disk.instances[id]; in.Idle == drover.IdleHold {
			w.promises.released[in.Name] = true
			w.wish(engine.InstructAsked{Instance: id, Verb: drover.VerbRelease})
		}
	}
	for _, j := range w.recipe.Jobs {
		w.wish(engine.PriorityAsked{Job: j.Number, Again: w.Disk.again[j.Number], Priority: 1})
	}
	if w.crowdsOut() {
		w.makeRoom()
	}
	w.restful = true
}

// crowdsOut reports whether enlarged pools and a leaving cloud leave fewer instances than a gang may need, at one per
// job. Nothing would ever make room for it, since a pool keeps its size whatever waits.
func (w *World) crowdsOut() bool {
	most, pooled, gang := 0, 0, 0
	for _, c := range w.settings.Clouds {
		if !c.Leaving {
			most += c.MaxInstances
		}
	}
	if all := w.settings.MaxInstances; all > 0 {
		most = min(most, all)
	}
	for _, in := range w.Disk.instances {
		if in.Pool != "" {
			pooled++
		}
	}
	for _, j := range w.recipe.Jobs {
		gang = max(gang, j.Gang)
	}
	return most-pooled < gang
}

// makeRoom makes the leaving cloud return and gives pools their first sizes.
func (w *World) makeRoom() {
	w.settings.Clouds = slices.Clone(w.settings.Clouds)
	w.settings.Clouds[len(w.settings.Clouds)-1].Leaving = false
	w.tell(engine.Configured{Settings: w.settings})
	for _, s := range w.settings.Pools {
		if s.Kind != drover.PoolGroup {
			w.wish(engine.ResizeAsked{Pool: s.Name, Count: s.Count})
		}
	}
}
