//go:build e2e

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover"
)

// gated is three parallel jobs that run until the file gate exists, and one that runs after them.
const gated = `name: gated
jobs:
  - {name: hold, array: 3, command: [sh, -c, "while [ ! -e %s ]; do sleep 0.02; done"], resources: {vcpus: 1, memory: 16Mi, disk: 16Mi}}
  - {name: last, after: [hold], command: [sh, -c, "exit 3"], resources: {vcpus: 1, memory: 16Mi, disk: 16Mi}}
`

// TestReportsAgree makes a small fleet work, and compares the API, the metrics and the log.
// covers D19 D20
func TestReportsAgree(t *testing.T) {
	t.Parallel()
	p := newDaemonPlace(t, ", idle_timeout: 1m", "")
	p.process.kill()
	p.serve("-v", "--status-interval", "100ms")
	gate := filepath.Join(t.TempDir(), "gate")
	p.write("batch.yaml", fmt.Sprintf(gated, gate))
	p.drover("submit", "batch.yaml")
	running := func() int { return p.status().Jobs[drover.JobRunning] }
	eventually(t, 20*time.Second, "three jobs run", func() bool {
		return running() == 3 && p.metrics()[`drover_allocated_vcpus{cloud="here",market="on_demand",type="small"}`] == 3
	})
	t.Run("the metrics agree with the API while jobs run", func(t *testing.T) { p.wantAgreement(t) })

	p.drover("hold", p.instances()[0].Name)
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, "all jobs are final", func() bool { return p.status().Jobs[drover.JobFailed] == 1 })
	eventually(t, 20*time.Second, "every instance is idle", func() bool { return p.status().Instances[drover.InstanceIdle] == len(p.instances()) })
	eventually(t, 5*time.Second, "the metrics are current", func() bool { return p.metrics()[`drover_jobs{state="failed"}`] == 1 })
	t.Run("the metrics agree with the API when all jobs are final", func(t *testing.T) { p.wantAgreement(t) })
	t.Run("the counters match the records", p.wantCounts)

	p.drover("release", p.instances()[0].Name)
	for _, in := range p.instances() {
		p.drover("kill", in.Name)
	}
	eventually(t, 20*time.Second, "every instance is gone", func() bool { return len(p.instances()) == 0 })
	t.Run("the log has every event under documented keys, and no secrets", p.wantLog)
}

// get gets a page of the daemon.
func (p *daemonPlace) get(path, token string) []byte {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), "GET", "http://"+p.address+path, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		p.t.Fatalf("%s: %d %s, %v", path, answer.StatusCode, text, err)
	}
	return text
}

// token returns the daemon's local token.
func (p *daemonPlace) token() string {
	p.t.Helper()
	token, err := os.ReadFile(p.file("drover.d/token"))
	if err != nil {
		p.t.Fatal(err)
	}
	return strings.TrimSpace(string(token))
}

func (p *daemonPlace) status() (s drover.Status) {
	p.t.Helper()
	if err := json.Unmarshal(p.get("/v1/status", p.token()), &s); err != nil {
		p.t.Fatal(err)
	}
	return s
}

// metrics reads the metrics, without a token.
func (p *daemonPlace) metrics() map[string]float64 {
	p.t.Helper()
	text := p.get("/metrics", "")
	figures := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		at := strings.LastIndexByte(strings.TrimSpace(line), ' ')
		if value, err := strconv.ParseFloat(strings.TrimSpace(line[at+1:]), 64); err == nil && !strings.HasPrefix(line, "#") {
			figures[line[:at]] = value
		}
	}
	return figures
}

// tally holds the numbers from one of two sources that must agree.
type tally map[string]float64

// wantAgreement compares the metrics with the lists of jobs and instances. The fleet must not change meanwhile.
func (p *daemonPlace) wantAgreement(t *testing.T) {
	t.Helper()
	listed, measured := tally{}, tally{}
	for _, j := range p.jobs() {
		listed["jobs "+string(j.State)]++
	}
	for _, in := range p.instances() {
		key := fmt.Sprint(in.Type, " ", in.Market, " ", in.State, " ", in.Idle)
		listed["instances "+key]++
		listed["hourly "+key] += in.Price
		listed["vcpus "+key] += 2
		listed["memory "+key] += float64(2 * drover.GiB)
	}
	for _, w := range p.status().Waiting {
		listed["waiting "+w.Reason.Code] += float64(w.Count)
	}
	for series, value := range p.metrics() {
		name, labels := splitSeries(series)
		key := fmt.Sprint(labels["type"], " ", labels["market"], " ", labels["state"], " ", labels["idle_behavior"])
		for metric, as := range map[string]string{
			"drover_jobs": "jobs " + labels["state"], "drover_jobs_waiting": "waiting " + labels["reason"], "drover_instances": "instances " + key,
			"drover_instances_hourly_dollars": "hourly " + key, "drover_instances_vcpus": "vcpus " + key, "drover_instances_memory_bytes": "memory " + key,
		} {
			if name == metric && value != 0 {
				measured[as] = value
			}
		}
	}
	if diff := cmp.Diff(listed, measured); diff != "" {
		t.Errorf("the lists (-) and the metrics (+) differ:\n%s", diff)
	}
}

// splitSeries splits a series into its name and its labels.
func splitSeries(series string) (name string, labels map[string]string) {
	name, rest, _ := strings.Cut(strings.TrimSuffix(series, "}"), "{")
	labels = map[string]string{}
	for _, label := range strings.Split(rest, ",") {
		key, value, _ := strings.Cut(label, "=")
		labels[key] = strings.Trim(value, `"`)
	}
	return name, labels
}

// wantCounts checks that the counters equal the records.
func (p *daemonPlace) wantCounts(t *testing.T) {
	n := float64(len(p.instances()))
	got, all := map[string]float64{}, p.metrics()
	want := map[string]float64{
		"drover_attempts_started_total":                                    4,
		"drover_job_wait_seconds_count":                                    4,
		`drover_attempts_ended_total{reason="ok",state="succeeded"}`:       3,
		`drover_attempts_ended_total{reason="exit",state="failed"}`:        1,
		"drover_attempt_duration_seconds_count":                            4,
		`drover_cloud_calls_total{call="create",cloud="here",result="ok"}`: n,
		`drover_instance_boot_seconds_count{cloud="here",phase="accept"}`:  n,
		`drover_instance_boot_seconds_count{cloud="here",phase="reach"}`:   n,
		`drover_instance_boot_seconds_count{cloud="here",phase="prove"}`:   n,
		`drover_boot_probes_total{cloud="here",result="passed"}`:           n,
		`drover_connects_total{cloud="here",result="ok"}`:                  n,
		`drover_runner_calls_total{call="start",result="ok"}`:              4,
		`drover_runner_calls_total{call="collect",result="ok"}`:            4,
		`drover_effects_in_flight{effect="create"}`:                        0,
		"drover_loop_answering":                                            1,
		"drover_commits_failed_total":                                      0,
	}
	for series := range want {
		got[series] = all[series]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// wantLog checks that the daemon's log is complete.
func (p *daemonPlace) wantLog(t *testing.T) {
	eventually(t, 5*time.Second, "the status line reports that no instances are left", func() bool {
		return strings.Contains(p.process.err.String(), `"instances":0`)
	})
	known := documentedKeys(t)
	seen := map[string][]string{} // the keys of lines, by their message
	for line := range bytes.Lines([]byte(p.process.err.String())) {
		var logged map[string]any
		if err := json.Unmarshal(line, &logged); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		for key := range logged {
			if !slices.Contains(known, key) {
				t.Errorf("the key %s is not in docs/metrics.md: %s", key, line)
			}
		}
		if logged["msg"] == "status" && logged["by_state"] == nil {
			continue // before the first instance there are no attributes
		}
		for _, event := range []string{"job hold queued", "attempt 1.0/1 started", "attempt 2/1 failed", "job last failed", "accepted", "ready after", "destroying", "is gone", "carried out create", "status"} {
			if text := fmt.Sprint(logged["msg"]); (event == text || len(event) > len("status") && strings.Contains(text, event)) && seen[event] == nil {
				seen[event] = slices.Sorted(maps.Keys(logged))
			}
		}
	}
	place := []string{"cloud", "instance", "level", "market", "msg", "provider_id"}
	want := map[string][]string{
		"job hold queued":       {"elements", "job", "level", "msg", "name", "priority", "time", "user"},
		"attempt 1.0/1 started": about(place, "attempt", "job"),
		"attempt 2/1 failed":    about(place, "attempt", "cost_usd", "exit_code", "job", "reason", "state", "took_seconds"),
		"job last failed":       {"job", "level", "msg", "reason", "time"},
		"accepted":              about(place),
		"ready after":           about(place),
		"destroying":            about(place, "reason"),
		"is gone":               about(place, "reason"),
		"carried out create":    withoutID(about(place, "effect", "took_seconds")),
		"status":                seen["status"],
	}
	seen["carried out create"] = withoutID(seen["carried out create"]) // the log has it only if a list was faster than the call
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
	for _, key := range []string{"queued", "running", "instances", "by_state", "hourly_usd"} {
		if !slices.Contains(seen["status"], key) {
			t.Errorf("the status line has %q", seen["status"])
		}
	}
	p.wantNoSecrets(t)
}

func withoutID(keys []string) []string {
	return slices.DeleteFunc(keys, func(key string) bool { return key == "provider_id" })
}

func about(place []string, more ...string) []string {
	return slices.Sorted(slices.Values(slices.Concat(place, more, []string{"time", "type", "zone"})))
}

func (p *daemonPlace) wantNoSecrets(t *testing.T) {
	if text := p.process.err.String(); strings.Contains(text, p.token()) || strings.Contains(text, "sleep 0.02") {
		t.Error("the log contains the token or a job's command")
	}
}

// documentedKeys returns the keys in docs/metrics.md, and slog's own.
func documentedKeys(t *testing.T) []string {
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	keys := []string{"time", "level", "msg"}
	_, logs, _ := strings.Cut(string(text), "## Logs\n")
	for line := range strings.Lines(logs) {
		if strings.HasPrefix(line, "| ") {
			for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(line, -1) {
				keys = append(keys, m[1])
			}
		}
	}
	return keys
}
