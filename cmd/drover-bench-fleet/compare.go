package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"drover/internal/benchfleet"
)

// trial is a workload, and the best measurement of Arvados for it on an idle host with two cores; empty if it was not
// measured.
type trial struct {
	benchfleet.Workload
	wall, cpu       string // seconds
	instances, paid string
}

// dispatching has empty jobs on instances that boot at once.
var dispatching = []trial{
	{Workload: benchfleet.Workload{Jobs: 200, Quota: 100}, wall: "0.9", cpu: "1.2"},
	{Workload: benchfleet.Workload{Jobs: 1_000, Quota: 100}, wall: "3.5", cpu: "5.6"},
	{Workload: benchfleet.Workload{Jobs: 5_000, Quota: 100}, wall: "22.7", cpu: "39"},
	{Workload: benchfleet.Workload{Jobs: 20_000, Quota: 100}, wall: "108", cpu: "175"},
	{Workload: benchfleet.Workload{Jobs: 50_000, Quota: 100}},
	{Workload: benchfleet.Workload{Jobs: 200, Quota: 10}, wall: "6.7", cpu: "3.1"},
	{Workload: benchfleet.Workload{Jobs: 1_000, Quota: 10}, wall: "34", cpu: "32", instances: "735"},
	{Workload: benchfleet.Workload{Jobs: 5_000, Quota: 10}, wall: "106", cpu: "151"},
}

// Longer jobs and boots show how well instances are used.
const (
	boot = time.Second
	work = 500 * time.Millisecond
)

var using = []trial{
	{Workload: benchfleet.Workload{Jobs: 200, Quota: 10, Boot: boot, Work: work}, wall: "20.0", instances: "117", paid: "2.05"},
	{Workload: benchfleet.Workload{Jobs: 200, Quota: 50, Boot: boot, Work: work}, wall: "4.6", instances: "89", paid: "2.27"},
	{Workload: benchfleet.Workload{Jobs: 1_000, Quota: 50, Boot: boot, Work: work}, wall: "21.8", instances: "480", paid: "2.28"},
}

// compare prints two tables.
func compare(out io.Writer) error {
	fmt.Fprintf(out, "load of this host before the run: %s\n\n", load())
	if err := compareDispatching(out); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nInstances take %v to boot, and jobs take %v; \"paid\" is the vCPU time of instances divided by that of jobs.\n\n", boot, work)
	return compareUsing(out)
}

func compareDispatching(out io.Writer) error {
	table := newTable(out, "jobs", "quota", "wall s", "CPU s", "jobs/s", "CPU ms/job", "peak MiB", "instances", "Arvados: wall s", "CPU s", "instances")
	for _, t := range dispatching {
		r, err := t.run()
		if err != nil {
			return err
		}
		table.row(strconv.Itoa(t.Jobs), strconv.Itoa(t.Quota), seconds(r.Elapsed), seconds(r.CPU), fmt.Sprintf("%.0f", float64(t.Jobs)/r.Elapsed.Seconds()),
			fmt.Sprintf("%.3f", r.CPU.Seconds()*1000/float64(t.Jobs)), strconv.FormatInt(r.Peak>>20, 10), strconv.Itoa(r.Instances), t.wall, t.cpu, t.instances)
	}
	return table.Flush()
}

func compareUsing(out io.Writer) error {
	table := newTable(out, "jobs", "quota", "wall s", "CPU s", "instances", "refused", "paid", "Arvados: wall s", "instances", "paid")
	for _, t := range using {
		r, err := t.run()
		if err != nil {
			return err
		}
		table.row(strconv.Itoa(t.Jobs), strconv.Itoa(t.Quota), seconds(r.Elapsed), seconds(r.CPU), strconv.Itoa(r.Instances), strconv.Itoa(r.Refused),
			fmt.Sprintf("%.2f", r.Paid.Seconds()/r.Useful.Seconds()), t.wall, t.instances, t.paid)
	}
	return table.Flush()
}

// table aligns its columns.
type table struct{ *tabwriter.Writer }

func newTable(out io.Writer, head ...string) table {
	t := table{tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)}
	t.row(head...)
	return t
}

func (t table) row(cells ...string) { fmt.Fprintln(t, strings.Join(cells, "\t")+"\t") }

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f", d.Seconds()) }

// run runs the workload in a separate process, so that its memory is measured separately.
func (t trial) run() (r benchfleet.Result, err error) {
	self, err := os.Executable()
	if err != nil {
		return r, err
	}
	cmd := exec.Command(self, "-jobs", strconv.Itoa(t.Jobs), "-quota", strconv.Itoa(t.Quota), "-boot", t.Boot.String(), "-work", t.Work.String())
	var complained bytes.Buffer
	cmd.Stderr = &complained
	said, err := cmd.Output()
	if err != nil {
		return r, fmt.Errorf("%s: %w: %s", cmd, err, complained.String())
	}
	return r, json.Unmarshal(said, &r)
}

// load returns the average number of runnable threads in the last one, five and fifteen minutes.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	fields := strings.Fields(string(text))
	return strings.Join(fields[:min(3, len(fields))], " ")
}
