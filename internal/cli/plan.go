package cli

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"drover"
	"drover/internal/daemon"
	"drover/internal/human"
	"drover/internal/preview"
	"drover/internal/simulate"
)

func (a *app) planCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "plan [flags] {BATCH.yaml | -- CMD ARG…}",
		Short: "Show what run or submit would rent, and the cost",
		Long: `Show what run or submit would rent now if there were no instances yet, what it would cost, and the
next-cheapest choice. Nothing is created.`,
		Example: `  drover plan examples/mandelbrot.yaml
  drover plan --array 1000 --vcpus 2 -c drover.yaml -- ./simulate
  drover plan --max-cost 5 --array 1000 -- ./simulate`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.plan(cmd.Context(), f, args)
		},
	}
	f.add(a, cmd)
	a.addCatalogue(cmd.Flags())
	cmd.ValidArgsFunction = completeBatch
	return cmd
}

// plan prints what would be rented for the jobs that may start at once.
func (a *app) plan(ctx context.Context, f runFlags, args []string) error {
	p, c, err := a.prepare(ctx, f, args)
	if err != nil {
		return err
	}
	all, _, err := a.listedOfferings(ctx, c, simulate.DefaultModels)
	if err != nil {
		return err
	}
	a.noteModelled()
	seen, err := preview.New(daemon.Settings(c, p.Limits), all, p.Batch)
	if err != nil {
		return err
	}
	r := seen.Report(p.Batch)
	if r.All, err = preview.EstimateBatch(ctx, c, daemon.Settings(c, p.Limits), all, p.Batch); err != nil {
		return err
	}
	if a.forPrograms() {
		return a.print(r)
	}
	a.printPlan(r)
	return nil
}

func (a *app) printPlan(r preview.Report) {
	if len(r.Rent) == 0 {
		fmt.Fprintf(a.out, "%s: nothing would be rented\n", r.Batch)
	} else {
		a.printRent(r)
	}
	if r.Waiting > 0 {
		fmt.Fprintf(a.out, "%d of %s would wait: %s\n", r.Waiting, human.Plural(r.Ready, "job"), drover.Sanitize(r.Why))
	}
	if r.Later > 0 {
		fmt.Fprintf(a.out, "%s would start later, after other jobs\n", human.Plural(r.Later, "job"))
	}
	if r.All != nil {
		fmt.Fprintln(a.out, estimateWords(r.All))
	}
}

// printRent prints the chosen instances, their cost, and by how much it may exceed the minimum.
func (a *app) printRent(r preview.Report) {
	w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "CLOUD\tZONE\tTYPE\tMARKET\tINSTANCES\tJOBS AT ONCE\t$/HOUR EACH\tRUNNER-UP")
	for _, p := range r.Rent {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\n", p.Cloud, drover.Sanitize(p.Zone), drover.Sanitize(p.Type), p.Market,
			p.Instances, p.Jobs, human.Dollars(p.Price), drover.Sanitize(alternativeWords(p.RunnerUp, p)))
	}
	w.Flush()
	fmt.Fprintf(a.out, "%s: %s per hour while all instances are running\n", r.Batch, human.Dollars(r.Hourly))
	fmt.Fprintf(a.out, "at most %s for the jobs that start now (on the most expensive offerings requested; jobs without a timeout count as 1h)\n", human.Dollars(r.Most))
	fmt.Fprintln(a.out, boundWords(r))
}

// boundWords describes how far the plan is from the cheapest possible one for the jobs that it places.
func boundWords(r preview.Report) string {
	these, of := "these jobs", ""
	if placed := r.Ready - r.Waiting; r.Waiting > 0 {
		these = map[bool]string{true: "the one job that can start", false: fmt.Sprintf("the %d jobs that can start", placed)}[placed == 1]
		of = " for " + these
	}
	switch {
	case r.Above == nil:
		return "the minimum possible cost is unknown"
	case *r.Above < 0.05:
		return "no cheaper offering can run " + these
	}
	return fmt.Sprintf("at most %.1f%% above the minimum possible cost%s", *r.Above, of)
}

// alternativeWords describes an alternative, and how much more it costs than the choice.
func alternativeWords(o *preview.Alternative, than preview.Rental) string {
	if o == nil {
		return "none"
	}
	name := o.Type
	if o.Cloud != than.Cloud {
		name = o.Cloud + "/" + name
	}
	more, sign := o.Price-than.Price, "+"
	if more < 0 {
		more, sign = -more, "-"
	}
	return fmt.Sprintf("%s %s, %s%s", name, o.Market, sign, human.Dollars(more))
}

// estimateWords describes a batch's likely duration and cost, and the assumptions behind them.
func estimateWords(e *preview.Estimate) string {
	took := time.Duration(e.Seconds * float64(time.Second)).Round(time.Second)
	text := fmt.Sprintf("in total about %s and %v", human.Dollars(e.Cost), took)
	if took >= time.Hour {
		text = fmt.Sprintf("in total about %s and %dh%dm", human.Dollars(e.Cost), int(took.Hours()), int(took.Minutes())%60)
	}
	if e.Never > 0 {
		text += fmt.Sprintf(" for %s, and %d would never run", human.Plural(e.Done, "job"), e.Never)
	}
	if e.Saved != nil {
		text += fmt.Sprintf(" (%s more without max_wait)", human.Dollars(*e.Saved))
	}
	const most = 3
	assuming := fmt.Sprintf(", assuming %dh%s for ", int(preview.AssumedTime.Hours()), map[bool]string{true: " or the timeout"}[e.Capped])
	switch n := len(e.Assumed); {
	case n == 0:
		return text + ", if jobs run as long as expected"
	case n > most:
		return text + assuming + fmt.Sprintf("each of the %d jobs that do not set expected", n)
	}
	return text + assuming + strings.Join(e.Assumed, ", ") + "; set expected for a better estimate"
}
