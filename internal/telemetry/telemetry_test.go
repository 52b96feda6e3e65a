package telemetry

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/internal/engine"
)

// figuresOf returns Drover's own figures in a scrape, by series, without histogram buckets.
func figuresOf(t *testing.T, m *Telemetry) map[string]string {
	t.Helper()
	all := map[string]string{}
	for line := range strings.Lines(page(t, m)) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if at := strings.LastIndex(line, "} "); at >= 0 { // label values may contain spaces
			series, value = line[:at+1], strings.TrimSpace(line[at+2:])
		}
		if strings.HasPrefix(series, "drover_") && !strings.Contains(series, "_bucket{") {
			all[series] = value
		}
	}
	return all
}

// want fails unless the figures have these values.
func want(t *testing.T, m *Telemetry, want map[string]string) {
	t.Helper()
	all, got := figuresOf(t, m), map[string]string{}
	for series := range want {
		got[series] = all[series]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func stock(state drover.InstanceState, idle drover.IdleBehavior) engine.StockKey {
	return engine.StockKey{Cloud: "aws", Type: "large", Market: drover.Spot, State: state, Idle: idle}
}

// now returns a Snapshot with some of everything.
func now() Snapshot {
	has := drover.Resources{CPU: 4000, Memory: 8 * drover.GiB}
	return Snapshot{
		Census: engine.Census{
			Status: engine.Status{
				Spent: 3 * drover.Dollar / 2,
				Waiting: []drover.Waiting{
					{Count: 3, Reason: drover.Reason{Code: drover.ReasonBooting, Text: "one"}},
					{Count: 4, Reason: drover.Reason{Code: drover.ReasonLimit, Text: "two"}},
					{Count: 5, Reason: drover.Reason{Code: drover.ReasonLimit, Text: "three"}},
				},
				Standing: []drover.Waiting{{Count: 2, Reason: drover.Reason{Code: drover.ReasonIdle}}},
			},
			Stock: []engine.Stock{
				{StockKey: stock(drover.InstanceRunning, drover.IdleRun), Instances: 3, Connected: 2, Hourly: 3 * drover.Dollar, Has: has.Plus(has, 2),
					Used: drover.Resources{CPU: 6000, Memory: drover.GiB}, UsedPrice: 3 * drover.Dollar / 2},
				{StockKey: stock(drover.InstanceRunning, drover.IdleHold), Instances: 1, Connected: 1, Hourly: drover.Dollar, Has: has,
					Used: drover.Resources{CPU: 500, Memory: drover.GiB}, UsedPrice: drover.Dollar / 8},
			},
			Budgets: []engine.BudgetState{
				{Scope: "fleet", Window: "hourly", Hard: 3 * drover.Dollar, Soft: 2 * drover.Dollar, Spent: drover.Dollar, Committed: drover.Dollar / 2},
				{Scope: "user ada", Window: "daily", Soft: drover.Dollar, Spent: drover.Dollar / 4},
				{Scope: "label a=b", Window: "monthly", Hard: drover.Dollar}, {Scope: "user bob", Window: "daily", Hard: drover.Dollar},
			},
			Blocks: []engine.Block{
				{Cloud: "aws", Zone: "a", Reason: engine.Verdict{Cause: engine.Cause(drover.KindCapacity)}},
				{Cloud: "aws", Zone: "b", Reason: engine.Verdict{Cause: engine.Cause(drover.KindCapacity)}},
			},
			Clouds: []engine.Sight{{Cloud: "aws", Listed: 90 * second, Partition: true, Throttles: 3}, {Cloud: "gce"}},
		},
		Pools:   []drover.Pool{{Name: "web", Wanted: 3, Instances: 2, Ready: 1}},
		Jobs:    map[drover.JobState]int{drover.JobQueued: 12, drover.JobRunning: 4},
		Events:  7,
		Effects: map[string]int{"create": 2, "connect": 0},
	}
}

func begun(s Snapshot) *Telemetry {
	m := New(Build{Version: "1.2.3", Revision: "abc", Go: "go1.26"})
	m.Ask(func(context.Context) (Snapshot, error) { return s, nil })
	return m
}

// covers D19
func TestFiguresOfThePresent(t *testing.T) {
	const (
		running = `{cloud="aws",idle_behavior="run",market="spot",state="running",type="large"}`
		held    = `{cloud="aws",idle_behavior="hold",market="spot",state="running",type="large"}`
		both    = `{cloud="aws",market="spot",type="large"}`
	)
	want(t, begun(now()), map[string]string{
		"drover_loop_answering":                                                   "1",
		"drover_instances" + running:                                              "3",
		"drover_instances" + held:                                                 "1",
		"drover_instances_connected" + running:                                    "2",
		"drover_instances_hourly_dollars" + running:                               "3",
		"drover_instances_vcpus" + running:                                        "12",
		"drover_instances_memory_bytes" + held:                                    "8.589934592e+09",
		"drover_allocated_hourly_dollars" + both:                                  "1.625",
		"drover_allocated_vcpus" + both:                                           "6.5",
		"drover_allocated_memory_bytes" + both:                                    "2.147483648e+09",
		"drover_spent_dollars_total":                                              "1.5",
		`drover_instances_waiting{reason="idle"}`:                                 "2",
		`drover_jobs{state="queued"}`:                                             "12",
		`drover_jobs{state="running"}`:                                            "4",
		`drover_jobs_waiting{reason="limit"}`:                                     "9",
		`drover_jobs_waiting{reason="booting"}`:                                   "3",
		`drover_blocks{cloud="aws",reason="capacity"}`:                            "2",
		`drover_budget_limit_dollars{budget="fleet",kind="hard",window="hourly"}`: "3",
		`drover_budget_limit_dollars{budget="fleet",kind="soft",window="hourly"}`: "2",
		`drover_budget_limit_dollars{budget="user-2",kind="hard",window="daily"}`: "1",
		`drover_budget_spent_dollars{budget="fleet",window="hourly"}`:             "1",
		`drover_budget_spent_dollars{budget="user-1",window="daily"}`:             "0.25",
		`drover_budget_spent_dollars{budget="label-1",window="monthly"}`:          "0",
		`drover_budget_pledged_dollars{budget="fleet",window="hourly"}`:           "0.5",
		`drover_partition{cloud="aws"}`:                                           "1",
		`drover_partition{cloud="gce"}`:                                           "0",
		`drover_cloud_listed_timestamp_seconds{cloud="aws"}`:                      "90",
		`drover_throttles{cloud="aws"}`:                                           "3",
		"drover_events_waiting":                                                   "7",
		`drover_effects_in_flight{effect="create"}`:                               "2",
		`drover_effects_in_flight{effect="connect"}`:                              "0",
		`drover_build_info{go_version="go1.26",revision="abc",version="1.2.3"}`:   "1",
	})
}

func TestSnapshots(t *testing.T) {
	t.Run("several scrapes within a second take one snapshot", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			taken := 0
			m := New(Build{})
			m.Ask(func(context.Context) (Snapshot, error) { taken++; return now(), nil })
			page(t, m)
			time.Sleep(fresh)
			page(t, m)
			time.Sleep(fresh + 1)
			page(t, m)
			if taken != 2 {
				t.Errorf("%d snapshots were taken, want 2", taken)
			}
		})
	})
	t.Run("if the controller does not answer, a scrape shows that and the counts, and no other figures", func(t *testing.T) {
		m := New(Build{})
		m.Ask(func(context.Context) (Snapshot, error) { return now(), errors.New("no answer") })
		m.Probed("aws", true)
		all := figuresOf(t, m)
		if all["drover_loop_answering"] != "0" || all[`drover_boot_probes_total{cloud="aws",result="passed"}`] != "1" {
			t.Errorf("the figures are %v", all)
		}
		for series := range all {
			if strings.HasPrefix(series, "drover_instances{") || strings.HasPrefix(series, "drover_jobs") && !strings.HasPrefix(series, "drover_job_wait") {
				t.Errorf("it shows %s", series)
			}
		}
	})
}

const second = drover.Time(time.Second)

var attempt = engine.Attempt{ID: drover.AttemptID{Job: drover.JobID{Number: 3, Index: 1}, Number: 1}, Instance: 7, State: drover.AttemptStarting, Started: 40 * second}

// lived returns a Telemetry that has seen calls of every kind, and the life of an instance that ran a job and was
// reclaimed.
func lived() *Telemetry {
	m := begun(now())
	m.Begun(engine.State{})
	live(m)
	callEverything(m)
	return m
}

// live reports an instance that is requested at second 10, accepted at 12, logged in to at 17 and ready at 20. Its end
// is decided at 50, and it is gone at 57.
func live(m *Telemetry) {
	in := engine.Instance{ID: 7, Cloud: "aws", Type: drover.InstanceType{Name: "small"}, Market: drover.Spot, State: drover.InstanceCreating, Asked: 10 * second}
	write := func(at drover.Time, writes ...engine.Write) { m.Committed(at, writes, time.Millisecond, nil) }
	instance := func(at drover.Time) { c := in; write(at, engine.Write{Instance: &c}) }
	instance(10 * second)
	in.Created, in.State, in.Type.Name = 12*second, drover.InstanceBooting, "large"
	instance(12 * second)
	m.LoggedIn(7, 14*second) // its boot probe failed
	m.Probed("aws", false)
	m.LoggedIn(7, 17*second)
	m.Probed("aws", true)
	in.Ready, in.State = 20*second, drover.InstanceRunning
	instance(20 * second)
	m.LoggedIn(7, 30*second) // after its connection was lost

	job := engine.Job{Number: 3, Since: 5 * second}
	write(40*second, engine.Write{Job: &job}, engine.Write{Attempt: &engine.AttemptRow{Attempt: attempt}})
	ended := attempt
	ended.State, ended.Ended, ended.Exit = drover.AttemptFailed, 48*second, &drover.Exit{Code: 1, CPU: 6 * time.Second}
	write(48*second, engine.Write{Attempt: &engine.AttemptRow{Attempt: ended, Reason: drover.Reason{Code: drover.ReasonExit}}})

	m.Decided([]engine.Event{{Body: engine.Disconnected{Instance: 7}}}, 0)
	in.Reclaimed = &engine.Verdict{Cause: drover.ReasonInterrupted}
	instance(49 * second)
	in.State, in.Reason = drover.InstanceStopping, &engine.Verdict{Cause: drover.ReasonInterrupted, Since: 50 * second}
	instance(50 * second)
	in.Reason.Since, in.Ended = 52*second, 52*second
	instance(52 * second)
	m.Decided([]engine.Event{{Body: engine.Ticked{}}, {Body: engine.Ticked{}}, {Body: engine.Disconnected{Instance: 7}}}, 2*time.Millisecond)
	write(57*second, engine.Write{Gone: &engine.InstanceEnd{ID: 7, At: 52 * second, Reason: drover.Reason{Code: drover.ReasonInterrupted}}})
}

func callEverything(m *Telemetry) {
	quota := drover.Errorf(drover.KindQuota, "no more")
	m.Called("aws", "create", 3*time.Second, nil)
	m.Called("aws", "create", time.Second, quota)
	m.Requested("aws", "CreateFleet", nil)
	m.Requested("aws", "CreateFleet", quota)
	m.Done(engine.Effect{Connect: &engine.Connect{Cloud: "aws"}}, engine.Connected{}, 2*time.Second)
	m.Done(engine.Effect{Connect: &engine.Connect{Cloud: "aws"}}, engine.ConnectFailed{Err: drover.Errorf(drover.KindUnreachable, "no route")}, 9*time.Second)
	m.Done(engine.Effect{Start: &engine.Start{}}, engine.Started{}, time.Second)
	m.Done(engine.Effect{Collect: &engine.Collect{}}, engine.Collected{Err: drover.Errorf(drover.KindTransient, "cut")}, time.Second)
	m.Done(engine.Effect{Solve: &drover.Problem{}}, engine.Solved{}, time.Second)
	m.Done(engine.Effect{Stop: &engine.Stop{}}, nil, time.Second)
	m.HookRan(drover.HookReady, nil)
	m.HookRan(drover.HookReady, quota)
	m.Committed(0, nil, time.Second, errors.New("disk full"))
}

// covers D19
func TestCounts(t *testing.T) {
	t.Run("an instance's life", func(t *testing.T) {
		want(t, lived(), map[string]string{
			`drover_instance_boot_seconds_sum{cloud="aws",phase="accept"}`:       "2",
			`drover_instance_boot_seconds_sum{cloud="aws",phase="reach"}`:        "5",
			`drover_instance_boot_seconds_sum{cloud="aws",phase="prove"}`:        "3",
			`drover_instance_boot_seconds_count{cloud="aws",phase="prove"}`:      "1",
			`drover_instance_shutdown_seconds_sum{cloud="aws"}`:                  "7",
			`drover_instances_ended_total{cloud="aws",reason="interrupted"}`:     "1",
			`drover_interruptions_total{cloud="aws",market="spot",type="large"}`: "1",
			`drover_disconnects_total{cloud="aws"}`:                              "1",
			`drover_boot_probes_total{cloud="aws",result="failed"}`:              "1",
			`drover_boot_probes_total{cloud="aws",result="passed"}`:              "1",
		})
	})
	t.Run("a job's life", func(t *testing.T) {
		want(t, lived(), map[string]string{
			"drover_job_wait_seconds_sum":                               "35",
			"drover_job_wait_seconds_count":                             "1",
			"drover_attempts_started_total":                             "1",
			`drover_attempts_ended_total{reason="exit",state="failed"}`: "1",
			"drover_attempt_duration_seconds_sum":                       "8",
			"drover_attempts_cpu_seconds_total":                         "6",
		})
	})
	t.Run("calls and their results", func(t *testing.T) {
		want(t, lived(), map[string]string{
			`drover_hooks_total{hook="ready",result="ok"}`:                       "1",
			`drover_hooks_total{hook="ready",result="failed"}`:                   "1",
			`drover_hooks_total{hook="broken",result="failed"}`:                  "0",
			`drover_cloud_calls_total{call="create",cloud="aws",result="ok"}`:    "1",
			`drover_cloud_calls_total{call="create",cloud="aws",result="quota"}`: "1",
			`drover_cloud_call_seconds_sum{call="create",cloud="aws"}`:           "4",

			`drover_cloud_requests_total{cloud="aws",request="CreateFleet",result="ok"}`:     "1",
			`drover_cloud_requests_total{cloud="aws",request="CreateFleet",result="failed"}`: "1",
			`drover_connects_total{cloud="aws",result="ok"}`:                                 "1",
			`drover_connects_total{cloud="aws",result="unreachable"}`:                        "1",
			`drover_connect_seconds_sum{cloud="aws"}`:                                        "2",
			`drover_runner_calls_total{call="start",result="ok"}`:                            "1",
			`drover_runner_calls_total{call="collect",result="transient"}`:                   "1",
			`drover_solve_seconds_count`:                                                     "1",
		})
	})
	t.Run("the controller's own work", func(t *testing.T) {
		want(t, lived(), map[string]string{
			`drover_events_total{event="ticked"}`:       "2",
			`drover_events_total{event="disconnected"}`: "2",
			"drover_decision_seconds_sum":               "0.002",
			"drover_commits_failed_total":               "1",
			"drover_commit_seconds_count":               "10",
		})
	})
}

func TestOnlyUnexpectedEndsOfConnectionsAreCounted(t *testing.T) {
	m := begun(Snapshot{})
	for _, state := range []drover.InstanceState{drover.InstanceIdle, drover.InstanceStopped, drover.InstanceStopping, drover.InstanceRunning} {
		in := engine.Instance{ID: 1, Cloud: string(state), State: state, Created: 1}
		m.Committed(second, []engine.Write{{Instance: &in}}, 0, nil)
		m.Decided([]engine.Event{{Body: engine.Disconnected{Instance: 1}}}, 0)
	}
	want(t, m, map[string]string{
		`drover_disconnects_total{cloud="idle"}`:     "1",
		`drover_disconnects_total{cloud="stopped"}`:  "",
		`drover_disconnects_total{cloud="stopping"}`: "",
		`drover_disconnects_total{cloud="running"}`:  "1",
	})
}

func TestUnknownTimesAndInstancesAreNotCounted(t *testing.T) {
	m := begun(Snapshot{})
	in := engine.Instance{ID: 1, Cloud: "aws", State: drover.InstanceUnknown, Asked: 1, Created: 2 * second}
	m.Committed(second, []engine.Write{{Instance: &in}}, 0, nil)
	in.Ready = 9 * second
	m.Committed(second, []engine.Write{{Instance: &in}}, 0, nil)
	cancelled := attempt
	cancelled.Stop = &engine.Verdict{}
	m.Committed(second, []engine.Write{{Attempt: &engine.AttemptRow{Attempt: cancelled}}, {Attempt: &engine.AttemptRow{Attempt: attempt}}}, 0, nil)
	m.Decided([]engine.Event{{Body: engine.Disconnected{Instance: 99}}}, 0)
	m.Committed(second, []engine.Write{{Gone: &engine.InstanceEnd{ID: 99}}}, 0, nil)
	all := figuresOf(t, m)
	for series := range all {
		if strings.HasPrefix(series, "drover_instance_boot") || strings.HasPrefix(series, "drover_interruptions") || strings.HasPrefix(series, "drover_disconnects") {
			t.Errorf("%s %s", series, all[series])
		}
	}
	want(t, m, map[string]string{"drover_attempts_started_total": "1", "drover_job_wait_seconds_count": "0"})
}

func TestCountsContinueAfterARestart(t *testing.T) {
	m := begun(Snapshot{})
	in := engine.Instance{ID: 1, Cloud: "aws", State: drover.InstanceBooting, Asked: 1, Created: 2 * second}
	m.Begun(engine.State{Instances: []engine.Instance{in}})
	m.LoggedIn(1, 5*second)
	in.Ready = 9 * second
	m.Committed(second, []engine.Write{{Instance: &in}}, 0, nil)
	want(t, m, map[string]string{
		`drover_instance_boot_seconds_sum{cloud="aws",phase="reach"}`: "3",
		`drover_instance_boot_seconds_sum{cloud="aws",phase="prove"}`: "4",
	})
	m.Committed(second, []engine.Write{{Gone: &engine.InstanceEnd{ID: 1}}}, 0, nil)
	if len(m.lives.known) != 0 {
		t.Error("a gone instance is still tracked")
	}
}
