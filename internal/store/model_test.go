package store

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"drover"
	"drover/internal/engine"
	"drover/internal/engine/fleet"
)

func cancelled(t testing.TB) (context.Context, context.CancelFunc) {
	return context.WithCancel(t.Context())
}

func attempt(job int64, index, number int) engine.Attempt {
	return engine.Attempt{
		ID: drover.AttemptID{Job: drover.JobID{Number: job, Index: index}, Number: number}, Instance: 1,
		State: drover.AttemptStarting, Started: 1,
	}
}

// model is an in-memory model of Commit and Begin.
type model struct {
	jobs      map[int64]engine.Job
	elements  map[int64]map[int]engine.ElementRow
	attempts  map[drover.AttemptID]engine.Attempt
	bills     map[drover.AttemptID]drover.Money
	instances map[int64]engine.Instance
	blocks    []engine.Block
	spending  map[string]engine.Spending
	pools     map[string]engine.PoolRow
	closing   bool
	paused    *drover.Reason
	last      int64 // instance
	lastJob   int64
	costs     map[int64]drover.Money
	asked     asked
}

func newModel() *model {
	return &model{
		jobs: map[int64]engine.Job{}, elements: map[int64]map[int]engine.ElementRow{}, attempts: map[drover.AttemptID]engine.Attempt{}, bills: map[drover.AttemptID]drover.Money{},
		spending:  map[string]engine.Spending{},
		pools:     map[string]engine.PoolRow{},
		instances: map[int64]engine.Instance{}, costs: map[int64]drover.Money{}, asked: newAsked(),
	}
}

func (m *model) commit(w engine.Write) {
	switch {
	case w.Job != nil:
		m.jobs[w.Job.Number] = *w.Job
		m.asked.take(*w.Job)
		m.lastJob = max(m.lastJob, w.Job.Number)
	case w.Ended != nil:
		delete(m.jobs, w.Ended.Number)
		m.asked.ended[w.Ended.Number] = *w.Ended
		m.lastJob = max(m.lastJob, w.Ended.Number)
	case w.Element != nil:
		m.put(*w.Element)
	case w.Attempt != nil:
		a := w.Attempt.Attempt
		a.Effect, a.Fails, a.Unkept, a.Missed, a.Retry = 0, 0, engine.Verdict{}, 0, 0
		m.attempts[a.ID], m.bills[a.ID] = a, w.Attempt.Cost
	case w.Instance != nil:
		in := *w.Instance
		m.last = max(m.last, in.ID)
		m.instances[in.ID] = engine.Instance{
			ID: in.ID, Name: in.Name, Cloud: in.Cloud, ProviderID: in.ProviderID, Zone: in.Zone, Type: in.Type, Market: in.Market,
			Price: in.Price, Rates: in.Rates, Resources: in.Resources, Candidates: in.Candidates, HostKey: in.HostKey, State: in.State, Idle: in.Idle,
			Reason: in.Reason, Broken: in.Broken, Asked: in.Asked, Created: in.Created, Ready: in.Ready, IdleSince: in.IdleSince,
			KeepUntil: in.KeepUntil, Reservations: in.Reservations, Begun: in.Begun, Ended: in.Ended, IdleReason: in.IdleReason, Retag: in.Retag, Grow: in.Grow, GrowFailed: in.GrowFailed, Reclaimed: in.Reclaimed, Unhealthy: in.Unhealthy, BrokenHookFired: in.BrokenHookFired, Used: in.Used,
		}
	case w.Gone != nil:
		delete(m.instances, w.Gone.ID)
		m.costs[w.Gone.ID] = w.Gone.Cost
	case w.Blocks != nil:
		m.blocks = *w.Blocks
	case w.Spending != nil && w.Spending.Dropped:
		delete(m.spending, w.Spending.Scope)
	case w.Spending != nil:
		m.spending[w.Spending.Scope] = *w.Spending
	case w.Pool != nil && w.Pool.Gone:
		delete(m.pools, w.Pool.Name)
	case w.Pool != nil:
		m.pools[w.Pool.Name] = *w.Pool
	case w.Closing:
		m.closing = true
	case w.Queue != nil:
		m.paused = w.Queue.Paused
	case w.Reply != nil:
		delete(m.asked.wishes, w.Reply.Wish)
	}
}

func (m *model) put(row engine.ElementRow) {
	if m.elements[row.Job] == nil {
		m.elements[row.Job] = map[int]engine.ElementRow{}
	}
	m.elements[row.Job][row.Element.Index] = row
}

// begin fills in the fields of a state that the model has.
func (m *model) begin(st engine.State) engine.State {
	st.LastInstance, st.LastJob, st.Closing, st.Blocks, st.Spent = m.last, m.lastJob, m.closing, m.blocks, 0
	st.Paused = m.paused
	st.LastAgain = m.asked.lastAgain()
	st.Spending = sorted(m.spending, func(a, b engine.Spending) int { return cmp.Compare(a.Scope, b.Scope) })
	st.Pools = sorted(m.pools, func(a, b engine.PoolRow) int { return cmp.Compare(a.Name, b.Name) })
	for _, cost := range m.costs {
		st.Spent += cost
	}
	st.Jobs = sorted(m.jobs, func(a, b engine.Job) int { return cmp.Compare(a.Number, b.Number) })
	for i, j := range st.Jobs {
		st.Jobs[i].Tried = m.tried(j.Number)
	}
	st.Instances = sorted(m.instances, func(a, b engine.Instance) int { return cmp.Compare(a.ID, b.ID) })
	st.Attempts = sorted(m.attempts, func(a, b engine.Attempt) int {
		return cmp.Or(a.ID.Job.Compare(b.ID.Job), cmp.Compare(a.ID.Number, b.ID.Number))
	})
	st.Attempts = slices.DeleteFunc(st.Attempts, func(a engine.Attempt) bool { return !a.State.Live() })
	return st
}

func (m *model) tried(job int64) (tried []engine.Element) {
	for _, row := range sorted(m.elements[job], func(a, b engine.ElementRow) int { return cmp.Compare(a.Element.Index, b.Element.Index) }) {
		if !row.State.Final() {
			tried = append(tried, row.Element)
		}
	}
	return tried
}

func sorted[K comparable, V any](m map[K]V, by func(a, b V) int) []V {
	return slices.SortedFunc(maps.Values(m), by)
}

// checkModel commits random writes in random groups and compares the states that Begin returns.
func checkModel(t *testing.T, openers func(testing.TB) opener) {
	rapid.Check(t, func(rt *rapid.T) {
		open := openers(t)
		s := open(t)
		defer s.Close()
		m := newModel()
		jobs := submitted(t, s)
		var undone []engine.Write
		for range rapid.IntRange(1, 8).Draw(rt, "groups") {
			group := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) engine.Write { return drawWrite(rt, jobs) }), 0, 30).Draw(rt, "group")
			m.ask(rt, t, s)
			group = append([]engine.Write{{Instance: &engine.Instance{ID: 1, State: drover.InstanceCreating}}}, sensible(m, group)...)
			for _, w := range group {
				m.commit(w)
			}
			commit(t, s, group...)
			if undone = group; rapid.Bool().Draw(rt, "again") {
				commit(t, s, undone...)
			}
		}
		got := begun(t, s)
		if diff := gocmp.Diff(m.begin(got), got, cmpopts.EquateEmpty()); diff != "" {
			rt.Fatalf("Begin's state differs (-want +got):\n%s", diff)
		}
		m.checkAsked(rt, t, s, jobs)
	})
}

// sensible drops writes that no engine makes: about things that have ended, and ends of what never existed.
func sensible(m *model, group []engine.Write) (kept []engine.Write) {
	known := map[int64]bool{1: true}
	for id := range m.instances {
		known[id] = true
	}
	gone, ended := maps.Clone(m.costs), map[int64]bool{}
	for _, w := range group {
		switch {
		case w.Instance != nil && has(gone, w.Instance.ID), w.Gone != nil && (!known[w.Gone.ID] || w.Gone.ID == 1):
			continue
		case w.Attempt != nil && !known[w.Attempt.Attempt.Instance], w.Job != nil && (ended[w.Job.Number] || m.asked.final(w.Job.Number)):
			continue
		case w.Ended != nil && (ended[w.Ended.Number] || has(m.asked.ended, w.Ended.Number)):
			continue
		case w.Instance != nil:
			known[w.Instance.ID] = true
		case w.Gone != nil:
			gone[w.Gone.ID] = w.Gone.Cost
		case w.Ended != nil:
			ended[w.Ended.Number] = true
		}
		kept = append(kept, w)
	}
	return kept
}

func has[K comparable, V any](m map[K]V, k K) bool { _, ok := m[k]; return ok }

// drawWrite draws any write about a few jobs and instances.
func drawWrite(rt *rapid.T, jobs []engine.Job) engine.Write {
	number := rapid.Int64Range(1, 4)
	switch job := rapid.SampledFrom(jobs).Draw(rt, "job"); rapid.IntRange(0, 9).Draw(rt, "kind") {
	case 0, 1:
		return engine.Write{Job: drawJob(rt, job)}
	case 2:
		if rapid.Bool().Draw(rt, "well") {
			return engine.Write{Ended: &engine.JobEnd{Number: job.Number, State: drover.JobSucceeded, At: 9, Succeeded: 1}}
		}
		return engine.Write{Ended: &engine.JobEnd{Number: job.Number, State: drover.JobFailed, At: 9, Failed: 1}}
	case 3, 4:
		row := engine.ElementRow{Job: job.Number, State: rapid.SampledFrom(jobStates).Draw(rt, "state"), Code: drawCode(rt)}
		row.Element = engine.Element{Index: drawIndex(rt, job), Number: 2, Lost: rapid.IntRange(0, 3).Draw(rt, "lost"), Retried: 1, Interrupted: 3, Memory: drover.GiB, Until: 4}
		return engine.Write{Element: &row}
	case 5:
		return engine.Write{Attempt: drawAttempt(rt, job.Number, number.Draw(rt, "instance"))}
	case 6:
		return engine.Write{Instance: drawInstance(rt, number.Draw(rt, "instance"))}
	case 7:
		id := number.Draw(rt, "instance")
		return engine.Write{Gone: &engine.InstanceEnd{ID: id, At: 8, Cost: drover.Money(rapid.Int64Range(0, 1e12).Draw(rt, "cost"))}}
	case 8:
		return engine.Write{Reply: &engine.Reply{Wish: rapid.Int64Range(1, 9).Draw(rt, "wish")}}
	}
	blocks := []engine.Block{{Cloud: "b", Zone: "z", Reason: engine.Verdict{Cause: drover.ReasonLimit, Until: 9}}, {Cloud: "a", Market: drover.Spot}}
	blocks = blocks[:rapid.IntRange(0, 2).Draw(rt, "blocks")]
	switch rapid.IntRange(0, 4).Draw(rt, "rest") {
	case 0:
		return engine.Write{Closing: true}
	case 2:
		queue := engine.Queue{}
		if rapid.Bool().Draw(rt, "paused") {
			queue.Paused = &drover.Reason{Code: drover.ReasonPaused, Text: "no work today", Since: 7}
		}
		return engine.Write{Queue: &queue}
	case 3:
		row := engine.PoolRow{Name: rapid.SampledFrom([]string{"db", "web"}).Draw(rt, "pool"), Count: rapid.IntRange(0, 9).Draw(rt, "count"), Configured: 3}
		row.Gone = rapid.IntRange(0, 3).Draw(rt, "gone") == 0
		return engine.Write{Pool: &row}
	case 1:
		spent := rapid.Make[engine.Spending]().Draw(rt, "spending")
		spent.Scope = rapid.SampledFrom([]string{"fleet", "user ada", "label a=b"}).Draw(rt, "scope")
		return engine.Write{Spending: &spent}
	}
	return engine.Write{Blocks: &blocks}
}

var jobStates = []drover.JobState{drover.JobQueued, drover.JobRunning, drover.JobSucceeded, drover.JobFailed, drover.JobCancelled}

func drawJob(rt *rapid.T, job engine.Job) *engine.Job {
	job.Queued = engine.Ranges{{First: 2, Last: rapid.IntRange(2, 20).Draw(rt, "last")}}
	job.Since = drover.Time(rapid.Int64().Draw(rt, "since"))
	job.Priority = rapid.IntRange(0, 5).Draw(rt, "priority")
	job.Succeeded = rapid.IntRange(0, 5).Draw(rt, "succeeded")
	if rapid.Bool().Draw(rt, "cancel") {
		job.Cancel = &engine.Verdict{Cause: drover.ReasonCancelled, Text: rapid.String().Draw(rt, "text")}
	}
	return &job
}

// drawIndex draws one of the first indexes of a job.
func drawIndex(rt *rapid.T, job engine.Job) int {
	first, last := bounds(job.Array)
	return rapid.IntRange(first, min(last, first+2)).Draw(rt, "index")
}

func drawCode(rt *rapid.T) *int {
	if rapid.Bool().Draw(rt, "no code") {
		return nil
	}
	return rapid.Ptr(rapid.IntRange(0, 255), false).Draw(rt, "code")
}

func drawAttempt(rt *rapid.T, job, instance int64) *engine.AttemptRow {
	a := attempt(job, rapid.IntRange(-1, 2).Draw(rt, "index"), rapid.IntRange(1, 2).Draw(rt, "number"))
	a.Instance, a.Effect, a.Fails, a.Retry = instance, 5, 6, 7
	a.State = rapid.SampledFrom([]drover.AttemptState{
		drover.AttemptStarting, drover.AttemptRunning, drover.AttemptCollecting, drover.AttemptSucceeded, drover.AttemptLost,
	}).Draw(rt, "state")
	if rapid.Bool().Draw(rt, "exit") {
		a.Exit = &drover.Exit{Code: 3, CPU: time.Second, MaxRSS: drover.MiB, Started: 4, Ended: 5}
	}
	return &engine.AttemptRow{Attempt: a, Cost: drover.Money(rapid.Int64Range(0, 20).Draw(rt, "cost")) * drover.Dollar}
}

func drawInstance(rt *rapid.T, id int64) *engine.Instance {
	in := engine.Instance{
		ID: id, Name: "lab-1", Cloud: "here", Type: drover.InstanceType{Name: "small"}, State: drover.InstanceBooting,
		Price: drover.Money(rapid.Int64Range(0, 1e12).Draw(rt, "price")), Created: 7,
		Observed: engine.Observed{Listed: true, Missing: 1, Known: 2, Connected: true, Silent: 3, Tried: true, Call: 4, Dial: 5, Fails: 6, Retry: 7},
	}
	if rapid.Bool().Draw(rt, "bound") {
		in.Reservations = []fleet.Reservation{{Group: engine.GroupKey{User: "ada"}, Count: 2}}
		in.Candidates = []drover.Offering{{Cloud: "here", Price: in.Price}}
	}
	return &in
}

// A new field of the engine's types fails here until one of these lists declares it durable, or the store omits it.
// covers K7
func TestDurableFields(t *testing.T) {
	durable := map[reflect.Type]string{
		reflect.TypeFor[engine.Instance](): "ID Name Cloud ProviderID Zone Type Market Price Rates Resources Candidates HostKey State Idle " +
			"Grow GrowFailed Reason Broken Used Owner User Pool Prefix Template BrokenHookFired Unhealthy Reclaimed Asked Created Ready IdleSince KeepUntil Reservations Begun Ended IdleReason Retag Seen Joined Passed ReadyHookPending Emptied EndHookFired Addresses Quiet EndTold EndKnown Unproven Waking Woken Switched StopAccepted Lent RunPrice",
		reflect.TypeFor[engine.Attempt](): "ID Instance State Started Ended Exit Stop Unproven Likely",
		reflect.TypeFor[engine.Job](): "Number Name User Labels Shape Array Gang MaxRunning Priority Attempts Retry Timeout Expected After AfterAny Queued Succeeded Failed Cancelled " +
			"Cancel Overdue Since Again Blocked Grown ConsecutiveLosses MaxWait",
	}
	s := sqliteOpeners(t)(t)(t)
	jobs := submitted(t, s)
	rapid.Check(t, func(rt *rapid.T) {
		in, a := rapid.Make[engine.Instance]().Draw(rt, "instance"), rapid.Make[engine.Attempt]().Draw(rt, "attempt")
		job := rapid.Make[engine.Job]().Draw(rt, "job")
		in.ID, a.Instance, a.State, job.Number = 1, 1, drover.AttemptRunning, jobs[0].Number
		a.ID = drover.AttemptID{Job: drover.JobID{Number: jobs[0].Number, Index: -1}, Number: 1}
		commit(t, s, engine.Write{Instance: &in}, engine.Write{Attempt: &engine.AttemptRow{Attempt: a}}, engine.Write{Job: &job})
		state := begun(t, s)
		for _, pair := range [][2]any{{&in, &state.Instances[0]}, {&a, &state.Attempts[0]}, {&job, &state.Jobs[0]}} {
			want, got := reflect.ValueOf(pair[0]).Elem(), reflect.ValueOf(pair[1]).Elem()
			kept := strings.Fields(durable[want.Type()])
			for i := range want.NumField() {
				if name := want.Type().Field(i).Name; !slices.Contains(kept, name) {
					want.Field(i).SetZero()
				}
			}
			if diff := gocmp.Diff(want.Interface(), got.Interface(), cmpopts.EquateEmpty()); diff != "" {
				rt.Fatalf("kept (-want +got):\n%s", diff)
			}
		}
	})
}
