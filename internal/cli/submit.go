package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"drover"
)

// submitFlags are the flags of `drover submit`.
type submitFlags struct {
	jobFlags
	spot   string
	key    string
	user   string
	wait   bool
	follow bool
}

func (a *app) submitCommand() *cobra.Command {
	var f submitFlags
	cmd := named(&cobra.Command{
		Use:   "submit [flags] {BATCH.yaml | -- CMD ARG…}",
		Short: "Submit a batch or a command to the controller",
		Long: `Submit a batch or a command to the controller, and upload the inputs that it does not have. When
drover submit returns, the jobs are in the queue and survive a crash of the controller.

A submission repeated with the same --key is accepted only once.`,
		Example: `  drover submit examples/hello.yaml
  drover submit --array 1-1000 --vcpus 2 --memory 4Gi --label project=demo -- ./simulate --seed-from-env
  drover submit --array 8 --gang 4 -- sh -c 'echo $DROVER_GANG_INDEX of $DROVER_GANG_SIZE in gang $DROVER_GANG'
  drover submit --wait examples/mandelbrot.yaml
  drover submit --follow -- sh -c 'echo hello from $(hostname)'`,
		RunE: a.ask(func(ctx context.Context, svc drover.Service, args []string) error {
			return a.submit(ctx, svc, f, args)
		}),
	})
	flags := cmd.Flags()
	f.jobFlags.add(flags)
	addSpot(cmd, &f.spot)
	flags.StringVar(&f.user, "user", "", "submit for this `user` (administrators only); default: the token's user")
	flags.StringVar(&f.key, "key", "", "an idempotency `key` of your choice: each key is accepted only once")
	flags.BoolVar(&f.wait, "wait", false, "wait until every job is final, as drover wait does")
	flags.BoolVar(&f.follow, "follow", false, "show the output of the batch's only job as it is written, and wait until the job ends")
	a.addPatience(cmd)
	cmd.ValidArgsFunction = completeBatch
	return cmd
}

func (a *app) submit(ctx context.Context, svc drover.Service, f submitFlags, args []string) error {
	w, err := f.work(args)
	if err != nil {
		return err
	}
	if err := overrideSpot(&w.batch, f.spot); err != nil {
		return err
	}
	if f.follow && (len(w.batch.Jobs) != 1 || w.batch.Jobs[0].Array.Set) {
		return drover.Errorf(drover.KindInvalid, "--follow shows the output of one job, but this batch has several").WithHint("use --wait, then drover logs JOB")
	}
	w.batch.User = f.user
	if err := a.upload(ctx, svc, &w.batch); err != nil {
		return err
	}
	key := cmp.Or(f.key, rand.Text()) // makes it safe to repeat a call that got no answer
	receipt, err := svc.Submit(ctx, drover.Submission{Batch: w.batch, Key: key})
	if err != nil {
		return err
	}
	if err := a.printReceipt(receipt, f.follow); err != nil {
		return err
	}
	return a.see(ctx, svc, f, receipt)
}

// see follows what was submitted as long as the flags request.
func (a *app) see(ctx context.Context, svc drover.Service, f submitFlags, receipt drover.Receipt) error {
	var ids []drover.JobID
	for _, j := range receipt.Jobs {
		ids = append(ids, j.ID)
	}
	if f.follow {
		if err := a.follow(ctx, svc, ids[0], a.streams(), logsFlags{tail: -1}); err != nil {
			if ctx.Err() != nil {
				a.goesOn(ids[:1])
			}
			return err
		}
	}
	if f.follow || f.wait {
		return a.waitFor(ctx, svc, ids, waitFlags{quiet: f.follow})
	}
	return nil
}

// streams is where a job's output goes: if a program reads standard output, only the receipt goes there.
func (a *app) streams() streams {
	if a.forPeople() {
		return streams{a.out, a.err}
	}
	return streams{a.err, a.err}
}

// printReceipt prints the jobs' numbers. If standard output has the job's output, it prints them to standard error.
func (a *app) printReceipt(r drover.Receipt, beside bool) error {
	out := a.out
	switch {
	case a.forPrograms():
		return a.print(r)
	case a.output == outputName:
		for _, j := range r.Jobs {
			fmt.Fprintln(out, j.ID)
		}
		return nil
	case beside:
		out = a.err
	}
	fmt.Fprintln(out, drover.Sanitize(fmt.Sprintf("submitted batch %s: %s", r.Batch, listed(r.Jobs))))
	return nil
}

// manyJobs is the smallest number of jobs for which only their numbers are printed.
const manyJobs = 8

// listed formats jobs for people. A batch's numbers are consecutive.
func listed(jobs []drover.SubmittedJob) string {
	if n := len(jobs); n >= manyJobs {
		return fmt.Sprintf("%d jobs, %v to %v", n, jobs[0].ID, jobs[n-1].ID)
	}
	var list []string
	for _, j := range jobs {
		text := fmt.Sprintf("job %v %s", j.ID, j.Name)
		if j.Elements > 1 {
			text += fmt.Sprintf(" (%d)", j.Elements)
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}
