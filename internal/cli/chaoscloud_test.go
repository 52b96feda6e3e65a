//go:build chaos

package cli

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"drover"
)

var cloudSeeds = flag.Int("seeds", 3, "number of plans for the chaos cloud, starting at -seed")

// The work of one seed: half a minute with all six instances.
const (
	shortJobs = 260
	longJobs  = 40
	cloudJobs = shortJobs + longJobs
	cloudRuns = 20              // controllers in a row, each killed
	doneTime  = 5 * time.Minute // from the last kill until every job is final
	leftTime  = 2 * time.Minute // from then until no instance is left
)

// TestChaosCloud kills controllers again and again while they run jobs on a cloud with faults. The cloud's instances
// are real OpenSSH servers, and its ledger records what really happened: no job may be lost or run twice at once, no
// instance may be left, and the bill must equal the ledger.
// covers D9 K7 K12
func TestChaosCloud(t *testing.T) {
	needSSHD(t)
	first := max(1, *chaosSeed)
	for seed := first; seed < first+uint64(*cloudSeeds); seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			plan := planOf(seed)
			t.Logf("make chaos-cloud CHAOS_SEEDS=1 SEED=%d: %v", seed, plan)
			h := newHerd(t, plan)
			h.begin()
			h.trouble()
			h.rest()
			h.audit()
			h.report()
		})
	}
}

// herd is a fleet on the chaos cloud; it kills the fleet's controllers.
type herd struct {
	t      *testing.T
	plan   cloudPlan
	place  *place
	cloud  *chaosCloud
	dice   *dice
	began  time.Time
	folder string   // ledger and logs; kept if the test fails
	seen   string   // where the jobs record what happens to them
	log    *os.File // of all controllers

	controller *process
	run        string // the id of the run, if it has one
	starts     int
	kills      int

	attempts   int
	billed     int                // instances
	cost       float64            // their cost in dollars
	bills      map[string]float64 // by the instance's id, if a daemon reports them
	violations []string           // each begins with its kind
}

func newHerd(t *testing.T, plan cloudPlan) *herd {
	h := &herd{t: t, plan: plan, place: newPlace(t), dice: newDice(plan.seed), began: time.Now(), bills: map[string]float64{}}
	var err error
	if h.folder, err = os.MkdirTemp("", fmt.Sprintf("drover-chaos-%d-", plan.seed)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("ledger, logs, witnesses, records, and all violations: %s", h.folder)
		} else {
			os.RemoveAll(h.folder)
		}
	})
	h.seen = h.file("witnesses")
	if h.log, err = os.Create(h.file("controllers.log")); err == nil {
		err = os.Mkdir(h.seen, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.log.Close() })
	h.cloud = newChaosCloud(t, plan, h.folder)
	h.place.write("drover.yaml", fmt.Sprintf(herdConfiguration, freeAddress(t), h.file("socket")))
	h.place.write("batch.yaml", fmt.Sprintf(herdBatch, h.seen, shortJobs, longJobs))
	return h
}

func (h *herd) file(name string) string { return filepath.Join(h.folder, name) }

// herdConfiguration has short times, so that each is often reached.
const herdConfiguration = `version: 1
fleet: lab
listen: %s
clouds:
  liar:
    driver: external
    command: [chaos-driver, %s]
    protocol: stream
    timeout: 5s
    max_instances: 6
    list_interval: 1s
    zones: [a, b]
    types:
      - {name: small, vcpus: 3, memory: 8Gi, disk: 20Gi, price: 2.7}
      - {name: large, vcpus: 4, memory: 8Gi, disk: 20Gi, price: 3.6}
instances: {boot_timeout: 20s, probe_interval: 500ms, probe_timeout: 3s, idle_timeout: 3s, term_timeout: 1s, shutdown_timeout: 1s}
`

const herdBatch = `name: batch
jobs:
  - {name: short, array: %[2]d, command: [witness, %[1]s, 500ms-3s, result.txt], outputs: [result.txt], resources: {vcpus: 1, disk: 16Mi}, attempts: 100}
  - {name: long, array: %[3]d, command: [witness, %[1]s, 4s-10s, result.txt], outputs: [result.txt], resources: {vcpus: 1, disk: 16Mi}, attempts: 100}
`

// begin starts the first controller and submits the jobs.
func (h *herd) begin() {
	if h.plan.run {
		h.start("run", "-v", "-o", "json", "-c", "drover.yaml", "batch.yaml")
		h.run = h.place.runID()
		return
	}
	h.next()
	if _, err := h.command("doctor", "-c", "drover.yaml", "--wait", "1m").Output(); err != nil {
		h.t.Fatalf("waiting for the controller: %v", err)
	}
	if _, err := h.command("submit", "-c", "drover.yaml", "--retry-for", "1m", "batch.yaml").Output(); err != nil {
		h.t.Fatalf("submitting: %v", err)
	}
}

// next starts the controller after one has ended.
func (h *herd) next() {
	if h.plan.run {
		h.start("run", "-v", "-o", "json", "--resume", h.run)
	} else {
		h.start("serve", "-v", "-c", "drover.yaml")
	}
}

// start starts a controller.
func (h *herd) start(args ...string) {
	h.t.Helper()
	r := &process{t: h.t, cmd: h.command(args...), ended: make(chan struct{})}
	r.cmd.Stdout = &r.out
	if err := r.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	go func() { r.cmd.Wait(); close(r.ended) }()
	h.t.Cleanup(r.kill)
	h.controller = r
	h.starts++
}

// command returns the binary under test, with standard error in the log.
func (h *herd) command(args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(binaries, "drover"), args...)
	cmd.Dir, cmd.Env, cmd.Stderr = h.place.dir, append(os.Environ(), "PATH="+searchPath(), "XDG_STATE_HOME="+h.place.state), h.log
	return cmd
}

// trouble kills one controller after another, at random times. A run may finish before the last kill.
func (h *herd) trouble() {
	save := 4 + h.dice.below(4)
	restore := save + 2 + h.dice.below(4)
	var copied string
	for h.kills < cloudRuns {
		select {
		case <-time.After(h.dice.between(500*time.Millisecond, 4*time.Second)):
			h.controller.kill()
			h.kills++
			h.say("kill %d", h.kills)
		case <-h.controller.ended:
			if h.finished() || len(h.violations) > 5 {
				return
			}
		}
		switch {
		case h.plan.older && h.kills == save && copied == "":
			copied = backUp(h.t, h.records())
		case h.plan.older && h.kills == restore && copied != "":
			putBack(h.t, h.records(), copied)
			copied = ""
			h.say("the records of kill %d are put back", save)
		}
		h.next()
	}
}

// say logs what is done to controllers.
func (h *herd) say(format string, args ...any) {
	fmt.Fprintf(h.log, "%s CHAOS %s\n", time.Now().UTC().Format("15:04:05.000"), fmt.Sprintf(format, args...))
}

// finished reports whether a controller that ended by itself has finished its work: a run has if it printed its
// summary.
func (h *herd) finished() bool {
	if h.plan.run && json.Valid([]byte(h.controller.out.String())) {
		return true
	}
	h.violate("end: controller %d ended by itself: %v", h.starts, h.controller.cmd.ProcessState)
	return false
}

func (h *herd) records() string {
	fleet := "lab"
	if h.plan.run {
		fleet = h.run
	}
	return filepath.Join(h.place.state, "drover", fleet, "drover.db")
}

// rest leaves the fleet alone until its jobs are final and its instances gone. Then a run ends.
func (h *herd) rest() {
	done := h.controller
	if !h.plan.run {
		done = h.place.start("wait", "-c", "drover.yaml", "--retry-for", "1m", "--batch", "batch")
	}
	if !within(doneTime, func() bool { return isClosed(done.ended) || isClosed(h.controller.ended) }) {
		why, err := h.command("explain", "-c", "drover.yaml").Output()
		h.violate("loss: jobs are not final %v after the last kill: %s (%v)", doneTime, why, err)
		return
	}
	if isClosed(h.controller.ended) {
		h.finished()
		return
	}
	within(leftTime, func() bool { return len(h.cloud.living()) == 0 && h.settled() })
}

// settled reports whether the controller considers all instances gone, so that it has all their bills.
func (h *herd) settled() bool {
	out, err := h.command("instances", "-c", "drover.yaml", "-o", "json").Output()
	var left []drover.Instance
	return err == nil && json.Unmarshal(out, &left) == nil && len(left) == 0
}

func (h *herd) violate(format string, args ...any) {
	h.violations = append(h.violations, fmt.Sprintf(format, args...))
}

// report prints the result in one line, and some violations of each kind. A file has all of them.
func (h *herd) report() {
	kinds := map[string]int{}
	for _, v := range h.violations {
		kind, _, _ := strings.Cut(v, ":")
		if kinds[kind]++; kinds[kind] <= 4 {
			h.t.Error(v)
		}
	}
	h.t.Logf("seed %d: %d jobs in %d attempts, %d kills, %d starts, %d instances; billed $%.4f for %d, the ledger has $%.4f (%+.1f%%); %v; violations %v; faults %v",
		h.plan.seed, cloudJobs, h.attempts, h.kills, h.starts, len(h.cloud.instances), h.cost, h.billed, h.owed(), h.deviation(),
		time.Since(h.began).Round(time.Second), kinds, h.cloud.met)
	if err := os.WriteFile(h.file("violations"), []byte(strings.Join(h.violations, "\n")+"\n"), 0o600); err != nil {
		h.t.Error(err)
	}
	// A finished run leaves nothing; whatever other fleets leave goes to the folder with the logs.
	if err := os.Rename(filepath.Dir(h.records()), h.file("fleet")); err != nil && !os.IsNotExist(err) {
		h.t.Error(err)
	}
}

// end ends the controller cleanly.
func (h *herd) end() {
	h.controller.cmd.Process.Signal(syscall.SIGTERM)
	if !within(time.Minute, func() bool { return isClosed(h.controller.ended) }) {
		h.violate("end: the controller did not end")
		h.controller.kill()
	}
}
