package store

import (
	"cmp"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"drover"
	"drover/internal/engine"
)

// asked is the part of a model that people change: wishes, requeued jobs, and tokens.
type asked struct {
	wishes   map[int64]engine.Body
	lastWish int64
	ended    map[int64]engine.JobEnd // jobs that are final
	waiting  map[int64]engine.Job    // requeued jobs that were not taken again
	again    int64
	priority map[int64]int
	tokens   map[string]drover.Token // by secret
}

func newAsked() asked {
	return asked{
		wishes: map[int64]engine.Body{}, ended: map[int64]engine.JobEnd{}, waiting: map[int64]engine.Job{},
		priority: map[int64]int{1: 1, 2: 1, 3: 1}, tokens: map[string]drover.Token{},
	}
}

func (a *asked) take(job engine.Job) {
	delete(a.ended, job.Number)
	delete(a.waiting, job.Number)
	a.priority[job.Number] = job.Priority
}

func (a *asked) final(job int64) bool { return has(a.ended, job) && !has(a.waiting, job) }

func (a *asked) lastAgain() int64 {
	last := a.again
	for _, j := range a.waiting {
		last = min(last, j.Again-1)
	}
	return last
}

// ask makes one random request, of the store and of the model.
func (m *model) ask(rt *rapid.T, t *testing.T, s *Store) {
	switch rapid.IntRange(0, 4).Draw(rt, "ask") {
	case 0:
		m.wish(rt, t, s)
	case 1:
		m.token(rt, t, s)
	default:
		m.retry(rt, t, s)
	}
}

func (m *model) wish(rt *rapid.T, t *testing.T, s *Store) {
	why := drover.Reason{Code: drover.ReasonOperator, Text: rapid.String().Draw(rt, "why")}
	body := rapid.SampledFrom([]engine.Body{
		engine.CancelAsked{Job: drover.JobID{Number: 2, Index: 4}, Reason: why}, engine.CancelAsked{All: true, Reason: why},
		engine.InstructAsked{Instance: 3, Verb: drover.VerbHold, Reason: why}, engine.PriorityAsked{Job: 2, Priority: 7, Reason: why},
	}).Draw(rt, "wish")
	m.asked.lastWish++
	if row, err := s.Wish(t.Context(), body); err != nil || row != m.asked.lastWish {
		rt.Fatalf("row %d, error %v; want %d", row, err, m.asked.lastWish)
	}
	m.asked.wishes[m.asked.lastWish] = engine.Wished(body, m.asked.lastWish)
}

func (m *model) token(rt *rapid.T, t *testing.T, s *Store) {
	if len(m.asked.tokens) > 1 {
		for secret, token := range m.asked.tokens {
			if err := s.RevokeToken(t.Context(), token.ID); err != nil {
				rt.Fatal(err)
			}
			delete(m.asked.tokens, secret)
			return
		}
	}
	token, err := s.CreateToken(t.Context(), hour, drover.TokenRequest{User: "ada", Role: drover.RoleOperate})
	if err != nil {
		rt.Fatal(err)
	}
	m.asked.tokens[token.Secret] = token.Token
}

// retry requeues a job, or checks that the store refuses whenever the model does.
func (m *model) retry(rt *rapid.T, t *testing.T, s *Store) {
	id := drover.JobID{Number: rapid.Int64Range(1, 3).Draw(rt, "job"), Index: -1}
	array := id.Number == 2
	if array {
		id.Index = rapid.SampledFrom([]int{-1, 1, 2, 9}).Draw(rt, "index")
	}
	job, may := m.requeued(id, array)
	if err := s.Retry(t.Context(), id, drover.UserLimits{}); (err == nil) != may {
		rt.Fatalf("retrying job %v: error %v, want it allowed: %v", id, err, may)
	}
	if !may {
		return
	}
	m.asked.again++
	job.Again = m.asked.again
	m.asked.waiting[id.Number] = job
}

// requeued returns a job as it waits again, if it may be retried.
func (m *model) requeued(id drover.JobID, array bool) (job engine.Job, may bool) {
	end, before := m.asked.ended[id.Number], m.asked.ended[2]
	if !m.asked.final(id.Number) || end.Failed == 0 || id.Number == 1 && m.asked.final(2) && before.State != drover.JobSucceeded {
		return job, false
	}
	rows := m.elements[id.Number]
	state := rows[id.Index].State
	if id.Index >= 0 && state == drover.JobSucceeded {
		return job, false
	}
	first, last := -1, -1
	if array {
		first, last = 1, 20
	}
	job = engine.Job{Number: id.Number, Priority: m.asked.priority[id.Number]}
	for i := first; i <= last; i++ {
		row, tried := rows[i]
		if id.Index >= 0 && id.Index != i || row.State == drover.JobSucceeded {
			continue
		}
		job.Queued.Add(i)
		if id.Index >= 0 || tried && row.State.Final() {
			e := engine.Element{Index: i, Number: row.Element.Number}
			m.put(engine.ElementRow{Job: id.Number, Element: e, State: drover.JobQueued})
		}
	}
	job.Failed = end.Failed
	if id.Index < 0 || state == drover.JobFailed {
		job.Failed--
	} else {
		job.Cancelled--
	}
	return job, true
}

// checkAsked compares what waits in the store with what waits in the model.
func (m *model) checkAsked(rt *rapid.T, t *testing.T, s *Store, jobs []engine.Job) {
	wishes, err := s.Wishes(t.Context(), 0)
	if err != nil {
		rt.Fatal(err)
	}
	var want []Wish
	for row, body := range m.asked.wishes {
		want = append(want, Wish{row, body})
	}
	slices.SortFunc(want, func(a, b Wish) int { return cmp.Compare(a.Row, b.Row) })
	check(rt, "wishes", wishes, want)
	m.checkPending(rt, t, s, jobs)
	m.checkListed(rt, t, s, jobs)
	m.checkCounts(rt, t, s, jobs)
	for secret, token := range m.asked.tokens {
		got, err := s.Token(t.Context(), 2*hour, drover.NewSecret(secret))
		if err != nil {
			rt.Fatal(err)
		}
		check(rt, "token", got, token)
	}
	if tokens, err := s.Tokens(t.Context()); err != nil || len(tokens) != len(m.asked.tokens) {
		rt.Fatalf("tokens %v, error %v; want %d", tokens, err, len(m.asked.tokens))
	}
}

func (m *model) checkPending(rt *rapid.T, t *testing.T, s *Store, jobs []engine.Job) {
	pending, err := s.Pending(t.Context())
	if err != nil {
		rt.Fatal(err)
	}
	var want []engine.Job
	for _, j := range jobs {
		if !has(m.jobs, j.Number) && !has(m.asked.ended, j.Number) {
			want = append(want, m.waiting(j))
		}
	}
	for _, w := range sorted(m.asked.waiting, func(a, b engine.Job) int { return cmp.Compare(a.Again, b.Again) }) {
		at := slices.IndexFunc(jobs, func(j engine.Job) bool { return j.Number == w.Number })
		j := jobs[at]
		j.Queued, j.Priority, j.Failed, j.Cancelled, j.Again = w.Queued, w.Priority, w.Failed, w.Cancelled, w.Again
		j = m.waiting(j)
		for _, e := range m.tried(j.Number) {
			if m.elements[j.Number][e.Index].State == drover.JobQueued {
				j.Tried = append(j.Tried, e)
			}
		}
		want = append(want, j)
	}
	check(rt, "pending", pending, want, cmpopts.IgnoreFields(engine.Job{}, "Since"))
}

// waiting returns the job without the jobs that it no longer needs to wait for.
func (m *model) waiting(j engine.Job) engine.Job {
	if end := m.asked.ended[2]; j.Number == 1 && m.asked.final(2) && end.State == drover.JobSucceeded {
		j.After = nil
	}
	return j
}

// checkListed checks the priority and the cost of listed jobs.
func (m *model) checkListed(rt *rapid.T, t *testing.T, s *Store, jobs []engine.Job) {
	listed, err := s.Jobs(t.Context(), 0, drover.JobFilter{})
	if err != nil || len(listed) != len(jobs) {
		rt.Fatalf("jobs %v, error %v", listed, err)
	}
	for _, j := range listed {
		var cost drover.Money
		for id, bill := range m.bills {
			if id.Job.Number == j.ID.Number && (j.Array != nil || id.Job == j.ID) {
				cost += bill
			}
		}
		check(rt, "cost", j.Cost, cost.USD())
		check(rt, "priority", j.Priority, m.asked.priority[j.ID.Number])
	}
}

// checkCounts compares the number of elements in each state with the last writes of their jobs.
func (m *model) checkCounts(rt *rapid.T, t *testing.T, s *Store, jobs []engine.Job) {
	counts, err := s.Counts(t.Context())
	if err != nil {
		rt.Fatal(err)
	}
	want := map[drover.JobState]int{}
	for _, j := range jobs {
		size := j.Array.Size()
		if end, final := m.asked.ended[j.Number]; final && m.asked.final(j.Number) {
			j.Queued, j.Succeeded, j.Failed, j.Cancelled = nil, end.Succeeded, end.Failed, end.Cancelled
		} else {
			if waiting, again := m.asked.waiting[j.Number]; again {
				j = waiting
			} else if taken, is := m.jobs[j.Number]; is {
				j = taken
			}
			want[drover.JobRunning] += size - j.Queued.Count() - j.Succeeded - j.Failed - j.Cancelled
		}
		want[drover.JobQueued] += j.Queued.Count()
		want[drover.JobSucceeded] += j.Succeeded
		want[drover.JobFailed] += j.Failed
		want[drover.JobCancelled] += j.Cancelled
	}
	for _, state := range jobStates {
		check(rt, "how many are "+string(state), counts[state], want[state])
	}
}

func check(rt *rapid.T, what string, got, want any, options ...gocmp.Option) {
	rt.Helper()
	if diff := gocmp.Diff(want, got, append(options, cmpopts.EquateEmpty())...); diff != "" {
		rt.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}
