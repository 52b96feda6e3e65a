package benchfleet

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"drover"
	"drover/internal/engine"
)

// Workload is the jobs to run and the cloud to run them on.
type Workload struct {
	Jobs  int           // each a separate job, of 1 to 8 vCPUs in turn
	Quota int           // instances at once; create calls beyond it are refused
	Boot  time.Duration // of an instance
	Work  time.Duration // of a job
}

// Result is the outcome of a workload.
type Result struct {
	Elapsed   time.Duration // from before the jobs' submission until the last was final in the records
	CPU       time.Duration // user and system time of this process in that time, including its instances
	Instances int           // number of created instances
	Refused   int           // create calls over the quota
	Paid      time.Duration // vCPU time of instances until the last was gone
	Useful    time.Duration // vCPU time of jobs
	Peak      int64         // the peak resident memory of this process in bytes
}

// Run runs a workload in a folder that it leaves to its caller. It returns an error if a job did not succeed, ran
// twice, or ran on an instance without room for it.
func Run(ctx context.Context, folder string, w Workload) (r Result, err error) {
	f := &fleet{tally: newTally(w.Work)}
	f.cloud = newCloud(w.Quota, w.Boot, f.tally)
	defer func() { err = errors.Join(err, f.close()) }()
	if err := f.open(ctx, folder); err != nil {
		return r, err
	}
	began, used := time.Now(), processTime()
	if err := f.submit(ctx, w.Jobs); err != nil {
		return r, err
	}
	if err := f.finish(ctx, w.Jobs); err != nil {
		return r, err
	}
	r.Elapsed, r.CPU = time.Since(began), processTime()-used
	if err := f.leave(ctx); err != nil {
		return r, err
	}
	r.Instances, r.Refused, r.Paid = f.cloud.sum()
	r.Useful, err = f.judge(w.Jobs)
	r.Peak = peakMemory()
	return r, err
}

// submit submits jobs of 1 to 8 vCPUs in turn.
func (f *fleet) submit(ctx context.Context, jobs int) error {
	batch := drover.Batch{Name: "bench"}
	for i := range jobs {
		n := 1 + i%8
		batch.Jobs = append(batch.Jobs, drover.JobSpec{
			Name: "job" + strconv.Itoa(i), Command: []string{"true"}, Priority: 1, Attempts: 3, Spot: drover.SpotNever,
			Resources: drover.Resources{CPU: drover.MilliCPU(n) * 1000, Memory: drover.Bytes(n) * drover.GiB / 2, Disk: drover.GiB / 4},
		})
	}
	_, err := f.controller.Submit(ctx, drover.Submission{Batch: batch})
	return err
}

// glance is the polling interval.
const glance = 5 * time.Millisecond

// finish returns once every job is final.
func (f *fleet) finish(ctx context.Context, jobs int) error {
	return f.until(ctx, func() (bool, error) {
		counts, err := f.store.Counts(ctx)
		return counts[drover.JobSucceeded]+counts[drover.JobFailed]+counts[drover.JobCancelled] == jobs, err
	})
}

// leave closes the fleet and returns once nothing is left of it.
func (f *fleet) leave(ctx context.Context) error {
	f.controller.CloseFleet(ctx, true)
	return f.until(ctx, func() (rest bool, err error) {
		err = f.controller.Query(ctx, func(e *engine.Engine) { rest = e.AtRest() })
		return rest, err
	})
}

func (f *fleet) until(ctx context.Context, is func() (bool, error)) error {
	tick := time.NewTicker(glance)
	defer tick.Stop()
	for {
		if yes, err := is(); err != nil || yes {
			return err
		}
		select {
		case <-tick.C:
		case err := <-f.ended:
			f.ended <- err
			return errors.Join(errors.New("the controller ended"), err)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// judge compares the records with what the instances counted.
func (f *fleet) judge(jobs int) (useful time.Duration, err error) {
	counts, err := f.store.Counts(context.Background())
	if err != nil {
		return 0, err
	}
	ran, again, overfull, useful := f.tally.sum()
	if counts[drover.JobSucceeded] != jobs || ran != jobs || again+overfull > 0 {
		return useful, fmt.Errorf("of %d jobs, %d started and %d succeeded; repeated starts: %d; starts without enough room: %d",
			jobs, ran, counts[drover.JobSucceeded], again, overfull)
	}
	return useful, nil
}
