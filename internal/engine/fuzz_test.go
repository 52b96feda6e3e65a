package engine

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"drover"
	"drover/internal/pack"
)

// The engine accepts any events, in any order, late, repeated or about things that never existed, and its state stays
// consistent.
// covers L24
func FuzzApply(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(tape(seed, 500))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		newStranger(t, data).run()
	})
}

// covers D24
func TestEngineAcceptsAnyEvents(t *testing.T) {
	for seed := range seeds(4, 60) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { newStranger(t, tape(seed+100, 12000)).run() })
	}
}

func tape(seed uint64, n int) []byte {
	rng := rand.New(rand.NewPCG(seed, 0))
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	return data
}

// stranger sends an engine events, only some of them true.
type stranger struct {
	t       *testing.T
	tape    []byte
	e       *Engine
	now     drover.Time
	pending []Effect
	jobs    int64
	mood    int // what fails most
}

func newStranger(t *testing.T, data []byte) *stranger {
	return &stranger{t: t, tape: data, now: drover.Time(1e18), e: begin(t, State{Version: StateVersion, Fleet: "f", Nonce: "n"})}
}

func begin(t *testing.T, s State) *Engine {
	e, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// pick reads a choice among n from the tape.
func (s *stranger) pick(n int) int {
	if len(s.tape) == 0 {
		return 0
	}
	b := s.tape[0]
	s.tape = s.tape[1:]
	return int(b) % n
}

func (s *stranger) run() {
	s.apply(Configured{Settings: s.settings()})
	for len(s.tape) > 0 {
		s.wait()
		if s.pick(200) == 0 {
			s.restart()
			continue
		}
		s.apply(s.body())
	}
}

// wait lets time pass: mostly little, often until the engine's next wake-up, and now and then much more.
func (s *stranger) wait() {
	switch n := s.pick(32); {
	case n < 16:
	case n < 24:
		s.now = s.now.Add(time.Second)
	case n < 30:
		s.wake(1)
	case n < 31:
		s.wake(30)
	default:
		s.now = s.now.Add([]time.Duration{20 * time.Second, 3 * time.Minute, time.Hour}[s.pick(3)])
	}
}

// wake advances the time to the engine's next wake-up, this many times.
func (s *stranger) wake(times int) {
	for range times {
		if at := s.e.State().Wake; at > s.now {
			s.now = at
			s.apply(Ticked{})
		}
	}
}

// restart continues from the engine's whole state, or from the durable part that matters here.
func (s *stranger) restart() {
	state := s.e.State()
	data, err := json.Marshal(state)
	if err != nil {
		s.t.Fatal(err)
	}
	var read State
	if err := json.Unmarshal(data, &read); err != nil {
		s.t.Fatal(err)
	}
	if s.pick(2) == 0 {
		read.Now, read.Wake, read.Clouds, read.Solving, s.pending = 0, 0, nil, nil, nil
		for i := range read.Instances {
			in := &read.Instances[i]
			in.Connected, in.Call, in.Dial, in.Listed, in.Tagging, in.Growing, in.Regrown = false, 0, 0, false, Tagging{}, 0, false
		}
		for i := range read.Attempts {
			read.Attempts[i].Effect = 0
		}
	}
	s.e = begin(s.t, read)
	s.apply(Configured{Settings: s.settings()})
}

func (s *stranger) apply(body Body) {
	data, err := json.Marshal(Event{At: s.now, Body: body})
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() {
		if r := recover(); r != nil {
			s.t.Fatalf("%s\nmakes the engine panic: %v\n%s", data, r, debug.Stack())
		}
	}()
	d := s.e.Apply(Event{At: s.now, Body: body})
	for _, f := range d.Effects {
		if f.Stop == nil && f.Forget == nil && f.Disconnect == nil && (f.Fire == nil || f.Fire.Hook == drover.HookBroken) {
			s.pending = append(s.pending, f)
		}
	}
	for _, n := range d.Notes {
		if strings.HasPrefix(n.Text, faultText) {
			s.t.Fatalf("after %s\n%s", data, n.Text)
		}
	}
	if wrong := s.e.Check(); wrong != nil {
		s.t.Fatalf("after %s\n%v", data, wrong)
	}
	s.e.Status()
	s.e.Census()
	s.e.ExplainAll(50)
	for j := range s.e.queue.All() {
		s.e.Explain(drover.JobID{Number: j.Number, Index: s.pick(4) - 1})
	}
	for _, in := range s.e.fleet.All() {
		s.e.ExplainInstance(in.Name)
	}
}

func (s *stranger) settings() Settings {
	set := Settings{
		Clouds: []CloudSettings{{Name: "c", MaxInstances: 2 + s.pick(4), MaxCreating: 1 + s.pick(3), ListInterval: time.Minute}},
		Lifecycle: Lifecycle{
			BootTimeout: 10 * time.Minute, ProbeInterval: 10 * time.Second, ProbeTimeout: 2 * time.Minute, IdleTimeout: time.Minute,
			TermTimeout: 2 * time.Minute, ShutdownTimeout: 10 * time.Second,
			KeepBroken: time.Duration(s.pick(2)) * time.Hour, MaxAge: time.Duration(s.pick(3)) * time.Hour, UseOnce: s.pick(4) == 0,
		},
		MaxInstances: s.pick(2) * 5, MaxCost: drover.Money(s.pick(8)/6) * drover.Dollar, Keep: time.Duration(s.pick(2)) * time.Hour,
		GrowMemory: s.pick(3) * 1000, ScheduleTimeout: time.Duration(s.pick(2)) * time.Hour,
	}
	if s.pick(3) == 0 {
		hard := Amounts{Hourly: drover.Money(1+s.pick(5)) * drover.Dollar / 2, Daily: drover.Money(s.pick(3)) * 3 * drover.Dollar}
		set.Budgets = []Budget{{Hard: hard, Stop: s.pick(2) == 0}, {User: "ada", Hard: Amounts{Daily: drover.Dollar}, Soft: Amounts{Hourly: drover.Dollar / 10}}}
		if s.pick(2) == 0 {
			set.Budgets[1] = Budget{Label: "a=b", Hard: hard}
		}
	}
	if s.pick(3) == 0 {
		set.Clouds = append(set.Clouds, CloudSettings{Name: "d", MaxCreating: 2, ListInterval: time.Minute, Leaving: s.pick(3) == 0})
	}
	if s.pick(3) == 0 {
		set.Shares = drover.Shares{By: []drover.ShareBy{drover.ShareByUser, "label:a"}[s.pick(2)], Weights: map[string]int{"ada": 2, "b": 3}}
	}
	return set
}

func (s *stranger) offerings(cloud string) (all []drover.Offering) {
	for i := range 1 + s.pick(3) {
		n := drover.MilliCPU(1000 << (2 * i))
		all = append(all, drover.Offering{
			Cloud: cloud, Zone: "z", Market: []drover.Market{drover.OnDemand, drover.Spot}[s.pick(2)], Price: drover.Money(i+1) * drover.Dollar / 10,
			QuotaGroup: []string{"", "std"}[s.pick(2)],
			Type: drover.InstanceType{Name: fmt.Sprint("t", i), ProviderType: fmt.Sprint("t", i), Resources: drover.Resources{
				CPU: n, Memory: drover.Bytes(n) * drover.MiB * 4, Disk: drover.Bytes(s.pick(2)) * drover.TiB, Arch: "amd64",
			}},
		})
	}
	return all
}

func (s *stranger) err() *drover.Error {
	kinds := []drover.ErrorKind{
		drover.KindTransient, drover.KindQuota, drover.KindCapacity, drover.KindRateLimit, drover.KindUnsupported, drover.KindAuthentication,
		drover.KindNotFound, drover.KindInvalid, drover.KindUnreachable, drover.KindConflict, drover.KindHostKey, "",
		drover.KindQuota, drover.KindCapacity, drover.KindUnreachable, drover.KindUnreachable,
	}
	scopes := []drover.Scope{"", drover.ScopeType, drover.ScopeQuotaGroup, drover.ScopeSubnet, drover.ScopeZone, drover.ScopeAll}
	at := s.pick(len(kinds) + 1)
	if at == len(kinds) {
		return nil
	}
	return &drover.Error{Kind: kinds[at], Scope: scopes[s.pick(len(scopes))], Message: "no", RetryAt: s.now.Add(time.Duration(s.pick(3)-1) * time.Minute)}
}

// instance returns an existing instance, or any other.
func (s *stranger) instance() int64 {
	if there := s.e.fleet.All(); len(there) > 0 && s.pick(8) > 0 {
		return there[s.pick(len(there))].ID
	}
	return s.e.s.LastInstance + int64(s.pick(8)) - 6
}

// number returns the number of an unfinished job, or any other.
func (s *stranger) number() int64 {
	if there := slices.Collect(s.e.queue.All()); len(there) > 0 && s.pick(8) > 0 {
		return there[s.pick(len(there))].Number
	}
	return int64(s.pick(8))
}

// attempt returns a live attempt, or any other.
func (s *stranger) attempt() drover.AttemptID {
	if live := s.e.Attempts(); len(live) > 0 && s.pick(5) > 0 {
		return live[s.pick(len(live))].ID
	}
	return drover.AttemptID{Job: drover.JobID{Number: 1 + int64(s.pick(6)), Index: s.pick(5) - 1}, Number: 1 + s.pick(4)}
}

func (s *stranger) exit() drover.Exit {
	causes := []string{
		"", "", drover.CauseStopped, drover.CauseTimeout, drover.CauseNoStart, drover.CauseLost, drover.CauseInterrupted, drover.CauseMemory,
		drover.CauseImage, drover.CauseNoImage,
	}
	return drover.Exit{Code: s.pick(3), Cause: causes[s.pick(len(causes))], Signal: []string{"", "killed"}[s.pick(2)], Started: s.now, Ended: s.now.Add(-time.Hour)}
}

func (s *stranger) job() Job {
	s.jobs++
	j := Job{
		Number: s.jobs, Name: fmt.Sprint("j", s.jobs), User: []string{"", "ada"}[s.pick(2)], Labels: map[string]string{"a": []string{"b", "c"}[s.pick(2)]}, Priority: s.pick(3), Attempts: 1 + s.pick(3), Queued: Ranges{{First: -1, Last: -1}},
		MaxRunning: s.pick(3), Retry: drover.Retry{ExitCodes: []int{1}, Times: s.pick(2), Delay: time.Duration(s.pick(3)) * time.Minute}, Timeout: time.Duration(s.pick(2)) * time.Hour,
		Expected: time.Duration(s.pick(4)-1) << (5 * s.pick(12)),
		Shape:    drover.Shape{Spot: drover.SpotPrefer, Need: drover.Resources{CPU: drover.MilliCPU(500 << s.pick(5)), Memory: drover.GiB << s.pick(5), Disk: drover.GiB}},
	}
	if s.pick(2) == 0 {
		j.Array = drover.Array{First: 0, Last: s.pick(6), Set: true}
		j.Queued = Ranges{{First: 0, Last: j.Array.Last}}
	}
	if j.Array.Set && s.pick(2) == 0 {
		j.Gang = 2
		j.Array.Last |= 1
		j.Queued[0].Last = j.Array.Last
	}
	if s.pick(5) == 0 {
		j.After = []int64{int64(s.pick(int(s.jobs)) + 1)}
	}
	if s.pick(4) == 0 {
		j.Shape.Placement.Type = "t1"
	}
	return j
}

// body returns an event, true or not.
func (s *stranger) body() Body {
	why := drover.Reason{Code: drover.ReasonCancelled, Text: "so"}
	switch s.pick(64) {
	case 0:
		if s.pick(4) == 0 {
			return Configured{Settings: s.settings()}
		}
		return Ticked{}
	case 1, 2, 17, 18, 19, 20:
		return Submitted{Jobs: []Job{s.job(), s.job()}}
	case 3:
		return CancelAsked{Wish: 1, Job: drover.JobID{Number: s.number(), Index: s.pick(4) - 1}, All: s.pick(40) == 0, Reason: why}
	case 4:
		return InstructAsked{Instance: s.instance(), Verb: append(drover.Verbs(), "dance")[s.pick(5)], Reason: why}
	case 5:
		return PriorityAsked{Job: s.number(), Priority: s.pick(4), Reason: why}
	case 6:
		if s.pick(40) == 0 {
			return DrainAsked{Stop: []string{"", "stopped"}[s.pick(2)]}
		}
		return Ticked{}
	case 7:
		if s.pick(40) == 0 {
			return CloseAsked{Now: s.pick(2) == 0}
		}
		return Ticked{}
	case 8:
		return Noticed{Instance: s.instance(), Notice: drover.Notice{Cause: "spot", Deadline: s.now}}
	case 9:
		return HealthReported{Instance: s.instance(), Text: []string{"", "ill"}[s.pick(2)]}
	case 10, 11, 29, 30:
		if s.mood != 1 && s.pick(2) == 0 {
			return Ticked{}
		}
		return Disconnected{Instance: s.instance(), Heard: s.now.Add(-time.Minute), Text: "reset"}
	case 12, 13, 14, 15, 21, 22, 23, 24, 25, 26, 27, 28:
		return Exited{Attempt: s.attempt(), Exit: s.exit()}
	case 16:
		return s.effectless()
	}
	return s.answer()
}

// effectless returns an answer to an effect that does not exist.
func (s *stranger) effectless() Body {
	effect := int64(s.pick(30))
	switch s.pick(8) {
	case 0:
		return Created{Effect: effect, Instance: s.instance(), ProviderID: "p"}
	case 1:
		return CreateFailed{Effect: effect, Instance: s.instance(), Tried: s.pick(9) - 3, Err: s.err()}
	case 2:
		return Connected{Effect: effect, Instance: s.instance(), Attempts: s.reports()}
	case 3:
		return Started{Effect: effect, Attempt: s.attempt()}
	case 4:
		return StartFailed{Effect: effect, Attempt: s.attempt(), Err: s.err(), Late: s.pick(4) == 0}
	case 5:
		return Collected{Effect: effect, Attempt: s.attempt(), Err: s.err()}
	case 6:
		return Solved{Effect: effect}
	}
	return s.list(effect, "c")
}

func (s *stranger) reports() (all []Report) {
	for range s.pick(4) {
		r := Report{ID: s.attempt()}
		if s.pick(2) == 0 {
			exit := s.exit()
			r.Exit = &exit
		}
		all = append(all, r)
	}
	return all
}

// list returns instances that exist, that may exist, and that nobody requested.
func (s *stranger) list(effect int64, cloud string) Body {
	ev := Listed{Effect: effect, Cloud: cloud, Began: s.now.Add(-time.Duration(s.pick(3)) * time.Second)}
	if s.pick(6) == 0 {
		ev.Err = s.err()
	}
	for range s.pick(4) {
		id := s.instance()
		if s.pick(12) == 0 {
			ev.Removed = append(ev.Removed, fmt.Sprint("p", id))
			continue
		}
		name := fmt.Sprint("f-n-", id)
		if s.pick(16) == 0 {
			name = fmt.Sprint("f-lost-", id)
		}
		ev.Added = append(ev.Added, Sighting{
			ProviderID: fmt.Sprint("p", id), Name: name, ProviderType: fmt.Sprint("t", s.pick(4)), Type: "t0", Zone: "z", Market: drover.OnDemand,
			Idle: []drover.IdleBehavior{drover.IdleHold, drover.IdleDrain, "odd", "", ""}[min(s.pick(16), 4)], Stopped: s.pick(24) == 0, Reclaimed: s.pick(24) == 0,
			Failed: []*drover.Error{{Kind: drover.KindCapacity, Scope: drover.ScopeZone, Message: "failed"}, nil}[min(s.pick(24), 1)],
		})
	}
	return ev
}

// answer answers an effect, mostly plausibly, and sometimes keeps it to be answered again.
func (s *stranger) answer() Body {
	if len(s.pending) == 0 {
		return Ticked{}
	}
	at := s.pick(len(s.pending))
	f := s.pending[at]
	if s.pick(10) > 0 {
		s.pending = append(s.pending[:at:at], s.pending[at+1:]...)
	}
	if s.pick(100) == 0 {
		s.mood = s.pick(4)
	}
	moody := s.mood == 1 && f.Connect != nil || s.mood == 2 && f.Create != nil
	var err *drover.Error
	if s.pick(8) == 0 || moody && s.pick(8) > 0 {
		err = s.err()
	}
	switch {
	case f.ListOfferings != nil:
		return Offered{Effect: f.ID, Cloud: f.ListOfferings.Cloud, Offerings: s.offerings(f.ListOfferings.Cloud), Err: err}
	case f.ListInstances != nil:
		return s.list(f.ID, f.ListInstances.Cloud)
	case f.Create != nil && err != nil:
		return CreateFailed{Effect: f.ID, Instance: f.Create.Instance, Tried: s.pick(3), Err: err}
	case f.Create != nil:
		return Created{Effect: f.ID, Instance: f.Create.Instance, ProviderID: fmt.Sprint("p", f.Create.Instance), Taken: f.Create.Candidates[s.pick(len(f.Create.Candidates))]}
	case f.Destroy != nil:
		return Destroyed{Effect: f.ID, Instance: f.Destroy.Instance, Err: err}
	case f.SetTags != nil:
		return Tagged{Effect: f.ID, Instance: f.SetTags.Instance, Err: err}
	case f.GrowDisk != nil:
		return DiskGrown{Effect: f.ID, Instance: f.GrowDisk.Instance, Err: err}
	case f.Fire != nil:
		return Fired{Effect: f.ID, Instance: f.Fire.Instance}
	case f.Connect != nil && err != nil:
		return ConnectFailed{Effect: f.ID, Instance: f.Connect.Instance, Err: err}
	case f.Connect != nil:
		return s.connected(f)
	case f.Start != nil && err != nil:
		return StartFailed{Effect: f.ID, Attempt: f.Start.Attempt, Err: err}
	case f.Start != nil:
		return Started{Effect: f.ID, Attempt: f.Start.Attempt}
	case f.Collect != nil:
		return Collected{Effect: f.ID, Attempt: f.Collect.Attempt, Err: err}
	}
	plan := pack.Solve(*f.Solve)
	if s.pick(20) == 0 {
		plan.Unmet = append(plan.Unmet, drover.Unmet{Demand: s.pick(5) - 1, Count: -1, Code: drover.ReasonBlocked})
		plan.Purchases = append(plan.Purchases, drover.Purchase{Candidates: []int{s.pick(5) - 1}, Loads: []drover.Load{{Demand: s.pick(5) - 1, Count: s.pick(5) - 1}}})
	}
	return Solved{Effect: f.ID, Plan: plan}
}

func (s *stranger) connected(f Effect) Body {
	ev := Connected{Effect: f.ID, Instance: f.Connect.Instance, HostKey: "k"}
	if in := s.e.fleet.Member(f.Connect.Instance); in != nil && s.pick(4) > 0 {
		for _, a := range in.Load {
			ev.Attempts = append(ev.Attempts, Report{ID: a.ID, Exit: a.Exit})
		}
	} else {
		ev.Attempts = s.reports()
	}
	if s.pick(12) == 0 {
		ev.ProbeFailed = "exit code 1"
	}
	if s.pick(12) == 0 {
		ev.Notice = &drover.Notice{Cause: "spot"}
	}
	if s.pick(12) == 0 {
		ev.Unhealthy = "ill"
	}
	return ev
}
