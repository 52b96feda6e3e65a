package main

import (
	"cmp"
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"drover"
	"drover/internal/config"
	"drover/internal/pack"
)

func (a *app) planCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "plan [flags] {BATCH.yaml | -- CMD ARG…}",
		Short: "Say what run or submit would rent now, and what that would cost",
		Example: `  drover plan examples/mandelbrot.yaml
  drover plan --array 1000 --vcpus 2 -c drover.yaml -- ./simulate
  drover plan --max-cost 5 --array 1000 -- ./simulate`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.plan(cmd.Context(), f, args)
		},
	}
	f.jobFlags.add(cmd.Flags())
	cmd.Flags().StringVar(&f.cost, "max-cost", "", "rent nothing that would take the run over this many `dollars`")
	cmd.Flags().IntVar(&f.limits.MaxInstances, "max-instances", 0, "never more than `N` instances at once")
	cmd.Flags().StringVar(&f.limits.Cloud, "cloud", "", "use only this `cloud` of the configuration")
	cmd.Flags().StringVar(&f.spot, "spot", "", "`prefer`, require or never, for every job of the batch")
	cmd.ValidArgsFunction = completeBatch
	complete(cmd, "cloud", a.completeClouds)
	complete(cmd, "spot", completeWords("prefer", "require", "never"))
	return cmd
}

// planned is one kind of instance that a plan rents.
type planned struct {
	Cloud     string        `json:"cloud"`
	Zone      string        `json:"zone"`
	Type      string        `json:"type"`
	Market    drover.Market `json:"market"`
	Instances int           `json:"instances"`
	Jobs      int           `json:"jobs"`               // that start at once
	Price     float64       `json:"price_usd_per_hour"` // of each
}

// planReport is what `drover plan` prints.
type planReport struct {
	Batch   string    `json:"batch"`
	Rent    []planned `json:"rent"`
	Hourly  float64   `json:"usd_per_hour"`
	Ready   int       `json:"ready"`   // jobs that wait for no other
	Later   int       `json:"later"`   // jobs that wait for others
	Waiting int       `json:"waiting"` // ready jobs that find no place at once
	Why     string    `json:"why,omitempty"`
}

// plan answers what would be rented for the jobs that may start at once.
func (a *app) plan(ctx context.Context, f runFlags, args []string) error {
	p, c, err := a.prepare(ctx, f, args)
	if err != nil {
		return err
	}
	all, err := a.offeringsOf(ctx, c)
	if err != nil {
		return err
	}
	problem, later := problemOf(p, c, all)
	r := report(p.Batch.Name, problem, withinCost(p, problem, pack.Solve(problem)))
	r.Later = later
	if a.forPrograms() {
		return a.print(r)
	}
	a.printPlan(r)
	return nil
}

// problemOf is the problem that the engine would pose for a batch at its start, and how many of its jobs are not in it because they wait
// for others.
func problemOf(p runPlan, c *config.Config, all []drover.Offering) (problem drover.Problem, later int) {
	problem = drover.Problem{Offerings: all, Room: p.Limits.MaxInstances, Steps: 1_000_000}
	total := 0
	for _, cloud := range c.Clouds {
		problem.Clouds = append(problem.Clouds, drover.CloudRoom{Cloud: cloud.Name, Room: cloud.MaxInstances})
		total += cloud.MaxInstances
	}
	if problem.Room == 0 || problem.Room > total {
		problem.Room = total
	}
	for _, j := range p.Batch.Jobs {
		if len(j.After) > 0 {
			later += j.Array.Size()
			continue
		}
		problem.Demands = append(problem.Demands, drover.Demand{
			Shape: drover.Shape{Need: j.Resources, Placement: j.Placement, Spot: j.Spot}, Count: j.Array.Size(),
		})
	}
	return problem, later
}

// withinCost is as much of a plan as the run's limit on money admits: each instance counts with its price up to the end of the longest job
// that it is rented for.
func withinCost(p runPlan, problem drover.Problem, plan drover.Plan) drover.Plan {
	if p.Limits.MaxCost == 0 {
		return plan
	}
	times := jobTimes(p.Batch)
	left := p.Limits.MaxCost
	affordable := plan
	affordable.Purchases = nil
	for _, buy := range plan.Purchases {
		longest := time.Duration(0)
		for _, l := range buy.Loads {
			longest = max(longest, times[l.Demand])
		}
		cost := problem.Offerings[buy.Candidates[0]].Price.For(longest)
		if cost <= left {
			left -= cost
			affordable.Purchases = append(affordable.Purchases, buy)
			continue
		}
		for _, l := range buy.Loads {
			affordable.Unmet = append(affordable.Unmet, drover.Unmet{
				Demand: l.Demand, Count: l.Count, Code: drover.ReasonBudget, Text: fmt.Sprintf("more would pass the limit of %v", p.Limits.MaxCost),
			})
		}
	}
	return affordable
}

// jobTimes is how long the jobs that wait for no other may take at most; those that do not say count as an hour.
func jobTimes(b drover.Batch) (times []time.Duration) {
	for _, j := range b.Jobs {
		if len(j.After) == 0 {
			times = append(times, cmp.Or(j.Timeout, time.Hour))
		}
	}
	return times
}

func report(batch string, problem drover.Problem, plan drover.Plan) planReport {
	r := planReport{Batch: batch, Rent: []planned{}}
	at := map[int]int{}
	for _, buy := range plan.Purchases {
		o := problem.Offerings[buy.Candidates[0]]
		i, ok := at[buy.Candidates[0]]
		if !ok {
			i = len(r.Rent)
			at[buy.Candidates[0]] = i
			r.Rent = append(r.Rent, planned{Cloud: o.Cloud, Zone: o.Zone, Type: o.Type.Name, Market: o.Market, Price: o.Price.USD()})
		}
		r.Rent[i].Instances++
		r.Hourly += o.Price.USD()
		for _, l := range buy.Loads {
			r.Rent[i].Jobs += l.Count
		}
	}
	for _, d := range problem.Demands {
		r.Ready += d.Count
	}
	for _, u := range plan.Unmet {
		r.Waiting += u.Count
		r.Why = u.Text
	}
	return r
}

func (a *app) printPlan(r planReport) {
	w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "CLOUD\tZONE\tTYPE\tMARKET\tINSTANCES\tJOBS AT ONCE\tUSD/HOUR EACH")
	for _, p := range r.Rent {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%.4f\n", p.Cloud, p.Zone, p.Type, p.Market, p.Instances, p.Jobs, p.Price)
	}
	w.Flush()
	fmt.Fprintf(a.out, "%s: $%.4f an hour while all of them run\n", r.Batch, r.Hourly)
	if r.Waiting > 0 {
		fmt.Fprintf(a.out, "%d of %d jobs wait for a place: %s\n", r.Waiting, r.Ready, r.Why)
	}
	if r.Later > 0 {
		fmt.Fprintf(a.out, "%d more jobs wait for others to succeed\n", r.Later)
	}
}
