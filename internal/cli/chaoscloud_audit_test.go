//go:build chaos

package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"drover"
)

// mostOff is how far the bill may differ from the ledger, in percent.
const mostOff = 1.0

// audit compares the controller's records with what the jobs and the cloud saw.
func (h *herd) audit() {
	if h.plan.run {
		h.auditSummary()
	} else {
		h.auditRecords()
	}
	h.end()
	for i, array := range []struct {
		name     string
		elements int
	}{{"short", shortJobs}, {"long", longJobs}} {
		for index := range array.elements {
			h.auditJob(drover.JobID{Number: int64(i) + 1, Index: index}, h.results(array.name))
		}
	}
	h.auditLeaks()
	h.auditBill()
}

// results returns the folder of an array's results.
func (h *herd) results(array string) string {
	return filepath.Join(h.place.dir, "drover-out", "batch", array)
}

// auditSummary checks the summary that a run prints.
func (h *herd) auditSummary() {
	var o outcome
	if err := json.Unmarshal([]byte(h.controller.out.String()), &o); err != nil {
		h.violate("loss: the run has no summary: %v", err)
		return
	}
	h.attempts, h.billed, h.cost = o.Attempts, o.Instances, o.Cost
	if o.Jobs != cloudJobs || o.Succeeded != cloudJobs {
		h.violate("loss: %d of %d jobs succeeded, %d failed, %d were cancelled; the first: %+v", o.Succeeded, cloudJobs, o.Failed, o.Cancelled, o.Failures)
	}
	if o.Instances > len(h.cloud.instances) {
		h.violate("twice: %d instances are billed, but only %d were created", o.Instances, len(h.cloud.instances))
	}
}

// auditRecords checks a daemon's records. Each job must have succeeded, in one attempt, and each of the cloud's ids
// must have one bill. If a job succeeded after the older copy of the records was made, only its output is left, which
// auditJob reads.
func (h *herd) auditRecords() {
	var jobs []drover.Job
	var costs drover.Costs
	var instances []drover.Instance
	h.ask(&jobs, "jobs", "--elements")
	h.ask(&costs, "cost")
	h.ask(&instances, "instances", "--all")
	h.billed, h.cost = len(instances), costs.Total.Cost
	if len(jobs) != cloudJobs {
		h.violate("loss: %d of %d jobs are in the records", len(jobs), cloudJobs)
	}
	for _, j := range jobs {
		h.attempts += len(j.Attempts)
		succeeded := 0
		for _, a := range j.Attempts {
			if a.State == drover.AttemptSucceeded {
				succeeded++
			}
		}
		if j.State != drover.JobSucceeded || succeeded > 1 || succeeded == 0 && !h.plan.older {
			h.violate("loss: job %v is %s, and %d attempts of it succeeded: %+v", j.ID, j.State, succeeded, j.Reason)
		}
	}
	bills := map[string]string{}
	for _, in := range instances {
		h.bills[in.ProviderID] = in.Cost
		one := fmt.Sprintf("%s $%.4f", in.Name, in.Cost)
		if other := bills[in.ProviderID]; other != "" && in.ProviderID != "" {
			h.violate("twice: %s has two bills: %s and %s", in.ProviderID, other, one)
		}
		bills[in.ProviderID] = one
	}
	for i, array := range []string{"short", "long"} {
		if err := h.command("outputs", "-c", "drover.yaml", fmt.Sprint(i+1), "--to", h.results(array)).Run(); err != nil {
			h.violate("end: drover outputs: %v", err)
		}
	}
}

// ask runs a command, and parses its JSON output.
func (h *herd) ask(into any, args ...string) {
	out, err := h.command(append(args, "-c", "drover.yaml", "-o", "json")...).Output()
	if err := errors.Join(err, json.Unmarshal(out, into)); err != nil {
		h.violate("end: drover %s: %v", strings.Join(args, " "), err)
	}
}

// auditJob checks, by the lock of a job's witness, that no two attempts ran at once, and that the output comes from an
// attempt that finished.
func (h *herd) auditJob(id drover.JobID, results string) {
	seen, _ := os.ReadFile(filepath.Join(h.seen, id.String()))
	told := strings.ReplaceAll(strings.TrimSpace(string(seen)), "\n", "; ")
	if strings.Contains(told, "overlap") {
		h.violate("overlap: job %v ran twice at once: %s", id, told)
	}
	text, err := os.ReadFile(filepath.Join(results, fmt.Sprint(id.Index), "result.txt"))
	attempt := strings.TrimPrefix(firstLine(string(text)), id.String()+" ")
	switch {
	case err != nil || string(text) != product(id.String(), attempt):
		h.violate("output: job %v left %d bytes that begin with %.40q (%v): %s", id, len(text), text, err, told)
	case !strings.Contains(told, "end "+attempt+" "):
		h.violate("output: job %v has the output of attempt %s, which did not finish: %s", id, attempt, told)
	}
}

// auditLeaks checks that no instance and no process is left when the controller considers everything finished.
func (h *herd) auditLeaks() {
	for _, in := range h.cloud.living() {
		h.violate("leak: instance %s (%s), created %v ago, is still running", in.id, in.name, time.Since(in.created).Round(time.Second))
		in.kill()
	}
	var left []int
	if !within(30*time.Second, func() bool { left = processesOf(h.folder); return len(left) == 0 }) {
		for _, pid := range left {
			h.violate("leak: process %d is left: %s", pid, commandLine(pid))
		}
	}
}

// auditBill checks that the recorded bill equals the ledger's. Records restored from an older copy may lack later
// costs.
func (h *herd) auditBill() {
	if off := h.deviation(); off > mostOff || off < -mostOff && !h.plan.older {
		h.violate("bill: the records have $%.4f, but the ledger has $%.4f: %+.1f%%%s", h.cost, h.owed(), off, h.differences())
	}
}

// differences lists each instance whose bill differs from the ledger by a tenth or more.
func (h *herd) differences() string {
	var b strings.Builder
	for _, in := range h.cloud.instances {
		owed, billed := in.owed(), h.bills[in.id]
		if math.Abs(billed-owed) > owed/10 {
			fmt.Fprintf(&b, "\n\t%s: $%.4f, but $%.4f in the ledger (told to end: %v)", in.id, billed, owed, in.told)
		}
	}
	return b.String()
}

// price is the configuration's hourly price of each type.
var price = map[string]float64{"small": 2.7, "large": 3.6}

// owed returns the cost by the ledger: each instance from when its creation was accepted until its last process ended,
// at the configuration's prices.
func (h *herd) owed() (dollars float64) {
	for _, in := range h.cloud.instances {
		dollars += in.owed()
	}
	return dollars
}

// owed returns the cost of one instance.
func (in *chaosInstance) owed() float64 { return in.ended.Sub(in.created).Hours() * price[in.kind] }

// deviation returns by how many percent the bill exceeds the ledger.
func (h *herd) deviation() float64 {
	if owed := h.owed(); owed > 0 {
		return 100 * (h.cost/owed - 1)
	}
	return math.Inf(1)
}
