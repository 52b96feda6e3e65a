package engine

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drover"
)

// The work of a decision is measured in steps: how many of the engine's statements it executes. The toolchain counts
// them for a whole process, as for coverage, so the tests are built once with counters and run twice for each figure:
// without the measured decisions, and with them.

// herdRun is one run of such a process.
var herdRun = flag.String("herd", "", "the herd and events whose steps are counted: INSTANCES JOBS SHAPES GANG FEATURES EVENT TIMES")

// features are settings under which herds are measured.
var features = map[string]Settings{
	"none":    {},
	"budgets": budgeted(1e6 * drover.Dollar),
	"poor":    budgeted(drover.Dollar),
	"poorest": budgeted(drover.Dollar * 6 / 10),
	"tight":   {Budgets: []Budget{{User: "ada", Hard: Amounts{Hourly: 1e6 * drover.Dollar}}}}, // then tightened
	"all":     everyFeature(),
}

// everyFeature returns settings with everything that decisions may have to consider.
func everyFeature() Settings {
	s := budgeted(1e6 * drover.Dollar)
	s.Mix.OnDemand = drover.Part{Percent: 20}
	s.SpotShare = drover.WholeShare / 2
	s.Shares.By = drover.ShareByUser
	s.Users = UserLimits{Instances: 1 << 20}
	s.Lifecycle.Sharing = drover.ShareUser
	s.Clouds = []CloudSettings{{Limits: []drover.Limit{{Type: "t0", Instances: new(1 << 20)}, {Market: drover.Spot, CPU: new(drover.MilliCPU(1 << 40))}}}}
	return s
}

// events are the events that herds receive.
var events = map[string]func(*herd){
	"submitted": (*herd).submit,
	"finished":  (*herd).finish,
	"lost":      (*herd).lose,
	"nothing":   func(h *herd) {},
	"hours": func(h *herd) { // two and a half
		for range 1800 {
			h.now = h.now.Add(5 * time.Second)
			h.decide(Ticked{})
		}
	},
}

func TestHerdEvents(t *testing.T) {
	if *herdRun == "" {
		t.Skip("runs only in a process whose steps are counted")
	}
	var s size
	var with, event string
	var times int
	if _, err := fmt.Sscan(*herdRun, &s.instances, &s.jobs, &s.shapes, &s.gang, &s.room, &with, &event, &times); err != nil {
		t.Fatal(err)
	}
	if times < 0 { // not even a herd
		return
	}
	h := newHerd(t, s, features[with])
	if with == "tight" {
		h.tighten()
	}
	if event != "hours" {
		for range 5 {
			events[event](h)
		}
	}
	h.took = nil
	for range times {
		events[event](h)
	}
	fmt.Println("decisions", len(h.took))
}

// counter is this package's test program, built to count statements.
type counter struct {
	t       *testing.T
	program string
}

func newCounter(t *testing.T) counter {
	c := counter{t, filepath.Join(t.TempDir(), "engine.test")}
	build := exec.Command("go", "test", "-c", "-covermode=atomic", "-coverpkg=drover/internal/engine,drover/internal/engine/fleet", "-o", c.program, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return c
}

// count returns how many statements a herd executes, and how many decisions it makes after the first ones, when an
// event occurs this many times.
func (c counter) count(s size, with, event string, times int) (steps, decisions int) {
	c.t.Helper()
	folder := c.t.TempDir()
	what := fmt.Sprint(s.instances, s.jobs, s.shapes, s.gang, s.room, " ", with, " ", event, " ", times)
	run := exec.Command(c.program, "-test.run", "^TestHerdEvents$", "-test.gocoverdir", folder, "-herd", what)
	out, err := run.CombinedOutput()
	if err != nil {
		c.t.Fatalf("a herd of %s: %v\n%s", what, err, out)
	}
	fmt.Sscan(strings.TrimPrefix(string(out), "decisions "), &decisions)
	text := filepath.Join(folder, "text")
	if out, err := exec.Command("go", "tool", "covdata", "textfmt", "-i="+folder, "-o="+text).CombinedOutput(); err != nil {
		c.t.Fatalf("reading the counts: %v\n%s", err, out)
	}
	file, err := os.Open(text)
	if err != nil {
		c.t.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var statements, count int
		_, numbers, _ := strings.Cut(lines.Text(), " ")
		if _, err := fmt.Sscan(numbers, &statements, &count); err == nil {
			steps += statements * count
		}
	}
	return steps, decisions
}

// stepsPerDecision returns the steps of one of a herd's decisions on an event.
func (c counter) stepsPerDecision(s size, with, event string) int {
	c.t.Helper()
	times := 40
	if event == "hours" {
		times = 1
	}
	before, _ := c.count(s, with, event, 0)
	after, decisions := c.count(s, with, event, times)
	steps := (after - before) / max(1, decisions)
	c.t.Logf("%+v, features %s, %s: %d steps", s, with, event, steps)
	return steps
}

// long lets the tests take minutes, as make simtest does.
var long = flag.Bool("long", false, "take minutes")

// seeds returns how many seeds a test tries: few, or all if it may take minutes.
func seeds(few, all uint64) uint64 {
	if *long {
		return all
	}
	return few
}

func TestStepsOfDecisions(t *testing.T) {
	if !*long {
		t.Skip("builds the package to count them: run by make simtest")
	}
	count := newCounter(t)
	small := size{instances: 100, jobs: 2000, shapes: 40}
	larger := map[string]size{
		"ten times the instances": {instances: 1000, jobs: 2000, shapes: 40},
		"fifty times the jobs":    {instances: 100, jobs: 100_000, shapes: 40},
	}
	for _, with := range []string{"none", "all"} { // features
		for _, event := range []string{"submitted", "finished"} {
			for _, gang := range []int{0, 4} {
				s := small
				s.gang = gang
				few := count.stepsPerDecision(s, with, event)
				for what, s := range larger {
					s.gang = gang
					if many := count.stepsPerDecision(s, with, event); many > 2*few {
						t.Errorf("with %s, features %s and gangs of %d, a decision on the event %s takes %d steps, but %d in the small herd", what, with, gang, event, many, few)
					}
				}
			}
		}
	}

	// A submitted job could run on any instance of the herd. It finds its place among the first, or no budget allows any:
	// an exhausted one refuses all at once; a user's with a little left looks at each instance once for all waiting jobs.
	for with, most := range map[string]int{"none": 2, "poor": 2, "tight": 20} {
		few := count.stepsPerDecision(size{instances: 500, shapes: 40, room: 20}, with, "submitted")
		many := count.stepsPerDecision(size{instances: 5000, shapes: 40, room: 20}, with, "submitted")
		if each := (many - few) / 4500; each > most {
			t.Errorf("with room and features %s, each additional instance adds %d steps to a decision on a submitted job", with, each)
		}
	}

	// Hours end while jobs run, some past their expected end. Ten times the instances have ten times the jobs that
	// reach theirs, and each is examined.
	for _, with := range []string{"budgets", "poor"} { // distant limits and exceeded ones
		few, many := count.stepsPerDecision(small, with, "hours"), count.stepsPerDecision(larger["ten times the instances"], with, "hours")
		if many > 7*few {
			t.Errorf("with %s and ten times the instances, a decision when an hour ends takes %d steps, but %d in the small herd", with, many, few)
		}
	}

	// No budget can pay for any of many gangs: each is examined once, not once per other gang.
	each := func(gangs int) int {
		none, _ := count.count(size{}, "poorest", "nothing", -1)
		all, _ := count.count(size{jobs: gangs, shapes: gangs, gang: 12}, "poorest", "nothing", 0)
		return (all - none) / gangs
	}
	if few, many := each(40), each(400); many > 2*few {
		t.Errorf("each of 400 unaffordable gangs takes %d steps, but each of 40 takes %d", many, few)
	}
}
