// Command drover-bench measures the real program: a built drover runs batches on local instances, with real processes,
// real SSH and no boot delay. It prints one line of key=value for each figure.
//
// No figure passes or fails. Every figure depends on the host's speed, so where possible it is printed beside the cost
// of the same commands on the same host in the same minute with plain fork and exec; the ratio shows what Drover adds.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == jobWord {
		os.Exit(jobMain(time.Now(), os.Args[2:]))
	}
	if err := bench(os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "drover-bench:", err)
		os.Exit(1)
	}
}

// options are the settings of a measurement.
type options struct {
	drover    string
	instances int
	jobs      int
	work      time.Duration
	starts    int
}

func bench(args []string, out io.Writer) error {
	var o options
	flags := flag.NewFlagSet("drover-bench", flag.ContinueOnError)
	flags.StringVar(&o.drover, "drover", "bin/drover", "measure this `program`, with its runner in the same folder")
	flags.IntVar(&o.instances, "instances", 8, "how many local instances to use")
	flags.IntVar(&o.jobs, "jobs", 2000, "how many empty jobs to run")
	flags.DurationVar(&o.work, "work", 50*time.Millisecond, "how long each job takes when the gaps between jobs are measured on a host that is not busy")
	flags.IntVar(&o.starts, "starts", 10, "how many times to measure the first start")
	if err := flags.Parse(args); err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "drover-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	p, err := newProgram(o.drover, folder)
	if err != nil {
		return err
	}
	for _, measure := range []func(program, options, io.Writer) error{measureStart, measureThroughput, measureGaps, measureBusyGaps} {
		if err := measure(p, o, out); err != nil {
			return err
		}
	}
	return nil
}

// newProgram returns the drover to measure, which works in a folder.
func newProgram(path, folder string) (program, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return program{}, err
	}
	if _, err := os.Stat(path); err != nil {
		return program{}, fmt.Errorf("%w: run make build first", err)
	}
	self, err := os.Executable()
	return program{path: path, folder: folder, self: self}, err
}
