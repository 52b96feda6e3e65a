package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"drover"
	"drover/internal/human"
)

// runSummary is what `drover run -o json` prints.
type runSummary struct {
	Run             string       `json:"run"`
	Batch           string       `json:"batch"`
	Out             string       `json:"out"`
	Outputs         []string     `json:"outputs"` // paths of the last jobs' outputs
	Jobs            int          `json:"jobs"`
	Succeeded       int          `json:"succeeded"`
	Failed          int          `json:"failed"`
	Cancelled       int          `json:"cancelled"`
	Attempts        int          `json:"attempts"`
	Instances       int          `json:"instances"`
	InstanceSeconds float64      `json:"instance_seconds"`
	CPUSeconds      float64      `json:"cpu_seconds"`
	Cost            float64      `json:"cost_usd"`
	JobCost         float64      `json:"job_cost_usd"`
	Seconds         float64      `json:"seconds"`  // since the first start of the run, including resumed parts
	Failures        []drover.Job `json:"failures"` // failed and cancelled jobs; only the first of them

	Warnings []drover.Warning `json:"warnings"` // what outputs lack; only the first of them
}

// maxShown is how many failures, and how many outputs, are printed for people.
const maxShown = 5

// summarize prints the result of the run.
func (a *app) summarize(ctx context.Context, s *session, sum drover.Summary) error {
	failures, err := s.failures(ctx)
	if err != nil {
		return err
	}
	outputs, err := s.outputs()
	if err != nil {
		return err
	}
	r := runSummary{
		Warnings: append([]drover.Warning{}, sum.Warnings...),
		Run:      s.folder.ID, Batch: s.plan.Batch.Name, Out: s.plan.Out, Outputs: outputs,
		Jobs: sum.Jobs, Succeeded: sum.Succeeded, Failed: sum.Failed, Cancelled: sum.Cancelled, Attempts: sum.Attempts,
		Instances: sum.Instances, InstanceSeconds: sum.InstanceSeconds, CPUSeconds: sum.CPUSeconds,
		Cost: sum.Cost.USD(), JobCost: sum.JobCost.USD(), Seconds: time.Since(s.plan.Began).Seconds(), Failures: failures,
	}
	if a.forPrograms() {
		return a.print(r)
	}
	out := a.out
	if s.plan.Streamed {
		out = a.err // standard output is the command's
	}
	for _, j := range failures {
		if !s.plan.Streamed { // otherwise it has been shown
			a.showFailure(ctx, s, j)
		}
	}
	if more := sum.Failed + sum.Cancelled - len(failures); more > 0 && !s.plan.Streamed {
		fmt.Fprintf(a.err, "and %d more %s: %s\n", more, badWords(sum), relative(filepath.Join(r.Out, "logs")))
	}
	for i, w := range sum.Warnings {
		if i == maxShown {
			fmt.Fprintln(a.err, "there are more warnings about outputs: see -o json")
			break
		}
		fmt.Fprintf(a.err, "warning: %s: %s\n", elementName(w.Name, w.Job.Index), drover.Sanitize(w.Text))
	}
	r.print(out, sum)
	if !s.folder.Fresh {
		fmt.Fprintf(out, "  resumed    %s ago; the figures cover the whole run\n", time.Since(s.began).Round(10*time.Millisecond))
	}
	return nil
}

// elementName is the name of a job or an array element, as its files are named.
func elementName(job string, index int) string {
	if index < 0 {
		return job
	}
	return fmt.Sprintf("%s.%d", job, index)
}

func (r runSummary) print(out io.Writer, sum drover.Summary) {
	fmt.Fprintf(out, "%s: %s in %s\n", r.Batch, jobWords(sum), time.Duration(r.Seconds*float64(time.Second)).Round(10*time.Millisecond))
	fmt.Fprintf(out, "  instances  %d, %.1f instance-seconds\n", r.Instances, r.InstanceSeconds)
	fmt.Fprintf(out, "  cost       $%.6f (%s in jobs)\n", r.Cost, share(r.JobCost, r.Cost))
	for i, path := range r.Outputs {
		if i == maxShown {
			fmt.Fprintf(out, "             and %d more\n", len(r.Outputs)-maxShown)
			break
		}
		fmt.Fprintf(out, "  %-10s %s\n", map[bool]string{true: "outputs"}[i == 0], drover.Sanitize(relative(path)))
	}
	if _, err := os.Stat(filepath.Join(r.Out, "logs")); err == nil {
		fmt.Fprintf(out, "  logs       %s\n", relative(filepath.Join(r.Out, "logs")))
	}
}

// badWords describes what became of the jobs that did not succeed.
func badWords(sum drover.Summary) string {
	switch {
	case sum.Cancelled == 0:
		return "failed"
	case sum.Failed == 0:
		return "were cancelled"
	}
	return "failed or were cancelled"
}

func jobWords(sum drover.Summary) string {
	return human.Plural(sum.Jobs, "job") + ", " + countWords(map[drover.JobState]int{
		drover.JobSucceeded: sum.Succeeded, drover.JobFailed: sum.Failed, drover.JobCancelled: sum.Cancelled,
	})
}

func share(part, whole float64) string {
	if whole == 0 {
		return "0%"
	}
	return fmt.Sprintf("%.0f%%", 100*part/whole)
}

// relative returns the path relative to this folder, if that is shorter.
func relative(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	if rel, err := filepath.Rel(here, path); err == nil && len(rel) < len(path) {
		return rel
	}
	return path
}

// outputs lists the files of the jobs on which no other job depends: the results of the batch.
func (s *session) outputs() (paths []string, err error) {
	wanted := map[string]bool{}
	for _, j := range s.plan.Batch.Jobs {
		for _, before := range slices.Concat(j.After, j.AfterAny) {
			wanted[before] = true
		}
	}
	paths = []string{}
	for _, j := range s.plan.Batch.Jobs {
		if wanted[j.Name] {
			continue
		}
		err := filepath.WalkDir(filepath.Join(s.plan.Out, j.Name), func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				paths = append(paths, path)
			}
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	slices.Sort(paths)
	return paths, nil
}

// failures returns the first failed jobs and, if there is room, the first cancelled ones.
func (s *session) failures(ctx context.Context) (jobs []drover.Job, err error) {
	jobs = []drover.Job{}
	for _, state := range []drover.JobState{drover.JobFailed, drover.JobCancelled} {
		if len(jobs) == maxShown {
			break
		}
		page, err := s.svc.Jobs(ctx, drover.JobFilter{States: []drover.JobState{state}, Elements: true, Limit: maxShown - len(jobs)})
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, page.Items...)
	}
	return jobs, nil
}

// showFailure prints why a job failed or was cancelled, and its last output.
func (a *app) showFailure(ctx context.Context, s *session, j drover.Job) {
	reason := string(j.State)
	if j.Reason != nil {
		reason = drover.Sanitize(j.Reason.Text)
	}
	name := elementName(j.Name, j.ID.Index)
	title := name
	if j.File != "" {
		title += " (" + drover.Sanitize(j.File) + ")"
	}
	fmt.Fprintf(a.err, "%s: %s\n", title, reason)
	if len(j.Attempts) == 0 {
		return // existing output is from an earlier run
	}
	for _, stream := range []string{"out", "err"} {
		path := filepath.Join(s.plan.Out, "logs", name+"."+stream)
		for _, line := range lastLines(path, 10) {
			fmt.Fprintf(a.err, "    %s\n", drover.SanitizeLines(line))
		}
	}
	if last := j.Attempts[len(j.Attempts)-1]; last.State == drover.AttemptLost {
		in, err := s.svc.Instance(ctx, last.Instance)
		if err != nil || len(in.RunnerLog) == 0 {
			return // not essential: the reason has been printed
		}
		fmt.Fprintf(a.err, "    the last lines of the runner's log on %s:\n", in.Name)
		for _, line := range in.RunnerLog {
			fmt.Fprintf(a.err, "        %s\n", drover.Sanitize(line))
		}
	}
}

// lastLines returns the last n lines of a file; none if it cannot be read.
func lastLines(path string, n int) (lines []string) {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > 16<<10 {
		f.Seek(-16<<10, io.SeekEnd)
	}
	for sc := bufio.NewScanner(f); sc.Scan(); {
		lines = append(lines, sc.Text())
	}
	return lines[max(0, len(lines)-n):]
}
