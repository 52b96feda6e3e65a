package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

// measureStart prints the time from `drover run` to its first job's beginning: reading the configuration, creating the
// records and the key, creating and booting one instance, logging in, and deploying the runner.
func measureStart(p program, o options, out io.Writer) error {
	var took []time.Duration
	for range o.starts {
		u, notes, err := p.noted(1, 1, 0)
		if err != nil {
			return err
		}
		if len(notes) != 1 {
			return fmt.Errorf("one job left notes on %d instances", len(notes))
		}
		took = append(took, time.Unix(0, notes[0][0].began).Sub(u.began))
	}
	slices.Sort(took)
	_, err := fmt.Fprintf(out, "bench first_start_ms_p50=%s first_start_ms_max=%s runs=%d\n",
		milliseconds(quantile(took, 50)), milliseconds(took[len(took)-1]), o.starts)
	return err
}

// measureThroughput prints how many empty jobs a second a whole run completes, from its start to its exit, and what
// they cost the controller.
func measureThroughput(p program, o options, out io.Writer) error {
	plainly, err := plain(o.instances, o.jobs, "true")
	if err != nil {
		return err
	}
	u, err := p.run(o.instances, o.jobs, "true")
	if err != nil {
		return err
	}
	thousands := float64(o.jobs) / 1000
	_, first := fmt.Fprintf(out, "bench jobs_per_second=%.0f instances=%d jobs=%d plain_jobs_per_second=%.0f times_plain=%.1f\n",
		float64(o.jobs)/u.elapsed.Seconds(), o.instances, o.jobs, float64(o.jobs)/plainly.Seconds(), u.elapsed.Seconds()/plainly.Seconds())
	_, second := fmt.Fprintf(out, "bench controller_cpu_seconds_per_1000_jobs=%.2f controller_peak_memory_mib=%d jobs=%d\n",
		u.cpu.Seconds()/thousands, u.memory>>20, o.jobs)
	return errors.Join(first, second)
}

// measureGaps prints the time between two jobs on an instance while the host is not busy.
func measureGaps(p program, o options, out io.Writer) error {
	return measureGapsOf(p, o, o.work, out)
}

// measureBusyGaps prints the same for empty jobs, so that every instance always needs its next one.
func measureBusyGaps(p program, o options, out io.Writer) error {
	return measureGapsOf(p, o, 0, out)
}

func measureGapsOf(p program, o options, work time.Duration, out io.Writer) error {
	jobs := o.instances * 100
	_, notes, err := p.noted(o.instances, jobs, work)
	if err != nil {
		return err
	}
	ours := gaps(notes)
	notes, err = p.plainlyNoted(o.instances, jobs, work)
	if err != nil {
		return err
	}
	plainly := gaps(notes)
	_, err = fmt.Fprintf(out, "bench gap_ms_p50=%s gap_ms_p99=%s plain_gap_ms_p50=%s plain_gap_ms_p99=%s instances=%d jobs=%d work_ms=%d\n",
		milliseconds(quantile(ours, 50)), milliseconds(quantile(ours, 99)), milliseconds(quantile(plainly, 50)), milliseconds(quantile(plainly, 99)),
		o.instances, jobs, work.Milliseconds())
	return err
}

// noted runs jobs that record when they began and ended.
func (p program) noted(instances, jobs int, work time.Duration) (u usage, notes [][]span, err error) {
	notes, err = p.noting(func(folder string) (err error) {
		u, err = p.run(instances, jobs, p.self, jobWord, folder, work.String())
		return err
	})
	return u, notes, err
}

// plainlyNoted runs the same jobs without Drover.
func (p program) plainlyNoted(workers, jobs int, work time.Duration) ([][]span, error) {
	return p.noting(func(folder string) error {
		_, err := plain(workers, jobs, p.self, jobWord, folder, work.String())
		return err
	})
}

func (p program) noting(run func(folder string) error) ([][]span, error) {
	folder, err := os.MkdirTemp(p.folder, "notes-")
	if err != nil {
		return nil, err
	}
	if err := run(folder); err != nil {
		return nil, err
	}
	return readNotes(folder)
}
