// Command drover-bench-fleet measures what a controller needs to dispatch many jobs to a fleet within this process
// (package benchfleet), and prints it beside what Arvados' cloud dispatcher (August 2026) needed for the same work: the
// same numbers of jobs of 1 to 8 vCPUs, the same quotas, and instances that are SSH servers in the dispatcher's own
// process, whose CPU time both figures include.
//
// No figure passes or fails. Wall times mean little on a busy host, CPU times much more; the number of created
// instances does not depend on the host. With -jobs, one workload runs in this process, for profiling.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/pprof"

	"drover/internal/benchfleet"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "drover-bench-fleet:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	var w benchfleet.Workload
	var profile string
	flags := flag.NewFlagSet("drover-bench-fleet", flag.ContinueOnError)
	flags.IntVar(&w.Jobs, "jobs", 0, "run only this many jobs, in this process")
	flags.IntVar(&w.Quota, "quota", 100, "use at most this many instances")
	flags.DurationVar(&w.Boot, "boot", 0, "how long an instance takes to boot")
	flags.DurationVar(&w.Work, "work", 0, "how long a job runs")
	flags.StringVar(&profile, "cpuprofile", "", "write a profile to this `file`")
	switch err := flags.Parse(args); {
	case err != nil:
		return err
	case w.Jobs == 0:
		return compare(out)
	case profile == "":
		return runOne(w, out)
	}
	f, err := os.Create(profile)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := pprof.StartCPUProfile(f); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	return runOne(w, out)
}

// runOne runs a workload and prints its result.
func runOne(w benchfleet.Workload, out io.Writer) error {
	folder, err := os.MkdirTemp("", "drover-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	r, err := benchfleet.Run(context.Background(), folder, w)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(r)
}
