package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"drover"
	"drover/internal/config"
	"drover/internal/daemon"
)

// runFlags are the flags of `drover run`.
type runFlags struct {
	jobFlags
	limits  daemon.RunLimits
	cost    string
	spot    string
	dryRun  bool
	resume  string
	out     string
	failed  bool
	trust   bool
	cancel  bool
	notify  string
	verbose bool
	ui      bool

	repeated []string // for a resumed run: flags that must have the same values as at its start
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run [flags] {BATCH.yaml | -- CMD ARG…}",
		Short: "Run a batch or a command on instances of its own, without a controller",
		Long: `Run a batch or a command: rent instances, run the jobs, fetch the results, destroy the instances,
and print the cost. Everything happens in this process. If it is killed, 'drover run --resume ID'
continues.

Logs and outputs go to ./drover-out/BATCH/.

Ctrl-C stops the run: running jobs get SIGTERM, and SIGKILL after term_timeout, and the instances
are destroyed. 'drover run --resume' then runs every job that is not final. A second Ctrl-C exits
immediately and prints the command that cleans up. SIGTERM, SIGHUP and a closed terminal detach:
running jobs keep running, and 'drover run --resume' collects their results. With
--cancel-on-interrupt, each of these signals cancels the remaining jobs instead. In all these cases,
the exit code is 130.`,
		Example: `  drover run examples/mandelbrot.yaml
  drover run -- sh -c 'echo hello from $(hostname)'
  drover run --array 100 --vcpus 2 --memory 4Gi -- ./simulate --seed-from-env
  drover run --resume                    # the last run started in this folder
  drover run --resume run-x7k2pq
  drover run --resume --failed           # rerun failed jobs, once the cause is fixed`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("resume") {
				args, err := f.whichRun(a, cmd, args)
				if err != nil {
					return err
				}
				if err := f.onlyResumes(cmd.Flags(), args); err != nil {
					return err
				}
			} else if f.failed {
				return drover.Errorf(drover.KindInvalid, "--failed needs a run that has ended").WithHint("use --resume ID --failed")
			} else if f.trust {
				return drover.Errorf(drover.KindInvalid, "--trust-records needs --resume: a new run has no records").WithHint("use --trust-records together with --resume ID")
			}
			return a.runBatch(cmd.Context(), f, args)
		},
	}
	flags := cmd.Flags()
	f.add(a, cmd)
	flags.BoolVar(&f.dryRun, "dry-run", false, "only print what would be rented, as drover plan does")
	flags.DurationVar(&f.limits.Keep, "keep", 0, "keep the instances of failed jobs this long, for inspection")
	flags.StringVar(&f.resume, "resume", "", "resume the run with this `ID`; without one, the last run started in this folder")
	flags.Lookup("resume").NoOptDefVal = lastOfFolder
	flags.StringVar(&f.out, "out", "drover-out", "write the results under this `folder`")
	flags.BoolVar(&f.failed, "failed", false, "with --resume: rerun failed and cancelled jobs with the current batch file and inputs")
	trustFlag(cmd, &f.trust)
	flags.StringVar(&f.notify, "notify", "", "post a message to this `URL` when all jobs are final: Slack, ntfy, or your own program, which receives JSON")
	flags.BoolVar(&f.cancel, "cancel-on-interrupt", false, "Ctrl-C, SIGTERM and SIGHUP cancel the remaining jobs and destroy the instances; useful in CI")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "show everything that happens")
	flags.BoolVar(&f.ui, "ui", false, "print a link that shows the run in a browser")
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if f.resume == lastOfFolder {
			return completeRuns(cmd, args, typed)
		}
		return completeBatch(cmd, args, typed)
	}
	complete(cmd, "resume", completeRuns)
	return cmd
}

// add adds the flags of what is run and what may be rented for it.
func (f *runFlags) add(a *app, cmd *cobra.Command) {
	f.jobFlags.add(cmd.Flags())
	cmd.Flags().StringVar(&f.cost, "max-cost", "", "rent nothing that could make the run cost more than this many `dollars`")
	cmd.Flags().IntVar(&f.limits.MaxInstances, "max-instances", 0, "at most `N` instances at once; 0: no limit")
	cmd.Flags().StringVar(&f.limits.Cloud, "cloud", "", "use only this `cloud` of the configuration")
	complete(cmd, "cloud", a.completeClouds)
	addSpot(cmd, &f.spot)
}

// addSpot adds the flag that sets the spot mode of every job.
func addSpot(cmd *cobra.Command, spot *string) {
	cmd.Flags().StringVar(spot, "spot", "", "spot `mode` for all jobs: prefer, require or never")
	complete(cmd, "spot", completeWords("prefer", "require", "never"))
}

// lastOfFolder is the value of --resume without an ID.
const lastOfFolder = "last"

// whichRun determines which run is resumed, and returns the remaining arguments.
func (f *runFlags) whichRun(a *app, cmd *cobra.Command, args []string) (rest []string, err error) {
	switch {
	case f.resume != lastOfFolder:
	case len(args) > 0 && cmd.ArgsLenAtDash() != 0:
		f.resume, args = args[0], args[1:]
	default:
		here, err := os.Getwd()
		if err != nil {
			return nil, err
		}
		f.resume, err = a.lastRun(cmd.Context(), here, f.failed)
		return args, err
	}
	return args, nil
}

// onlyResumes rejects flags that a resumed run would ignore: it continues with its original ones. Flags that the run
// recorded may be repeated, and are compared once the run is found.
func (f *runFlags) onlyResumes(flags *pflag.FlagSet, args []string) error {
	if f.resume == "" {
		return drover.Errorf(drover.KindInvalid, "--resume needs the ID of a run").WithHint("drover runs lists the runs you can resume")
	}
	extra := strings.Join(args, " ")
	flags.Visit(func(flag *pflag.Flag) {
		switch {
		case slices.Contains([]string{"config", "out", "cloud", "max-instances", "max-cost", "keep"}, flag.Name):
			f.repeated = append(f.repeated, flag.Name)
		case !slices.Contains([]string{"resume", "failed", "trust-records", "cancel-on-interrupt", "verbose", "ui", "output"}, flag.Name):
			extra = "--" + flag.Name
		}
	})
	if extra == "" {
		return nil
	}
	return drover.Errorf(drover.KindInvalid, "a run keeps its original flags: %s has no effect", extra).WithHint("drover run --resume %s", f.resume)
}

func (a *app) runBatch(ctx context.Context, f runFlags, args []string) error {
	if f.dryRun {
		return a.plan(ctx, f, args)
	}
	folder, p, err := a.beginRun(ctx, f, args)
	if err != nil {
		return err
	}
	defer folder.Close()
	c, err := a.loadConfig(p.Config, p.Limits.Cloud)
	if err != nil {
		return err
	}
	return a.drive(ctx, folder, p, c, f)
}

// beginRun makes every possible check and records the run, or finds the one to resume. Nothing is rented yet.
func (a *app) beginRun(ctx context.Context, f runFlags, args []string) (*daemon.RunFolder, daemon.RunPlan, error) {
	if f.failed {
		return a.redo(ctx, f)
	}
	if f.resume != "" {
		folder, err := daemon.FindRunFolder(f.resume)
		if err != nil {
			return nil, daemon.RunPlan{}, err
		}
		p, err := folder.Load()
		if err == nil {
			err = f.asBegun(a.config, p)
		}
		if err != nil {
			folder.Close()
		}
		return folder, p, err
	}
	p, c, err := a.prepare(ctx, f, args)
	if err != nil {
		return nil, p, err
	}
	if len(c.Pools) > 0 || c.PoolsFrom.Cloud != "" {
		return nil, p, c.Fault("pools", "drover run does not maintain pools", "use drover serve, which maintains pools, and drover submit")
	}
	folder, err := daemon.NewRunFolder()
	if err != nil {
		return nil, p, err
	}
	p.Began = time.Now()
	if err := folder.Save(p); err != nil {
		return nil, p, errors.Join(err, folder.Remove(), folder.Close())
	}
	return folder, p, nil
}

// prepare reads what to run and where, and rejects what cannot work before anything is created.
func (a *app) prepare(ctx context.Context, f runFlags, args []string) (p daemon.RunPlan, c *config.Config, err error) {
	if c, err = a.listedConfig(a.config, f.limits.Cloud, a.lists); err != nil {
		return p, nil, err
	}
	w, err := f.work(args)
	if err != nil {
		return p, nil, err
	}
	if err := f.limits.Check(); err != nil {
		return p, nil, err
	}
	p = daemon.RunPlan{Batch: w.batch, Limits: f.limits, Spot: f.spot, New: true, Streamed: w.streamed}
	if w.file != nil {
		if p.File, err = filepath.Abs(args[0]); err != nil {
			return p, nil, err
		}
	}
	if p.Limits.MaxCost, err = parseCost(f.cost); err != nil {
		return p, nil, err
	}
	if err := overrideSpot(&p.Batch, f.spot); err != nil {
		return p, nil, err
	}
	if f.notify != "" {
		if err := config.CheckNotify(f.notify); err != nil {
			return p, nil, err
		}
		p.Batch.Notify = &drover.Notify{URL: f.notify, On: []string{drover.NotifyFinal}}
	}
	if p.Folder, err = os.Getwd(); err != nil {
		return p, nil, err
	}
	if a.config != "" {
		if p.Config, err = filepath.Abs(a.config); err != nil {
			return p, nil, err
		}
	}
	if p.Out, err = filepath.Abs(filepath.Join(f.out, p.Batch.Name)); err != nil {
		return p, nil, err
	}
	if err := checkInputs(p.Batch); err != nil {
		return p, nil, err
	}
	return p, c, a.checkFits(ctx, c, w, p.Batch)
}

func parseCost(text string) (drover.Money, error) {
	if text == "" {
		return 0, nil
	}
	m, err := drover.ParseMoney(text)
	if err != nil || m == 0 {
		return 0, drover.Errorf(drover.KindInvalid, "--max-cost %s is not a dollar amount above zero", text).WithHint("use --max-cost 5 or --max-cost 0.25")
	}
	return m, nil
}

func overrideSpot(b *drover.Batch, spot string) error {
	switch policy := drover.SpotPolicy(spot); policy {
	case "":
	case drover.SpotPrefer, drover.SpotRequire, drover.SpotNever:
		for i := range b.Jobs {
			b.Jobs[i].Spot = policy
		}
	default:
		return drover.Errorf(drover.KindInvalid, "--spot %s is not valid", spot).WithHint("use prefer, require or never")
	}
	return nil
}

// drive runs the run to its end and prints the result.
func (a *app) drive(ctx context.Context, folder *daemon.RunFolder, p daemon.RunPlan, c *config.Config, f runFlags) error {
	ui := a.newProgress(p, mostInstances(daemon.Settings(c, p.Limits)), f.verbose)
	defer ui.close()
	fl, err := daemon.OpenFleet(ctx, daemon.FleetOptions{
		Program: a.program,
		Fleet:   folder.ID, Config: c, Limits: p.Limits, DB: folder.File("drover.db"), File: folder.File,
		Results: p.Out, Kept: keptOf(p), Trust: f.trust, Log: ui.log(), Left: daemon.NoneLeft,
		Accepted: func() error { return setAside(folder, &p, ui) },
	})
	if err != nil && folder.Fresh {
		return errors.Join(err, folder.Remove())
	}
	if err != nil {
		return err
	}
	defer fl.Close()
	if folder.Fresh && !p.Streamed {
		ui.say("run %s started; if it is killed, resume it: drover run --resume %s", folder.ID, folder.ID)
	}
	s := &session{app: a, fleet: fl, svc: fl.Controller, folder: folder, plan: p, config: c, ui: ui, cancelOnInterrupt: f.cancel, browsed: f.ui}
	sum, err := s.run(ctx)
	if err != nil {
		return err
	}
	ui.close()
	if s.stopped {
		return s.tellStopped(sum)
	}
	unsaid := a.summarize(ctx, s, sum)
	fl.Close()
	failed := sum.Failed+sum.Cancelled > 0
	if err := errors.Join(unsaid, folder.Finish(failed)); err != nil {
		return err
	}
	err = s.verdict(sum)
	if err != nil && !p.Streamed {
		fmt.Fprintf(a.err, "to see what led to this: drover replay %s\n", folder.ID)
	}
	if failed && !p.Streamed {
		fmt.Fprintf(a.err, "to rerun failed jobs: drover run --resume %s --failed\n", folder.ID)
	}
	return err
}
