package cli

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"drover"
	"drover/internal/chart"
	"drover/internal/human"
	"drover/internal/recorded"
	"drover/internal/simulate"
	"drover/internal/trace"
)

// figure is a line in the comparison of simulations.
type figure struct {
	name string
	of   func(r *simulate.Result) string // empty: not shown
}

func number(n int) string { return strconv.Itoa(n) }

// seconds formats a duration for people.
func seconds(s float64) string {
	if s < 10 {
		return strconv.FormatFloat(s, 'f', 2, 64) + "s"
	}
	return human.Age(time.Duration(s * float64(time.Second)))
}

// cents formats an amount of money to the cent.
func cents(usd float64) string { return "$" + strconv.FormatFloat(usd, 'f', 2, 64) }

// known returns the text of a figure, unless the figure is unknown.
func known(v float64, text string) string {
	if v == 0 {
		return ""
	}
	return text
}

var figures = []figure{
	{"jobs", func(r *simulate.Result) string { return nonzero(r.Jobs) }},
	{"pool instances ready", ofPools(func(p simulate.Pool) string { return strconv.FormatFloat(p.Ready*100, 'f', 3, 64) + "%" })},
	{"pool instances interrupted", ofPools(func(p simulate.Pool) string { return nonzero(p.Interrupted) })},
	{"replaced, p50", ofPools(func(p simulate.Pool) string { return seconds(p.Replaced.P50) })},
	{"replaced, p99", ofPools(func(p simulate.Pool) string { return seconds(p.Replaced.P99) })},
	{"refused creates", ofPools(func(p simulate.Pool) string { return nonzero(p.Refused) })},
	{"balance worsened", ofPools(func(p simulate.Pool) string { return number(p.Unbalanced) })},
	{"surplus instance-hours", ofPools(func(p simulate.Pool) string { return strconv.FormatFloat(p.Beyond, 'f', 2, 64) })},
	{"left out", func(r *simulate.Result) string { return nonzero(leftOut(r)) }},
	{"refused", func(r *simulate.Result) string { return nonzero(r.Refused) }},
	{"unfinished", func(r *simulate.Result) string { return nonzero(r.Unfinished) }},
	{"failed", func(r *simulate.Result) string { return nonzero(r.Failed) }},
	{"wait, mean", func(r *simulate.Result) string { return ofJobs(r, seconds(r.Wait.Mean)) }},
	{"wait, p50", func(r *simulate.Result) string { return ofJobs(r, seconds(r.Wait.P50)) }},
	{"wait, p95", func(r *simulate.Result) string { return ofJobs(r, seconds(r.Wait.P95)) }},
	{"wait, p99", func(r *simulate.Result) string { return ofJobs(r, seconds(r.Wait.P99)) }},
	{"makespan", func(r *simulate.Result) string { return ofJobs(r, seconds(r.Makespan)) }},
	{"instances", func(r *simulate.Result) string { return number(r.Instances) }},
	{"instances, peak", func(r *simulate.Result) string { return number(r.Peak) }},
	{"instance-hours", func(r *simulate.Result) string { return strconv.FormatFloat(r.Hours, 'f', 1, 64) }},
	{"interrupted attempts", func(r *simulate.Result) string { return nonzero(r.Lost) }},
	{"on demand", func(r *simulate.Result) string { return ofMarket(r, drover.OnDemand) }},
	{"spot", func(r *simulate.Result) string { return ofMarket(r, drover.Spot) }},
	{"for jobs", func(r *simulate.Result) string { return cents(r.Parts.Jobs) }},
	{"boot", func(r *simulate.Result) string { return cents(r.Parts.Boot) }},
	{"idle", func(r *simulate.Result) string { return cents(r.Parts.Idle) }},
	{"waste", func(r *simulate.Result) string { return cents(r.Parts.Waste) }},
	{"cost", func(r *simulate.Result) string { return cents(r.Cost) }},
	{"waiting saves", func(r *simulate.Result) string {
		if r.Saved == nil {
			return ""
		}
		return cents(*r.Saved)
	}},
	{"lower bound", func(r *simulate.Result) string { return known(r.Bound, cents(r.Bound)) }},
	{"bound with boots", func(r *simulate.Result) string { return known(r.Prompt, cents(r.Prompt)) }},
	{"cost / lower bound", func(r *simulate.Result) string { return known(r.Ratio, strconv.FormatFloat(r.Ratio, 'f', 3, 64)) }},
	{"utilisation", func(r *simulate.Result) string {
		return known(r.Utilisation, strconv.FormatFloat(r.Utilisation*100, 'f', 1, 64)+"%")
	}},
}

// ofPools returns a figure of each pool, each with its name if there are several.
func ofPools(of func(p simulate.Pool) string) func(r *simulate.Result) string {
	return func(r *simulate.Result) string {
		var said []string
		for _, p := range r.Pools {
			switch text := of(p); {
			case text == "":
			case len(r.Pools) == 1:
				said = append(said, text)
			default:
				said = append(said, p.Name+" "+text)
			}
		}
		return strings.Join(said, ", ")
	}
}

// ofJobs returns the text, or nothing if no job ended.
func ofJobs(r *simulate.Result, text string) string {
	if r.Done+r.Failed == 0 {
		return ""
	}
	return text
}

func leftOut(r *simulate.Result) (n int) {
	for _, l := range r.LeftOut {
		n += l.Jobs
	}
	return n
}

func ofMarket(r *simulate.Result, market drover.Market) string {
	for _, m := range r.Markets {
		if m.Market == market {
			return cents(m.Cost)
		}
	}
	return ""
}

// figureRows returns the figures that any of the results has, with the text for each result.
func figureRows(results []*simulate.Result) iter.Seq2[string, []string] {
	return func(yield func(string, []string) bool) {
		for _, f := range figures {
			values := make([]string, len(results))
			for i, r := range results {
				values[i] = f.of(r)
			}
			if strings.Join(values, "") != "" && !yield(f.name, values) {
				return
			}
		}
	}
}

// printSimulated prints results side by side: a column for each, and a line for each figure that any of them has.
// Configurations are named above policies.
func (a *app) printSimulated(results []*simulate.Result) error {
	t := table{out: a.out}
	t.head("", false)
	policies := []cell{{}}
	for _, r := range results {
		policy := strings.ToUpper(string(r.Policy))
		t.head(strings.ToUpper(cmp.Or(r.Configuration, policy)), true)
		policies = append(policies, cell{text: policy})
	}
	if results[0].Configuration != "" {
		if err := t.add(policies); err != nil {
			return err
		}
	}
	for name, values := range figureRows(results) {
		row := []cell{{text: name}}
		for _, text := range values {
			row = append(row, cell{text: text})
		}
		if err := t.add(row); err != nil {
			return err
		}
	}
	if err := t.flush(); err != nil {
		return err
	}
	for _, l := range results[0].LeftOut {
		fmt.Fprintf(a.err, "left out of the trace: %s %s\n", human.Plural(l.Jobs, "job"), l.Why)
	}
	for _, r := range results {
		if r.WhyRefused != "" {
			fmt.Fprintf(a.err, "%s: %s cannot fit any type that may be rented; the first such job: %s\n", nameOf(r), human.Plural(r.Refused, "job"), r.WhyRefused)
		}
		if r.WhyUnfinished != "" {
			fmt.Fprintf(a.err, "%s: %s did not end; the first: %s\n", nameOf(r), human.Plural(r.Unfinished, "job"), r.WhyUnfinished)
		}
	}
	return nil
}

// nameOf returns the name that distinguishes a result from the others.
func nameOf(r *simulate.Result) string {
	if r.Configuration == "" {
		return string(r.Policy)
	}
	return r.Configuration + " " + string(r.Policy)
}

// draw writes the chart and the table over time, if they are requested.
func (f simulateFlags) draw(title string, results []*simulate.Result) error {
	for _, into := range []struct {
		flag, path string
		write      func(w io.Writer) error
	}{
		{"chart", f.chart, func(w io.Writer) error { return drawChart(w, title, results) }},
		{"csv", f.csv, func(w io.Writer) error { return writePoints(w, results) }},
	} {
		if into.path == "" {
			continue
		}
		if err := writeFile(into.path, os.O_TRUNC, into.write); err != nil {
			return fmt.Errorf("--%s: %w", into.flag, err)
		}
	}
	return nil
}

// panels are the panels of a chart, from top to bottom.
var panels = []struct {
	title string
	unit  string
	steps bool // an average over each period, not the value at its end
	known bool // in records too
	of    func(p simulate.Point) float64
}{
	{"Instances", "instances", true, true, func(p simulate.Point) float64 { return p.Instances }},
	{"Rented", "vCPUs", true, false, func(p simulate.Point) float64 { return p.Rented }},
	{"Waiting", "jobs", true, true, func(p simulate.Point) float64 { return p.Queued }},
	{"Spent", "USD", false, true, func(p simulate.Point) float64 { return p.Spent }},
}

// drawn returns the points of a result that a panel draws: none of what the records do not have.
func drawn(r *simulate.Result, known bool) []simulate.Point {
	if r.Policy == recorded.Really && !known {
		return nil
	}
	return r.Points
}

// chartTitle names the trace and the files that determine costs: price lists, and configurations unless every cloud has
// a list.
func (a *app) chartTitle(f simulateFlags, t *trace.Trace) string {
	var files []string
	for _, file := range a.lists.files() {
		files = append(files, filepath.Base(file))
	}
	for _, file := range f.compare {
		if file != "" && !a.lists.everywhere() {
			files = append(files, filepath.Base(file))
		}
	}
	if len(files) == 0 {
		files = []string{"the local cloud"}
	}
	return t.Name + ", prices of " + strings.Join(files, ", ")
}

func drawChart(w io.Writer, title string, results []*simulate.Result) error {
	all := chart.Chart{Title: title}
	for _, p := range panels {
		panel := chart.Panel{Title: p.title, Unit: p.unit, Steps: p.steps}
		for _, r := range results {
			line := chart.Line{Name: nameOf(r)}
			for _, at := range drawn(r, p.known) {
				from := chart.Point{At: r.Begin.Add(at.From).Std()}
				if p.steps {
					from.Value = p.of(at)
				} else if len(line.Points) > 0 {
					from.Value = line.Points[len(line.Points)-1].Value
				}
				line.Points = append(line.Points, from, chart.Point{At: r.Begin.Add(at.To).Std(), Value: p.of(at)})
			}
			panel.Lines = append(panel.Lines, line)
		}
		all.Panels = append(all.Panels, panel)
	}
	return all.SVG(w)
}

// writePoints writes a line for each period of each result.
func writePoints(w io.Writer, results []*simulate.Result) error {
	out := csv.NewWriter(w)
	out.Write([]string{"configuration", "policy", "from", "seconds", "instances", "vcpus_rented", "vcpus_used", "jobs_waiting", "usd_spent"})
	number := func(v float64) string { return strconv.FormatFloat(v, 'f', 4, 64) }
	for _, r := range results {
		for _, p := range r.Points {
			out.Write([]string{
				r.Configuration, string(r.Policy), r.Begin.Add(p.From).Std().Format(time.RFC3339), number((p.To - p.From).Seconds()),
				number(p.Instances), number(p.Rented), number(p.Used), number(p.Queued), number(p.Spent),
			})
		}
	}
	out.Flush()
	return out.Error()
}
