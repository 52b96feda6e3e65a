package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"drover"
	"drover/internal/config"
	"drover/internal/daemon"
	"drover/internal/engine/pool"
	"drover/internal/simulate"
	"drover/internal/trace"
)

// simulateFlags are the flags of `drover simulate`.
type simulateFlags struct {
	compare  []string
	policies []string
	memory   string
	spot     string
	expected string
	maxWait  time.Duration
	seed     uint64
	boot     time.Duration
	taken    string
	chart    string
	csv      string
	recorded string // how far back to read records
	pools    time.Duration
	full     string
}

func (a *app) simulateCommand() *cobra.Command {
	var f simulateFlags
	cmd := &cobra.Command{
		Use:   "simulate [flags] {TRACE | --recorded SINCE | --for TIME}",
		Short: "Simulate a configuration against a recorded workload",
		Long: `Simulate a configuration against a recorded workload. Show how long jobs would have waited, which
instances Drover would have rented, and their cost. The controller's own engine makes the decisions,
in simulated time; nothing is rented.

TRACE is a file from the Parallel Workloads Archive (.swf) or a table of jobs (.csv), optionally
compressed (.gz). docs/simulate.md describes both formats, the model and the figures. --recorded uses
a controller's records instead, and also shows what really happened. --for TIME simulates the
configuration's pools for that long, with or without a TRACE.`,
		Example: `  drover simulate -c drover.yaml jobs.csv
  drover simulate --catalogue ec2-us-east-1.csv --policy drover,one-per-job --chart fleet.svg NASA-iPSC-1993-3.1-cln.swf.gz
  drover simulate --compare small.yaml,large.yaml jobs.csv
  drover simulate -c drover.yaml --recorded 7d --compare edited.yaml
  drover simulate -c pools.yaml --for 720h --interruptions 10%`,
		Args: func(cmd *cobra.Command, args []string) error {
			if f.recorded != "" {
				return wantArgs(0, 0, "")(cmd, args)
			}
			if f.pools != 0 {
				return wantArgs(0, 1, "a trace file")(cmd, args)
			}
			return wantArgs(1, 1, "a trace file")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.simulate(cmd.Context(), f, cmd.Flags(), strings.Join(args, ""))
		},
	}
	flags, models := cmd.Flags(), simulate.DefaultModels
	flags.StringSliceVar(&f.compare, "compare", nil, "compare the configurations `a.yaml,b.yaml` side by side")
	flags.StringSliceVar(&f.policies, "policy", []string{string(simulate.Drover)}, "`policies` to simulate: drover, or the simpler one-per-job, reuse and first-fit")
	a.addCatalogue(flags)
	flags.StringVar(&f.memory, "memory-per-vcpu", "2Gi", "how much `memory` a job needs for each vCPU, if the trace does not say")
	flags.StringVar(&f.spot, "spot", "", "spot `mode` of every job: prefer, require or never")
	flags.Uint64Var(&f.seed, "seed", models.Seed, "seed for boot times, interruptions and spot prices")
	flags.DurationVar(&f.boot, "boot", models.Boot, "the median boot time")
	flags.StringVar(&f.taken, "interruptions", "0.5%", "the `share` of running spot instances that are interrupted within an hour")
	flags.DurationVar(&f.pools, "for", 0, "simulate the configuration's pools for this long")
	flags.StringVar(&f.full, "exhausted", "0%", "the `share` of the time during which a zone has no capacity, in half-hour periods")
	flags.StringVar(&f.chart, "chart", "", "write a chart of the fleet, the queue and the cost over time to `FILE.svg`")
	flags.StringVar(&f.csv, "csv", "", "write the chart's data to `FILE.csv`")
	flags.StringVar(&f.expected, "expected", string(simulate.ExpectNothing), "`kind` of expected run time that jobs declare: none, requested (from the trace) or actual (the true run time)")
	flags.DurationVar(&f.maxWait, "max-wait", 0, "how long every job may wait for room on a running instance, beyond the time a new one takes to boot")
	flags.StringVar(&f.recorded, "recorded", "", "simulate the controller's records since this `time`: a date, a time, or how long ago (7d)")
	complete(cmd, "expected", completeWords(simulate.Expectations...))
	complete(cmd, "spot", completeWords("prefer", "require", "never"))
	complete(cmd, "policy", completeWords(simulate.Policies...))
	return cmd
}

// simulate runs every policy on every configuration, and prints the results side by side.
func (a *app) simulate(ctx context.Context, f simulateFlags, flags *pflag.FlagSet, path string) error {
	models, policies, err := f.check()
	if err != nil {
		return err
	}
	if len(f.compare) == 0 || flags.Changed("config") {
		f.compare = slices.Insert(f.compare, 0, a.config)
	}
	if err := f.sparesInputs(append(a.lists.files(), append(f.compare, path)...)); err != nil {
		return err
	}
	t, results, err := a.workload(ctx, f, path, &models)
	if err != nil {
		return err
	}
	began := time.Now()
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // it makes a lot of short-lived garbage, and little memory is live
	for _, file := range f.compare {
		in, err := a.simulated(ctx, file, models)
		if err != nil {
			return err
		}
		if in.For = f.pools; f.pools > 0 && len(in.Settings.Pools) == 0 {
			return drover.Errorf(drover.KindInvalid, "--for: %s has no pools", cmp.Or(file, "the configuration"))
		}
		if f.recorded != "" && f.pools == 0 {
			in.For = maintained(in, t)
		}
		in.Trace, in.Spot, in.Expected = t, drover.SpotPolicy(f.spot), simulate.Expected(f.expected)
		in.MaxWait = f.maxWait
		if in.MemoryPerCPU, err = config.ParseSize(f.memory); err != nil {
			return fmt.Errorf("--memory-per-vcpu: %w", err)
		}
		if in.MemoryPerCPU > drover.TiB {
			return drover.Errorf(drover.KindInvalid, "--memory-per-vcpu %s is more than 1Ti", f.memory)
		}
		for _, p := range policies {
			r, err := simulate.Run(ctx, in, p)
			if err == nil {
				err = r.Saves(ctx, in)
			}
			if err != nil {
				return err
			}
			if len(f.compare) > 1 || f.recorded != "" {
				r.Configuration = filepath.Base(cmp.Or(file, "this computer"))
			}
			results = append(results, r)
		}
	}
	fmt.Fprintf(a.err, "%s: simulated in %v\n", t.Name, time.Since(began).Round(10*time.Millisecond))
	show := a.printSimulated
	if a.forPrograms() {
		show = func(results []*simulate.Result) error { return a.print(results) }
	}
	return errors.Join(show(results), f.draw(a.chartTitle(f, t), results))
}

// check rejects flags that make no sense.
func (f simulateFlags) check() (m simulate.Models, policies []simulate.Policy, err error) {
	m = simulate.Models{Seed: f.seed, Boot: f.boot}
	for _, name := range f.policies {
		p := simulate.Policy(name)
		if !slices.Contains(simulate.Policies, p) {
			return m, nil, drover.Errorf(drover.KindInvalid, "--policy %s is not valid", name).WithHint("use drover, one-per-job, reuse or first-fit, or several separated by commas")
		}
		if !slices.Contains(policies, p) {
			policies = append(policies, p)
		}
	}
	if len(policies) == 0 {
		return m, nil, drover.Errorf(drover.KindInvalid, "--policy names no policy").WithHint("use drover, one-per-job, reuse or first-fit, or several separated by commas")
	}
	if err := overrideSpot(&drover.Batch{}, f.spot); err != nil {
		return m, nil, err
	}
	if !slices.Contains(simulate.Expectations, simulate.Expected(f.expected)) {
		return m, nil, drover.Errorf(drover.KindInvalid, "--expected %s is not valid", f.expected).WithHint("use none, requested or actual")
	}
	if f.maxWait < 0 {
		return m, nil, drover.Errorf(drover.KindInvalid, "--max-wait is %v, but must not be negative", f.maxWait)
	}
	if f.pools < 0 || f.pools > simulate.MostTime {
		return m, nil, drover.Errorf(drover.KindInvalid, "--for %v is not between 0 and 50 years", f.pools)
	}
	for _, file := range []struct{ flag, path string }{{"chart", f.chart}, {"csv", f.csv}} {
		if _, err := os.Stat(filepath.Dir(file.path)); err != nil {
			return m, nil, drover.Errorf(drover.KindInvalid, "--%s: %v", file.flag, err)
		}
	}
	if f.boot < 0 || f.boot > 24*time.Hour {
		return m, nil, drover.Errorf(drover.KindInvalid, "--boot %v is not between 0 and 24h", f.boot)
	}
	if m.Interrupted, err = parseShare("interruptions", f.taken, "use 0.5% for one in 200 instances per hour"); err != nil {
		return m, nil, err
	}
	m.Exhausted, err = parseShare("exhausted", f.full, "use 2% for half an hour per day")
	return m, policies, err
}

// sparesInputs rejects an output file that is one of the inputs, or the other output.
func (f simulateFlags) sparesInputs(inputs []string) error {
	for _, into := range []struct {
		flag, path string
		others     []string
	}{{"chart", f.chart, inputs}, {"csv", f.csv, append(inputs, f.chart)}} {
		if into.path != "" && slices.ContainsFunc(into.others, func(path string) bool { return samePath(path, into.path) }) {
			return drover.Errorf(drover.KindInvalid, "--%s would overwrite %s, which this command also uses", into.flag, into.path).WithHint("name another file")
		}
	}
	return nil
}

// parseShare parses a share, such as 0.5%.
func parseShare(flag, text, hint string) (float64, error) {
	number, percent := strings.CutSuffix(text, "%")
	share, err := strconv.ParseFloat(number, 64)
	if percent {
		share /= 100
	}
	if err != nil || !(share >= 0 && share <= 0.9) {
		return 0, drover.Errorf(drover.KindInvalid, "--%s %s is not between 0 and 90%%", flag, text).WithHint("%s", hint)
	}
	return share, nil
}

// trace reads the workload, which must have everything that the flags use.
func (f simulateFlags) trace(path string) (*trace.Trace, error) {
	if path == "" {
		return &trace.Trace{Name: "pools"}, nil
	}
	t, err := trace.Open(path)
	if err != nil || f.expected != string(simulate.AsRequested) {
		return t, err
	}
	if !slices.ContainsFunc(t.Jobs, func(j trace.Job) bool { return j.Expected > 0 }) {
		return nil, drover.Errorf(drover.KindInvalid, "--expected requested: %s has no expected times", path).
			WithHint("they are in field 9 of a .swf or the expected column of a .csv; --expected actual uses the true run times")
	}
	return t, nil
}

// simulated returns the input of a simulation from a configuration.
func (a *app) simulated(ctx context.Context, file string, m simulate.Models) (in simulate.Input, err error) {
	c, err := a.listedConfig(file, "", a.lists)
	if err != nil {
		return in, err
	}
	offerings, _, err := a.listedOfferings(ctx, c, m)
	if err != nil {
		return in, err
	}
	return inputOf(c, cmp.Or(file, "the price list"), offerings, m)
}

// inputOf returns the input of a simulation from a configuration and its clouds' offerings.
func inputOf(c *config.Config, name string, offerings []drover.Offering, m simulate.Models) (in simulate.Input, err error) {
	if len(offerings) == 0 {
		return in, drover.Errorf(drover.KindInvalid, "%s offers no instance types", name).WithHint("the types: filters of its clouds may exclude all of them")
	}
	if limit := c.Instances.BootTimeout; m.Boot > limit { // instances would fail to boot for ever
		return in, drover.Errorf(drover.KindInvalid, "the median boot time, %v, exceeds the boot_timeout of %s, %v", m.Boot, name, limit).
			WithHint("raise instances.boot_timeout; drover simulate --boot sets the boot time")
	}
	simulate.Sort(offerings)
	in = simulate.Input{Models: m, Offerings: offerings, Settings: daemon.Settings(c, daemon.RunLimits{}), Scheduled: scheduled(c)}
	for i := range in.Settings.Clouds {
		in.Settings.Clouds[i].Billing.Least = simulate.LeastBilled
	}
	return in, nil
}

// scheduled makes a simulation follow the schedules of a configuration's pools.
func scheduled(c *config.Config) func(drover.Time) ([]pool.Spec, drover.Time) {
	return func(now drover.Time) ([]pool.Spec, drover.Time) {
		then, next := c.At(now.Std())
		pools := daemon.Settings(then, daemon.RunLimits{}).Pools
		if next.IsZero() {
			return pools, 0
		}
		return pools, drover.TimeOf(next)
	}
}
